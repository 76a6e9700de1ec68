// Publishing to a rank, and sleeping until a publisher wakes it (shm/layout/wake_layout.h).
//
// The protocol is Dekker's: each side first writes, then reads the other's word, so at least one of
// the two sees the other.
//
//   publisher                          sleeper
//   store the message (release)        TakeActivity: activity := 0
//   light fence                        PrepareToSleep: ++sleepers, read sequence, heavy fence
//   read activity; set the bit         look for work in the lanes taken and announced
//     if it is clear                   futex-wait while sequence is what was read
//   read sleepers; if not 0,
//     ++sequence and futex-wake
//
// A message to a rank that is awake and has heard from that lane before thus writes nothing but the
// message itself: the wake line stays shared. The consumer leaves the bits alone and looks at every
// lane whose bit is set; only a sleeper forgets the lanes that are quiet.
// Fences: shm/fence.h. A publisher that cannot have the light one bumps `sequence` with a
// sequentially consistent read-modify-write in its place; a sleeper that cannot have the heavy one
// never sleeps for long.
//
// A daemon waits in epoll and not on the futex, and takes the bits of its own wake word at every
// turn. Ranks that set one (AnnounceLane) always pay for the read-modify-write; commands need none
// (MustRing).
//
// Calling thread: any. Publishing does not block (a futex wake is a system call); only Sleep
// blocks. A publisher killed between its message and its announcement leaves the message
// unannounced until the next publisher to that lane: the control plane, which learns of the death,
// announces once more.
#pragma once

#include <cstdint>

#include "common/error_code.h"
#include "shm/atomic.h"
#include "shm/fence.h"
#include "shm/layout/wake_layout.h"

namespace ferry::shm {

class Wake {
 public:
  Wake() = default;
  explicit Wake(WakeLayout* layout) : layout_(layout) {}

  // Announces a message in lane `lane` (< kMaxLanes), already stored with release: sets the
  // activity bit if it is clear, and wakes sleepers.
  void PublishLane(uint32_t lane);
  // Announces a completion or a change of state, which is in no lane: wakes sleepers.
  void Publish();
  // Called after publishing work that cannot wait for the rank's next call (a rendezvous, a full
  // lane): returns true if no thread of the rank is inside, so that the progress worker must step
  // in. A thread that leaves meanwhile sees the request (TakeUrgent).
  bool MustAttend();

  // Publishes to a sleeper that waits for a descriptor and not for the futex: the daemon. True: it
  // sleeps (or is about to), so ring its doorbell.
  bool AnnounceLane(uint32_t lane);

  // Called after a command in a rank's lane to the daemon. The daemon looks at those lanes in every
  // turn, and once more before it sleeps: so the command marks no line that the daemon reads all
  // the time. True: it sleeps (or is about to), so ring its doorbell.
  bool MustRing() {
    // Not the light fence: the daemon sleeps between any two messages, and a heavy one that
    // interrupts a busy rank takes as long as a message.
    FullFence();  // Pairs with ProgressCore::PrepareToSleep.
    return Load(layout_->sleepers, std::memory_order_seq_cst) != 0;
  }

  // The lanes to look at, as bits of word `word_index` (0 .. kActivityWords - 1).
  uint64_t Activity(uint32_t word_index) const {
    return LoadRelaxed(layout_->activity[word_index]);
  }
  // Takes these bits and clears them. For a rank, only before PrepareToSleep: the lanes they name
  // must be looked at after that. For the daemon, they must be drained after the call. A process
  // killed in between has lost the bits: its successor drains every lane once.
  uint64_t TakeActivity(uint32_t word_index);
  bool HasActivity() const;
  // Marks a lane that holds messages active, without waking any thread.
  void RestoreActivity(uint32_t lane);

  // A sleeper calls PrepareToSleep, looks for work once more, then either Sleep or CancelSleep.
  uint32_t PrepareToSleep();
  void CancelSleep();
  // Sleeps until the wake word differs from `sequence`, at most `timeout_ns` (0 = for ever), and
  // leaves the sleepers. Returns early on signals, and soon where the kernel refuses heavy fences;
  // callers look for work and call again.
  void Sleep(uint32_t sequence, uint64_t timeout_ns);

  // A thread that waits for a change of the rank's memory (a one-sided operation) rests: it sleeps
  // as above, between BeginRest and EndRest, unless there have been changes since it looked. Other
  // sleepers are not woken for a change.
  void BeginRest() { FetchAdd(layout_->resting, 1, std::memory_order_seq_cst); }
  void EndRest() { FetchAdd(layout_->resting, ~uint32_t{0}, std::memory_order_seq_cst); }
  uint32_t changes() const { return Load(layout_->changes, std::memory_order_seq_cst); }
  // Announces a change of the rank's memory: wakes the threads that rest.
  void PublishChange();

  // Entering and leaving blocking calls. A thread that leaves and gets true from TakeUrgent looks
  // once more at the lanes, and hands messages that it finds there to the progress worker.
  void Enter() { FetchAdd(layout_->inside, 1, std::memory_order_seq_cst); }
  void Leave() { FetchAdd(layout_->inside, ~uint32_t{0}, std::memory_order_seq_cst); }
  bool TakeUrgent();
  // Returns true while a thread is inside a blocking call.
  bool HasVisitors() const { return LoadRelaxed(layout_->inside) != 0; }

  // Poisons the rank: all its calls fail with `error` from now on. The first error stays.
  void Poison(ErrorCode error);
  ErrorCode poison() const;

  WakeLayout* layout() const { return layout_; }

 private:
  void OrderMessage();
  void MarkActive(uint32_t lane);
  void WakeSleepers();
  void WakeAll();

  WakeLayout* layout_ = nullptr;
};

// Orders the message before the reads of `activity` and `sleepers`.
inline void Wake::OrderMessage() {
  // Both pair with PrepareToSleep.
  if (IsLightFenceEnabled()) [[likely]] {
    LightFence();
  } else {
    FetchAdd(layout_->sequence, 1, std::memory_order_seq_cst);
  }
}

inline void Wake::WakeSleepers() {
  // Pairs with PrepareToSleep: either this sees the sleeper, or the sleeper's last look sees the
  // work.
  if (Load(layout_->sleepers, std::memory_order_seq_cst) != 0) [[unlikely]] {
    WakeAll();
  }
}

inline void Wake::MarkActive(uint32_t lane) {
  uint64_t& word = layout_->activity[lane / 64];
  const uint64_t bit = uint64_t{1} << (lane % 64);
  // Pairs with TakeActivity: a bit seen set will be taken after this, and the lane looked at after
  // that.
  if ((Load(word, std::memory_order_seq_cst) & bit) == 0) {
    FetchOr(word, bit, std::memory_order_seq_cst);
  }
}

inline void Wake::PublishLane(uint32_t lane) {
  OrderMessage();
  MarkActive(lane);
  WakeSleepers();
}

inline void Wake::Publish() {
  OrderMessage();
  WakeSleepers();
}

inline void Wake::PublishChange() {
  // Pairs with BeginRest and changes(): either this sees the thread, or that sees the change.
  FetchAdd(layout_->changes, 1, std::memory_order_seq_cst);
  if (Load(layout_->resting, std::memory_order_seq_cst) != 0) [[unlikely]] {
    Publish();
  }
}

inline bool Wake::AnnounceLane(uint32_t lane) {
  // Pairs with TakeActivity, which reads `sequence`: publishes the message.
  FetchAdd(layout_->sequence, 1, std::memory_order_seq_cst);
  MarkActive(lane);
  // Pairs with the daemon's own preparation to sleep, as in WakeSleepers.
  return Load(layout_->sleepers, std::memory_order_seq_cst) != 0;
}

inline bool Wake::MustAttend() {
  // Pairs with TakeUrgent after Leave: either this sees that no thread is inside, or the thread
  // that leaves sees the mark.
  Exchange(layout_->urgent, 1U, std::memory_order_seq_cst);
  return Load(layout_->inside, std::memory_order_seq_cst) == 0;
}

inline bool Wake::TakeUrgent() {
  // Pairs with MustAttend.
  if (Load(layout_->urgent, std::memory_order_seq_cst) == 0) {
    return false;
  }
  return Exchange(layout_->urgent, 0U, std::memory_order_seq_cst) != 0;
}

inline uint64_t Wake::TakeActivity(uint32_t word_index) {
  uint64_t& word = layout_->activity[word_index];
  // Sequentially consistent because it is also a sleeper's last look (on x86 a plain load).
  if (Load(word, std::memory_order_seq_cst) == 0) {
    return 0;
  }
  const uint64_t bits = Exchange(word, 0, std::memory_order_seq_cst);
  // Pairs with AnnounceLane: acquires the messages of publishers that found their bit already set.
  (void)Load(layout_->sequence, std::memory_order_seq_cst);
  return bits;
}

inline bool Wake::HasActivity() const {
  uint64_t bits = 0;
  for (const uint64_t& word : layout_->activity) {
    bits |= Load(word, std::memory_order_seq_cst);  // as in TakeActivity
  }
  return bits != 0;
}

}  // namespace ferry::shm
