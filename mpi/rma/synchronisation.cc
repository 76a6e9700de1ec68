#include "mpi/rma/synchronisation.h"

#include <atomic>
#include <string>
#include <utility>

#include "mpi/base/connection.h"
#include "mpi/rma/locks.h"
#include "mpi/rma/waiting.h"

namespace ferry::mpi {

void Sync() { std::atomic_thread_fence(std::memory_order_seq_cst); }

Failure Fence(Win& win, int assertions) {
  FERRY_RETURN_FAILURE(win.epochs().CheckFence());
  const Failure ended = win.Quiet();
  // Those who wait for this rank do not, where its operations have failed.
  const Failure met = win.Barrier("MPI_Win_fence");
  const Failure failure = ended.ok() ? met : ended;
  win.epochs().Fence(failure.ok() && (assertions & MPI_MODE_NOSUCCEED) == 0);
  return failure;
}

// ---- Locks --------------------------------------------------------------------------------------

Failure LockTarget(Win& win, int target, LockKind kind, int assertions) {
  const bool is_checked = (assertions & MPI_MODE_NOCHECK) == 0;
  FERRY_RETURN_FAILURE(win.epochs().Lock(target, is_checked ? kind : LockKind::kUnchecked));
  Failure failure = is_checked ? TakeLock(win, target, kind)
                               : FailureOf(front_end->peers->PeerState(win.target(target).rank));
  if (!failure.ok()) {
    win.epochs().Unlock(target);
  }
  return failure;
}

namespace {

Failure Give(Win& win, int target, LockKind kind) {
  return kind == LockKind::kUnchecked ? Failure{} : GiveLock(win, target, kind);
}

}  // namespace

Failure UnlockTarget(Win& win, int target) {
  LockKind kind{};
  FERRY_RETURN_FAILURE(win.epochs().FindLock(target, &kind));
  const Failure ended = win.QuietWith(target);
  const Failure given = Give(win, target, kind);
  win.epochs().Unlock(target);
  return ended.ok() ? given : ended;
}

Failure LockAllTargets(Win& win, int assertions) {
  const bool is_checked = (assertions & MPI_MODE_NOCHECK) == 0;
  FERRY_RETURN_FAILURE(win.epochs().LockAll(is_checked ? LockKind::kShared : LockKind::kUnchecked));
  Failure failure;
  for (int target = 0; is_checked && target < win.size(); ++target) {
    failure = TakeLock(win, target, LockKind::kShared);
    if (!failure.ok()) {
      while (target-- > 0) {
        (void)GiveLock(win, target, LockKind::kShared);  // what was wrong before it says more
      }
      win.epochs().UnlockAll();
      return failure;
    }
  }
  return {};
}

Failure UnlockAllTargets(Win& win) {
  LockKind kind{};
  FERRY_RETURN_FAILURE(win.epochs().FindLockAll(&kind));
  Failure failure = win.Quiet();
  for (int target = 0; target < win.size(); ++target) {
    const Failure given = Give(win, target, kind);
    failure = failure.ok() ? given : failure;
  }
  win.epochs().UnlockAll();
  return failure;
}

Failure Flush(Win& win, int target) {
  FERRY_RETURN_FAILURE(win.epochs().CheckPassive(target));
  return target == Epochs::kAnyTarget ? win.Quiet() : win.QuietWith(target);
}

// ---- Groups -------------------------------------------------------------------------------------

namespace {

// Waits until each rank has counted its word in the own block up to what `expected` says.
template <typename Offset, typename Expected>
Failure AwaitCounts(Win& win, const std::vector<int>& ranks, Offset offset, Expected expected) {
  for (const int rank : ranks) {
    const std::vector<int> awaited{rank};
    front_end->calls->NoteMissing(static_cast<int32_t>(win.target(rank).rank), 1);
    const Failure failure = AwaitWords(
        win.waits_from(),
        [&] {
          uint64_t found = 0;
          (void)win.own().control.Load(offset(rank), &found);  // its own: it is there
          return found >= expected(rank);
        },
        [&] { return win.DeathAmong(awaited); });
    front_end->calls->NoteMissing(shm::kCallNoRank, 0);
    FERRY_RETURN_FAILURE(failure);
  }
  return {};
}

// Counts up this rank's word at `offset` in the block of each of them, of which `told` is the
// count. After a failure, too: the others wait for it.
Failure TellEach(Win& win, const std::vector<int>& ranks, uint64_t offset,
                 uint64_t WindowTarget::*told) {
  Failure failure;
  for (const int rank : ranks) {
    WindowTarget& target = win.target(rank);
    const ErrorCode error = target.control.Tell(offset, ++(target.*told));
    failure = failure.ok() ? FailureOf(error) : failure;
  }
  return failure;
}

}  // namespace

Failure Post(Win& win, const std::vector<int>& origins) {
  FERRY_RETURN_FAILURE(win.epochs().Post(origins));
  Sync();
  Failure failure =
      TellEach(win, origins, win.control().post(win.rank()), &WindowTarget::posts_told);
  if (!failure.ok()) {
    win.epochs().Wait();
  }
  return failure;
}

Failure Start(Win& win, const std::vector<int>& targets, int assertions) {
  FERRY_RETURN_FAILURE(win.epochs().Start(targets));
  if ((assertions & MPI_MODE_NOCHECK) == 0) {
    const Failure failure = AwaitCounts(
        win, targets, [&](int rank) { return win.control().post(rank); },
        [&](int rank) { return win.target(rank).posts_met + 1; });
    if (!failure.ok()) {
      win.epochs().Complete();
      return failure;
    }
  }
  for (const int target : targets) {
    ++win.target(target).posts_met;
  }
  return {};
}

// Targets are told, too, where operations have failed: they would wait for ever.
Failure Complete(Win& win) {
  std::vector<int> targets;
  FERRY_RETURN_FAILURE(win.epochs().FindStarted(&targets));
  const Failure ended = win.Quiet();
  const Failure told =
      TellEach(win, targets, win.control().complete(win.rank()), &WindowTarget::completes_told);
  win.epochs().Complete();
  return ended.ok() ? told : ended;
}

namespace {

void EndExposure(Win& win, const std::vector<int>& origins) {
  for (const int origin : origins) {
    ++win.target(origin).completes_met;
  }
  win.epochs().Wait();
  Sync();
}

}  // namespace

Failure Wait(Win& win) {
  std::vector<int> origins;
  FERRY_RETURN_FAILURE(win.epochs().FindPosted(&origins));
  const Failure failure = AwaitCounts(
      win, origins, [&](int rank) { return win.control().complete(rank); },
      [&](int rank) { return win.target(rank).completes_met + 1; });
  EndExposure(win, origins);
  return failure;
}

Failure Test(Win& win, bool* is_over) {
  std::vector<int> origins;
  FERRY_RETURN_FAILURE(win.epochs().FindPosted(&origins));
  (void)front_end->peers->Poll();
  *is_over = true;
  ErrorCode death = ErrorCode::kOk;
  for (const int origin : origins) {
    const ErrorCode state = win.DeathAmong({origin});  // before the look: what it told counts
    uint64_t found = 0;
    (void)win.own().control.Load(win.control().complete(origin), &found);  // its own: it is there
    if (found < win.target(origin).completes_met + 1) {
      *is_over = false;
      death = death == ErrorCode::kOk ? state : death;
    }
  }
  if (*is_over || death != ErrorCode::kOk) {
    EndExposure(win, origins);
  }
  return FailureOf(death);
}

}  // namespace ferry::mpi
