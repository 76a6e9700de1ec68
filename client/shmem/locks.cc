// Locks (OpenSHMEM 1.5, section 9.12): first come, first served; that of a PE that dies goes on to
// the next. See operations.h.
//
// A lock is a symmetric long, zero at first. On PE 0 its lower half has the queue: the next number
// to be drawn, as at a counter, and the number that is served. On each PE the upper half says what
// that PE has to do with the lock: nothing, it is drawing a number, or it has drawn this one. So
// the others can find out whom the lock waits for, and whether that PE still lives.
#include <string>

#include "client/shmem/fail.h"
#include "client/shmem/job.h"
#include "client/shmem/operations.h"
#include "client/shmem/patience.h"
#include "client/shmem/reach.h"
#include "shm/atomic.h"

namespace ferry::shmem {
namespace {

struct LockLayout {
  uint16_t next;    // the number that the next PE draws; used on PE 0
  uint16_t served;  // the number of the PE that has the lock, if it was drawn; used on PE 0
  uint16_t stage;   // Stage
  uint16_t number;  // that this PE has drawn
};
static_assert(sizeof(LockLayout) == sizeof(long));

enum Stage : uint16_t { kApart, kDrawing, kInLine };

LockLayout& LockOn(const char* call, long* lock, int pe) {
  return *reinterpret_cast<LockLayout*>(Reach(call, DefaultContext(), lock, sizeof(*lock), pe));
}

bool IsDead(int pe) {
  return job.front_end->PeerState(static_cast<uint32_t>(pe)) == ErrorCode::kPeerDied;
}

// One call on one lock.
class Lock {
 public:
  Lock(const char* call, long* lock)
      : call_(call), lock_(lock), queue_(LockOn(call, lock, 0)), own_(*AsLayout(lock)) {}

  void Set() {
    CheckApart();
    Enter();
    Patience patience(call_, Patience::Deaths::kOurs);
    // Pairs with Pass.
    while (shm::LoadAcquire(queue_.served) != own_.number) {
      patience.Rest();
      if (patience.deaths() != 0) {
        PassOverTheDead();
      }
    }
  }

  // Returns whether this PE has the lock now.
  bool Try() {
    CheckApart();
    shm::StoreRelease(own_.stage, kDrawing);  // Pairs with PassOverTheDead.
    uint16_t number = shm::LoadAcquire(queue_.served);
    // Nobody stands in line: the number to be served is still to be drawn.
    uint16_t expected = number;
    if (shm::CompareExchange(queue_.next, expected, static_cast<uint16_t>(number + 1),
                             std::memory_order_acq_rel)) {
      StandInLine(number);
      return true;
    }
    shm::StoreRelease(own_.stage, kApart);
    PassOverTheDead();
    return false;
  }

  void Clear() {
    if (shm::LoadAcquire(own_.stage) != kInLine || shm::LoadAcquire(queue_.served) != own_.number) {
      Fail(call_, "this PE does not have the lock at " + AddressText(lock_));
    }
    // This order: whoever finds this PE apart finds the lock passed on.
    Pass(own_.number);
    shm::StoreRelease(own_.stage, kApart);
  }

 private:
  static LockLayout* AsLayout(long* lock) { return reinterpret_cast<LockLayout*>(lock); }

  void CheckApart() const {
    if (shm::LoadAcquire(own_.stage) != kApart) {
      Fail(call_, "this PE has the lock at " + AddressText(lock_) +
                      " already, or another of its threads waits for it");
    }
  }

  // What a PE that dies in here has done is found out by PassOverTheDead.
  void Enter() {
    shm::StoreRelease(own_.stage, kDrawing);
    StandInLine(shm::FetchAdd(queue_.next, uint16_t{1}, std::memory_order_acq_rel));
  }
  void StandInLine(uint16_t number) {
    shm::StoreRelaxed(own_.number, number);
    shm::StoreRelease(own_.stage, kInLine);
  }

  bool Pass(uint16_t number) {
    // Pairs with Set.
    return shm::CompareExchange(queue_.served, number, static_cast<uint16_t>(number + 1),
                                std::memory_order_acq_rel);
  }

  // Serves the next number if that of a dead PE is served.
  void PassOverTheDead() {
    const uint16_t served = shm::LoadAcquire(queue_.served);
    if (served == shm::LoadAcquire(queue_.next)) {
      return;  // nobody stands in line
    }
    int dead_drawing = -1;
    for (int pe = 0; pe < job.size; ++pe) {
      LockLayout& theirs = LockOn(call_, lock_, pe);
      const bool is_dead = IsDead(pe);  // first: then it changes nothing any more
      // Pairs with StandInLine and Enter.
      const uint16_t stage = shm::LoadAcquire(theirs.stage);
      if (stage == kInLine && shm::LoadRelaxed(theirs.number) == served) {
        if (is_dead) {
          PassOver(pe, &theirs, served);
        }
        return;
      }
      if (stage == kDrawing && !is_dead) {
        return;  // it may have drawn the number, and says so in a moment
      }
      dead_drawing = stage == kDrawing ? pe : dead_drawing;
    }
    // Nobody says that the number is his, so a PE has died right after it drew it.
    if (dead_drawing >= 0) {
      PassOver(dead_drawing, &LockOn(call_, lock_, dead_drawing), served);
    }
  }

  void PassOver(int pe, LockLayout* theirs, uint16_t number) {
    if (Pass(number)) {
      shm::StoreRelease(theirs->stage, kApart);
      Warn(call_, "PE " + std::to_string(pe) + " has died, which had the lock at " +
                      AddressText(lock_) + " or stood in line for it: it goes to the next PE");
    }
  }

  const char* const call_;
  long* const lock_;
  LockLayout& queue_;
  LockLayout& own_;
};

}  // namespace

void SetLock(const char* call, long* lock) { Lock(call, lock).Set(); }

void ClearLock(const char* call, long* lock) {
  Lock checked(call, lock);
  Quiet(call, DefaultContext());
  checked.Clear();
}

int TestLock(const char* call, long* lock) { return Lock(call, lock).Try() ? 0 : 1; }

}  // namespace ferry::shmem
