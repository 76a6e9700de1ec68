// Publishing to a rank, and sleeping until somebody publishes (shm/layout/wake_layout.h).
//
// The protocol is Dekker's, twice: each side first writes with a sequentially consistent
// read-modify-write, then reads the other's word, so at least one of the two sees the other.
//
//   publisher                          consumer                        sleeper
//   store the message (release)        TakeActivity: activity := 0     PrepareToSleep: ++sleepers,
//   ++sequence                           and read sequence               and read sequence
//   read activity; set the bit         drain the lanes taken           look for work
//     if it is clear                                                   futex-wait while sequence
//   read sleepers; if not 0,                                             is what was read
//     ++sequence and futex-wake
//
// A publisher that finds the bit set leaves it to the consumer who will clear it; one that finds no
// sleeper leaves it to the sleeper's look. Both then read a `sequence` that is at least the
// publisher's, and so acquire the message.
//
// Calling thread: any. Publishing does not block (a futex wake is a system call); only Sleep
// blocks. A publisher killed between its message and its announcement leaves the message
// unannounced until the next publisher to that lane: the control plane, which learns of the death,
// announces once more.
#pragma once

#include <cstdint>

#include "common/error_code.h"
#include "shm/atomic.h"
#include "shm/layout/wake_layout.h"

namespace ferry::shm {

class Wake {
 public:
  Wake() = default;
  explicit Wake(WakeLayout* layout) : layout_(layout) {}

  // Announces that lane `lane` (< kMaxLanes) has something (already stored with release): bumps the
  // wake word with a sequentially consistent read-modify-write, sets the activity bit if it is
  // clear, and wakes sleepers.
  void PublishLane(uint32_t lane);
  // The same without a lane: a completion or a state change.
  void Publish();
  // After publishing work that cannot wait for the rank's next call (a rendezvous, a full lane):
  // whether no thread of the rank is inside, so that the progress worker must step in. A thread
  // that leaves meanwhile sees that it was asked (TakeUrgent).
  bool MustAttend();

  // Publishes to a sleeper that waits for a descriptor and not for the futex: the daemon. True: it
  // sleeps (or is about to), so ring its doorbell.
  bool AnnounceLane(uint32_t lane);

  // Takes the activity bits of word `word_index` (0 .. kActivityWords - 1) and clears them. The
  // lanes they name must be drained after the call, not before. A holder killed in between has lost
  // the bits: whoever takes over drains every lane once.
  uint64_t TakeActivity(uint32_t word_index);
  bool HasActivity() const;
  // Marks a lane active without waking anybody: the holder left something behind in it.
  void RestoreActivity(uint32_t lane);

  // A sleeper calls PrepareToSleep, looks for work once more, then either Sleep or CancelSleep.
  uint32_t PrepareToSleep();
  void CancelSleep();
  // Sleeps until the wake word differs from `sequence`, at most `timeout_ns` (0 = for ever), and
  // leaves the sleepers. Returns early on signals; callers look for work and call again.
  void Sleep(uint32_t sequence, uint64_t timeout_ns);

  // Entering and leaving blocking calls. A thread that leaves and gets true from TakeUrgent looks
  // whether lanes still hold something, and if so hands it to the progress worker.
  void Enter() { FetchAdd(layout_->inside, 1, std::memory_order_seq_cst); }
  void Leave() { FetchAdd(layout_->inside, ~uint32_t{0}, std::memory_order_seq_cst); }
  bool TakeUrgent();

  // Poisons the rank: everything on it fails with `error` from now on. First one wins.
  void Poison(ErrorCode error);
  ErrorCode poison() const;

  WakeLayout* layout() const { return layout_; }

 private:
  void Bump(uint32_t lane);
  void WakeSleepers();
  void WakeAll();

  WakeLayout* layout_ = nullptr;
};

inline void Wake::WakeSleepers() {
  // Pairs with PrepareToSleep: either this sees the sleeper, or the sleeper's last look sees the
  // work.
  if (Load(layout_->sleepers, std::memory_order_seq_cst) != 0) [[unlikely]] {
    WakeAll();
  }
}

inline void Wake::Bump(uint32_t lane) {
  // Pairs with TakeActivity and PrepareToSleep, which read `sequence`: publishes the message.
  FetchAdd(layout_->sequence, 1, std::memory_order_seq_cst);
  uint64_t& word = layout_->activity[lane / 64];
  const uint64_t bit = uint64_t{1} << (lane % 64);
  // Pairs with TakeActivity: a bit seen set will be taken after this, and the lane drained after
  // that.
  if ((Load(word, std::memory_order_seq_cst) & bit) == 0) {
    FetchOr(word, bit, std::memory_order_seq_cst);
  }
}

inline void Wake::PublishLane(uint32_t lane) {
  Bump(lane);
  WakeSleepers();
}

inline void Wake::Publish() {
  // Pairs with PrepareToSleep: publishes what was completed.
  FetchAdd(layout_->sequence, 1, std::memory_order_seq_cst);
  WakeSleepers();
}

inline bool Wake::AnnounceLane(uint32_t lane) {
  Bump(lane);
  // Pairs with the daemon's own preparation to sleep, as in WakeSleepers.
  return Load(layout_->sleepers, std::memory_order_seq_cst) != 0;
}

inline bool Wake::MustAttend() {
  // Pairs with TakeUrgent after Leave: either this sees that nobody is inside, or the thread that
  // leaves sees the mark.
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
  // Pairs with PublishLane: acquires the messages of publishers that found their bit already set.
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
