#include "mpi/rma/locks.h"

#include <algorithm>
#include <string>
#include <vector>

#include "mpi/base/connection.h"
#include "mpi/rma/waiting.h"

namespace ferry::mpi {
namespace {

// The word `lock`.
constexpr uint32_t kOthersWait = uint32_t{1} << 31;
constexpr uint32_t HeldBy(int rank) { return static_cast<uint32_t>(rank) + 1; }
constexpr uint32_t HolderIn(uint32_t word) { return word & ~kOthersWait; }

// One call on one lock.
class Lock {
 public:
  Lock(Win& win, int target)
      : win_(win),
        block_(win.target(target).control),
        layout_(win.control()),
        own_stand_(layout_.stand(win.rank())) {}

  Failure TakeShared() {
    Stand(kShares);
    uint32_t word = Look();
    if (word == 0 || !ok()) {
      return Judged();
    }
    Stand(kAwaitsSharing);
    const Failure waited = Await([&] {
      word = Look();
      if (HolderIn(word) != 0) {
        Mark(word);
        return false;
      }
      Stand(kShares);  // and look again: who wants it alone may have come meanwhile
      word = Look();
      if (HolderIn(word) != 0) {
        Stand(kAwaitsSharing);
        return false;
      }
      return true;
    });
    return End(waited);
  }

  Failure TakeAlone() {
    uint32_t word = Swap(0, HeldBy(win_.rank()));
    if (ok() && word != 0) {
      Stand(kAwaitsAlone);
      const Failure waited = Await([&] {
        word = Look();
        if (HolderIn(word) == HeldBy(win_.rank())) {
          return true;  // it was handed over
        }
        if (HolderIn(word) != 0) {
          Mark(word);
          return false;
        }
        return Swap(word, HeldBy(win_.rank()) | (word & kOthersWait)) == word;
      });
      if (const Failure failure = End(waited); !failure.ok()) {
        return failure;
      }
      Stand(kApart);
    }
    const Failure alone = Await([this] { return NobodyShares(); });
    if (!alone.ok() || !ok() || !ended_holder_.ok()) {
      (void)GiveAlone();
    }
    return alone.ok() ? Judged() : alone;
  }

  Failure GiveShared() {
    Stand(kApart);
    return Judged();
  }

  Failure GiveAlone() {
    const uint32_t mine = HeldBy(win_.rank());
    uint32_t found = Swap(mine, 0);
    if (found == mine || !ok()) {
      return Judged();
    }
    // Others wait. Only processes that add that they wait, too, change the word now.
    int next = -1;
    ReadStands();
    for (int step = 1; step < win_.size() && next < 0; ++step) {
      const int rank = (win_.rank() + step) % win_.size();
      const uint32_t stand = stands_[static_cast<size_t>(rank)];
      if (stand == kAwaitsSharing) {
        break;
      }
      if (stand == kAwaitsAlone && IsAlive(rank)) {
        next = rank;
      }
    }
    const uint32_t after = next < 0 ? 0 : HeldBy(next) | kOthersWait;
    uint32_t expected = found;
    while (ok() && (found = Swap(expected, after)) != expected) {
      expected = found;
    }
    Tell(next);
    return Judged();
  }

 private:
  bool ok() const { return error_ == ErrorCode::kOk; }
  // How the call ends, if no wait has failed.
  Failure Judged() const { return ok() ? ended_holder_ : FailureOf(error_); }
  void Note(ErrorCode error) { error_ = ok() ? error : error_; }

  void Stand(uint32_t value) {
    uint32_t before = 0;
    Note(block_.Swap(own_stand_, value, &before));
  }
  uint32_t Look() {
    uint32_t word = 0;
    Note(block_.Load(ControlLayout::lock(), &word));
    return word;
  }
  // Returns what was there: `expected`, if it is done.
  uint32_t Swap(uint32_t expected, uint32_t value) {
    uint32_t found = expected;
    Note(block_.CompareSwap(ControlLayout::lock(), expected, value, &found));
    return found;
  }
  // Says that a process waits, so that the one that gives the lock back looks for it.
  void Mark(uint32_t word) {
    if ((word & kOthersWait) == 0) {
      (void)Swap(word, word | kOthersWait);
    }
    CheckHolder(word);
  }
  void ReadStands() {
    stands_.resize(static_cast<size_t>(win_.size()));
    Note(block_.Read(layout_.stands(), stands_.data(), stands_.size() * sizeof(uint32_t)));
  }

  bool NobodyShares() {
    ReadStands();
    bool is_alone = true;
    for (int rank = 0; rank < win_.size() && ok(); ++rank) {
      if (stands_[static_cast<size_t>(rank)] != kShares || rank == win_.rank()) {
        continue;
      }
      if (IsAlive(rank)) {
        if (is_alone) {
          NoteHolder(rank);
        }
        is_alone = false;
        continue;
      }
      uint32_t before = 0;
      Note(block_.Swap(layout_.stand(rank), kApart, &before));
      NoteEnded(rank);
    }
    return is_alone;
  }
  void CheckHolder(uint32_t word) {
    const int holder = static_cast<int>(HolderIn(word)) - 1;
    if (holder < 0 || holder == win_.rank() || !win_.HasRank(holder)) {
      return;
    }
    if (IsAlive(holder)) {
      NoteHolder(holder);
      return;
    }
    uint32_t expected = word;
    for (uint32_t found = Swap(expected, 0);
         ok() && found != expected && HolderIn(found) == HolderIn(word);
         found = Swap(expected, 0)) {
      expected = found;
    }
    NoteEnded(holder);
  }

  void NoteHolder(int rank) const {
    front_end->calls->NoteMissing(static_cast<int32_t>(win_.target(rank).rank), 1);
  }
  bool IsAlive(int rank) const {
    return front_end->peers->PeerState(win_.target(rank).rank) == ErrorCode::kOk;
  }
  void NoteEnded(int rank) {
    if (ended_holder_.ok()) {
      const ErrorCode state = front_end->peers->PeerState(win_.target(rank).rank);
      ended_holder_ = FailureOf(state);
      ended_holder_.text =
          "rank " + std::to_string(rank) +
          " of the window held the lock, and has left or died: what it was changing may be half "
          "done. The lock is free again (" +
          ended_holder_.text + ")";
    }
  }
  // Wakes one that may rest; null: all who wait.
  void Tell(int next) {
    for (int rank = 0; rank < win_.size(); ++rank) {
      if (rank != win_.rank() && win_.target(rank).is_local &&
          (rank == next || (next < 0 && stands_[static_cast<size_t>(rank)] >= kAwaitsAlone))) {
        front_end->one_sided->TellOfChange(win_.target(rank).rank);
      }
    }
  }

  template <typename Done>
  Failure Await(Done&& done) {
    Failure failure = AwaitWords(
        block_.is_local() ? client::WordWait::From::kNode : client::WordWait::From::kQuestion,
        [&] { return done() || !ok() || !ended_holder_.ok(); },
        [this] { return front_end->peers->PeerState(block_.rank()); });
    front_end->calls->NoteMissing(shm::kCallNoRank, 0);
    return failure;
  }
  // The end of a wait in line: after a failure this rank does not wait any more.
  Failure End(const Failure& waited) {
    const Failure failure = waited.ok() ? Judged() : waited;
    if (!failure.ok() && ok()) {
      Stand(kApart);
      PassOn();
    }
    return failure;
  }
  // It may have been handed over to this rank just when it gave up.
  void PassOn() {
    if (HolderIn(Look()) == HeldBy(win_.rank())) {
      const Failure held = std::exchange(ended_holder_, {});
      (void)GiveAlone();
      ended_holder_ = held;
    }
  }

  Win& win_;
  const ControlBlock& block_;
  const ControlLayout layout_;
  const uint64_t own_stand_;
  std::vector<uint32_t> stands_;
  ErrorCode error_ = ErrorCode::kOk;  // of an operation with the lock's owner
  Failure ended_holder_;              // the error of a rank that held the lock and has left or died
};

}  // namespace

Failure TakeLock(Win& win, int target, LockKind kind) {
  Lock lock(win, target);
  return kind == LockKind::kShared ? lock.TakeShared() : lock.TakeAlone();
}

Failure GiveLock(Win& win, int target, LockKind kind) {
  Lock lock(win, target);
  return kind == LockKind::kShared ? lock.GiveShared() : lock.GiveAlone();
}

}  // namespace ferry::mpi
