#include "mpi/rma/epochs.h"

#include <string>
#include <utility>

#include "ferry/mpi/mpi.h"

namespace ferry::mpi {
namespace {

Failure WrongNow(std::string text) { return {MPI_ERR_RMA_SYNC, std::move(text)}; }

std::string Rank(int target) { return "rank " + std::to_string(target); }

}  // namespace

Failure Epochs::CheckAccess(int target) const {
  return MayAccess(target)
             ? Failure{}
             : WrongNow("no epoch is open for " + Rank(target) +
                        ": call MPI_Win_fence, MPI_Win_start, MPI_Win_lock or MPI_Win_lock_all "
                        "first");
}

Failure Epochs::CheckPassive(int target) const {
  std::lock_guard lock(mutex_);
  if (IsAllLocked() ||
      (target == kAnyTarget ? lock_count_ != 0 : locks_[target] != LockKind::kNone)) {
    return {};
  }
  return WrongNow(target == kAnyTarget
                      ? "no lock is held: call MPI_Win_lock or MPI_Win_lock_all first"
                      : Rank(target) +
                            " is not locked: call MPI_Win_lock or MPI_Win_lock_all first");
}

// Nothing that has to be ended is open. `call`: what cannot come now.
Failure Epochs::CheckQuiet(const char* call) const {
  const std::string wrong = std::string(call) + " cannot come ";
  if (IsAllLocked()) {
    return WrongNow(wrong + "between MPI_Win_lock_all and MPI_Win_unlock_all");
  }
  if (lock_count_ != 0) {
    return WrongNow(wrong + "while a rank is locked: call MPI_Win_unlock first");
  }
  if (started_) {
    return WrongNow(wrong + "between MPI_Win_start and MPI_Win_complete");
  }
  if (posted_) {
    return WrongNow(wrong + "between MPI_Win_post and MPI_Win_wait");
  }
  return {};
}

Failure Epochs::CheckFree() const {
  std::lock_guard lock(mutex_);
  return CheckQuiet("MPI_Win_free");
}

// ---- Fences -------------------------------------------------------------------------------------

Failure Epochs::CheckFence() const {
  std::lock_guard lock(mutex_);
  return CheckQuiet("MPI_Win_fence");
}

void Epochs::Fence(bool opens) {
  std::lock_guard lock(mutex_);
  is_fenced_ = opens;
  OpenToAll(opens);
}

// ---- Locks --------------------------------------------------------------------------------------

Failure Epochs::Lock(int target, LockKind kind) {
  std::lock_guard lock(mutex_);
  if (IsAllLocked()) {
    return WrongNow("MPI_Win_lock cannot come between MPI_Win_lock_all and MPI_Win_unlock_all");
  }
  if (locks_[target] != LockKind::kNone) {
    return WrongNow(Rank(target) + " is locked by this process already");
  }
  if (started_) {
    return WrongNow("MPI_Win_lock cannot come between MPI_Win_start and MPI_Win_complete");
  }
  if (std::exchange(is_fenced_, false)) {
    OpenToAll(false);
  }
  locks_[target] = kind;
  ++lock_count_;
  OpenTo(target, kind == LockKind::kExclusive ? Access::kAlone : Access::kWithOthers);
  return {};
}

Failure Epochs::FindLock(int target, LockKind* kind) const {
  std::lock_guard lock(mutex_);
  *kind = locks_[target];
  return *kind != LockKind::kNone ? Failure{}
                                  : WrongNow(Rank(target) + " is not locked by this process");
}

void Epochs::Unlock(int target) {
  std::lock_guard lock(mutex_);
  locks_[target] = LockKind::kNone;
  --lock_count_;
  OpenTo(target, Access::kNone);
}

Failure Epochs::LockAll(LockKind kind) {
  std::lock_guard lock(mutex_);
  if (IsAllLocked() || lock_count_ != 0 || started_) {
    return CheckQuiet("MPI_Win_lock_all");
  }
  is_fenced_ = false;
  lock_all_ = kind;
  OpenToAll(true);
  return {};
}

Failure Epochs::FindLockAll(LockKind* kind) const {
  std::lock_guard lock(mutex_);
  *kind = lock_all_.load(std::memory_order_relaxed);
  return *kind != LockKind::kNone ? Failure{} : WrongNow("MPI_Win_lock_all was not called");
}

void Epochs::UnlockAll() {
  std::lock_guard lock(mutex_);
  lock_all_ = LockKind::kNone;
  OpenToAll(false);
}

// ---- Groups -------------------------------------------------------------------------------------

Failure Epochs::Start(std::vector<int> targets) {
  std::lock_guard lock(mutex_);
  if (IsAllLocked() || lock_count_ != 0 || started_) {
    return CheckQuiet("MPI_Win_start");
  }
  if (std::exchange(is_fenced_, false)) {
    OpenToAll(false);
  }
  for (const int target : targets) {
    OpenTo(target, Access::kWithOthers);
  }
  started_ = std::move(targets);
  return {};
}

Failure Epochs::FindStarted(std::vector<int>* targets) const {
  std::lock_guard lock(mutex_);
  if (!started_) {
    return WrongNow("MPI_Win_start was not called");
  }
  *targets = *started_;
  return {};
}

void Epochs::Complete() {
  std::lock_guard lock(mutex_);
  for (const int target : *started_) {
    OpenTo(target, Access::kNone);
  }
  started_.reset();
}

Failure Epochs::Post(std::vector<int> origins) {
  std::lock_guard lock(mutex_);
  if (posted_) {
    return WrongNow("MPI_Win_post was called before: call MPI_Win_wait or MPI_Win_test first");
  }
  if (std::exchange(is_fenced_, false)) {
    OpenToAll(false);
  }
  posted_ = std::move(origins);
  return {};
}

Failure Epochs::FindPosted(std::vector<int>* origins) const {
  std::lock_guard lock(mutex_);
  if (!posted_) {
    return WrongNow("MPI_Win_post was not called");
  }
  *origins = *posted_;
  return {};
}

void Epochs::Wait() {
  std::lock_guard lock(mutex_);
  posted_.reset();
}

}  // namespace ferry::mpi
