// Locks (OpenSHMEM 1.5, section 9.12): first come, first served; that of a PE that dies goes on to
// the next. See operations.h.
//
// A lock is a symmetric long, zero at first, of two words. The lower one of PE 0 is the queue: the
// next number to be drawn, as at a counter, and the number that is served. The upper one of each PE
// says what that PE has to do with the lock: nothing, it is drawing a number, or it has drawn this
// one. So the others can find out whom the lock waits for, and whether that PE still lives.
//
// Remote PEs (region.h) read and change words by atomic operations, which agree with those of local
// ones. A PE that is far from PE 0 asks for the number that is served again and again. Between the
// questions it pauses for an eighth of the time waited, 5 ms at most (patience.h): so those who
// wait take little of that node's time, and the lock is passed on late by no more than that.
//
// Words that a dead remote PE had written are out of reach. But a number that was drawn, and that
// no living PE has or may be drawing, is a dead one's. The locks of a job do not outlive PE 0 for
// the PEs that are far from it: they end with its name.
#include <atomic>
#include <cstddef>
#include <iterator>
#include <string>
#include <utility>

#include "common/clock.h"
#include "shm/atomic.h"
#include "shmem/base/fail.h"
#include "shmem/base/job.h"
#include "shmem/base/lives.h"
#include "shmem/base/operations.h"
#include "shmem/base/patience.h"
#include "shmem/rma/reach.h"
#include "shmem/rma/remote.h"

namespace ferry::shmem {
namespace {

struct LockLayout {
  uint32_t queue;  // Queue; used on PE 0
  uint32_t stand;  // Stand
};
static_assert(sizeof(LockLayout) == sizeof(long));

// Both numbers begin anew after the last one.
struct Queue {
  uint16_t served;  // the number of the PE that has the lock, if it was drawn
  uint16_t next;    // the number that the next PE draws

  static Queue From(uint32_t word) {
    return {static_cast<uint16_t>(word), static_cast<uint16_t>(word >> 16)};
  }
  uint32_t word() const { return uint32_t{next} << 16 | served; }
};
constexpr uint32_t kOneMore = uint32_t{1} << 16;  // added to the word: a number is drawn

enum Stage : uint16_t { kApart, kDrawing, kInLine };
struct Stand {
  Stage stage;
  uint16_t number;  // that this PE has drawn

  static Stand From(uint32_t word) {
    return {static_cast<Stage>(word & 0xffff), static_cast<uint16_t>(word >> 16)};
  }
  uint32_t word() const { return uint32_t{number} << 16 | stage; }
};

// One word of a lock on some PE.
class Word {
 public:
  // `at`: its place in the lock.
  Word(const char* call, long* lock, size_t at, int pe)
      : call_(call),
        target_(ReachWord(call, DefaultContext(), "the lock", lock, sizeof(*lock), pe).At(at)) {}

  bool is_local() const { return target_.is_local(); }
  uint32_t Load() const {
    return is_local() ? shm::LoadAcquire(here()) : Remote({.op = Atomic::kFetch});
  }
  // False: the PE is remote, and was gone.
  bool TryLoad(uint32_t* found) const {
    if (is_local()) {
      *found = shm::LoadAcquire(here());
      return true;
    }
    uint64_t bits = 0;
    const ErrorCode error = TryFetchRemote(DefaultContext(), target_, {.width = 4}, &bits);
    *found = static_cast<uint32_t>(bits);
    return error == ErrorCode::kOk;
  }
  // Returns what was there.
  uint32_t Add(uint32_t value) const {
    return is_local() ? shm::FetchAdd(here(), value, std::memory_order_acq_rel)
                      : Remote({.op = Atomic::kAdd, .value = value});
  }
  // False: something else was there, and is in *expected.
  bool Replace(uint32_t* expected, uint32_t value) const {
    if (is_local()) {
      return shm::CompareExchange(here(), *expected, value, std::memory_order_acq_rel);
    }
    const uint32_t found =
        Remote({.op = Atomic::kCompareSwap, .value = value, .condition = *expected});
    const bool is_done = found == *expected;
    *expected = found;
    return is_done;
  }

 private:
  uint32_t& here() const { return *reinterpret_cast<uint32_t*>(target_.address()); }
  uint32_t Remote(RemoteAtomic atomic) const {
    atomic.width = sizeof(uint32_t);
    return static_cast<uint32_t>(FetchRemote(call_, DefaultContext(), target_, atomic));
  }

  const char* call_;
  PeAddress target_;
};

// One call on one lock.
class Lock {
 public:
  Lock(const char* call, long* lock)
      : call_(call),
        lock_(lock),
        queue_(call, lock, offsetof(LockLayout, queue), 0),
        own_(reinterpret_cast<LockLayout*>(lock)->stand) {}

  void Set() {
    CheckApart();
    Enter();
    const uint16_t number = own().number;
    Patience patience(call_, Patience::Deaths::kOurs,
                      queue_.is_local() ? Patience::Looks::kFree : Patience::Looks::kMessages);
    HolderNote note(*this);
    // Pairs with Pass.
    for (uint16_t served = Served(); served != number; served = Served()) {
      note.Look(served);
      patience.Rest();
      if (patience.deaths() != 0) {
        PassOverTheDead();
      }
    }
  }

  // Returns whether this PE has the lock now.
  bool Try() {
    CheckApart();
    SetOwn({kDrawing, 0});  // Pairs with PassOverTheDead.
    const Queue found = Queue::From(queue_.Load());
    // No PE stands in line: the number to be served is still to be drawn.
    uint32_t expected = Queue{found.served, found.served}.word();
    if (found.next == found.served && queue_.Replace(&expected, expected + kOneMore)) {
      SetOwn({kInLine, found.served});
      return true;
    }
    SetOwn({kApart, 0});
    PassOverTheDead();
    return false;
  }

  void Clear() {
    const Stand stand = own();
    if (stand.stage != kInLine || Queue::From(queue_.Load()).served != stand.number) {
      Fail(call_, "this PE does not have the lock at " + AddressText(lock_));
    }
    // This order: whoever finds this PE apart finds the lock passed on.
    Pass(stand.number);
    SetOwn({kApart, 0});
  }

 private:
  // Says whom this PE waits for, to those who look at it (client/api/calls.h), once the same PE has
  // been served for a while. Then a PE of this node has its word read, or, later, one of the first
  // PEs elsewhere: that takes a message, and longer where its node does not answer.
  class HolderNote {
   public:
    explicit HolderNote(const Lock& lock) : lock_(lock) {}
    ~HolderNote() { TakeBack(); }
    HolderNote(const HolderNote&) = delete;
    HolderNote& operator=(const HolderNote&) = delete;

    void Look(uint16_t served) {
      const uint64_t now_ns = CoarseMonotonicNs();
      if (since_ns_ == 0 || served != served_) {
        TakeBack();
        served_ = served;
        since_ns_ = now_ns;
        tried_ = 0;
      } else if (!has_noted_ && tried_ < std::size(kTries) &&
                 now_ns - since_ns_ >= kTries[tried_].after_ns) {
        Find(kTries[tried_++].is_local);
      }
    }

   private:
    struct TryAt {
      uint64_t after_ns;
      bool is_local;
    };
    static constexpr TryAt kTries[] = {{20'000'000, true}, {200'000'000, false}};
    static constexpr int kMostAsked = 64;

    void Find(bool is_local) {
      int asked = 0;
      for (int pe = 0; pe < job.size && asked < kMostAsked; ++pe) {
        if (pe == job.self || job.IsLocal(pe) != is_local || HasDied(pe)) {
          continue;
        }
        asked += is_local ? 0 : 1;
        uint32_t word = 0;
        const bool is_known = lock_.StandOf(pe).TryLoad(&word);
        const Stand theirs = Stand::From(word);
        if (is_known && theirs.stage == kInLine && theirs.number == served_) {
          job.front_end->calls->NoteMissing(pe, 1);
          has_noted_ = true;
          return;
        }
      }
    }
    void TakeBack() {
      if (std::exchange(has_noted_, false)) {
        job.front_end->calls->NoteMissing(shm::kCallNoRank, 0);
      }
    }

    const Lock& lock_;
    uint16_t served_ = 0;
    uint64_t since_ns_ = 0;  // when that began; 0: no look yet
    size_t tried_ = 0;
    bool has_noted_ = false;
  };

  uint16_t Served() const { return Queue::From(queue_.Load()).served; }
  Stand own() const { return Stand::From(shm::LoadAcquire(own_)); }
  void SetOwn(Stand stand) { shm::StoreRelease(own_, stand.word()); }

  void CheckApart() const {
    if (own().stage != kApart) {
      Fail(call_, "this PE has the lock at " + AddressText(lock_) +
                      " already, or another of its threads waits for it");
    }
  }

  // PassOverTheDead finds out how far a PE had got that dies in here.
  void Enter() {
    SetOwn({kDrawing, 0});
    SetOwn({kInLine, Queue::From(queue_.Add(kOneMore)).next});
  }

  bool Pass(uint16_t number) {
    uint32_t found = queue_.Load();
    while (Queue::From(found).served == number) {
      Queue passed = Queue::From(found);
      passed.served++;
      if (queue_.Replace(&found, passed.word())) {  // Pairs with Set.
        return true;
      }
    }
    return false;
  }

  // Serves the next number if that of a dead PE is served.
  void PassOverTheDead() {
    if (!HasAnyDied()) {
      return;
    }
    const Queue queue = Queue::From(queue_.Load());
    if (queue.served == queue.next) {
      return;  // no PE stands in line
    }
    int may_have_it = -1;
    for (int pe = 0; pe < job.size; ++pe) {
      const bool has_died = HasDied(pe);  // first: then it changes nothing any more
      uint32_t word = 0;
      // Pairs with Enter.
      if ((has_died && !job.IsLocal(pe)) || !StandOf(pe).TryLoad(&word)) {
        may_have_it = pe;
        continue;
      }
      const Stand theirs = Stand::From(word);
      if (theirs.stage == kInLine && theirs.number == queue.served) {
        if (has_died) {
          PassOver(pe, queue.served);
        }
        return;
      }
      if (theirs.stage == kDrawing && !has_died) {
        return;  // it may have drawn the number, and says so in a moment
      }
      may_have_it = theirs.stage == kDrawing ? pe : may_have_it;
    }
    // No living PE says that the number is its own. So a PE has died right after it drew the
    // number, or one has it that cannot be asked.
    if (may_have_it >= 0) {
      PassOver(may_have_it, queue.served);
    }
  }

  static bool HasAnyDied() {
    int pe = 0;
    while (pe < job.size && !HasDied(pe)) {
      ++pe;
    }
    return pe < job.size;
  }

  Word StandOf(int pe) const { return {call_, lock_, offsetof(LockLayout, stand), pe}; }

  void PassOver(int pe, uint16_t number) {
    if (Pass(number)) {
      if (job.IsLocal(pe)) {
        uint32_t theirs = StandOf(pe).Load();
        (void)StandOf(pe).Replace(&theirs, Stand{kApart, 0}.word());
      }
      Warn(call_, "PE " + std::to_string(pe) + " has died, which had the lock at " +
                      AddressText(lock_) + " or stood in line for it: it goes to the next PE");
    }
  }

  const char* const call_;
  long* const lock_;
  const Word queue_;
  uint32_t& own_;
};

}  // namespace

void SetLock(const char* call, long* lock) { Lock(call, lock).Set(); }

void ClearLock(const char* call, long* lock) {
  Lock checked(call, lock);
  // As shmem_quiet, but for its word of local PEs that have died: a lock outlives those who had it.
  if (Context* const context = DefaultContext(); context->has_remote()) {
    QuietRemote(call, context);
  }
  std::atomic_thread_fence(std::memory_order_seq_cst);
  checked.Clear();
}

int TestLock(const char* call, long* lock) { return Lock(call, lock).Try() ? 0 : 1; }

}  // namespace ferry::shmem
