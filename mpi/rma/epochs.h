// The epochs of a window that this process has open, and so the calls that it may make now, by MPI
// 5.0, section 12.5. Only this process's own calls count; those of others are not known here.
//
// A fence opens an access epoch to all, which ends with the next fence, or where another kind of
// epoch begins: a fence that no operation follows opens none.
//
// Calling thread: any. MayAccess takes no lock. Failures are MPI_ERR_RMA_SYNC, and say which call
// is missing.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "mpi/base/failure.h"

namespace ferry::mpi {

enum class LockKind : uint8_t { kNone = 0, kShared = 1, kExclusive = 2, kUnchecked = 3 };

class Epochs {
 public:
  explicit Epochs(int size) : open_(new std::atomic<Access>[size]()), locks_(size) {}

  // Returns true if operations on the target's memory may begin.
  bool MayAccess(int target) const {
    return open_to_all_.load(std::memory_order_relaxed) ||
           open_[target].load(std::memory_order_relaxed) != Access::kNone;
  }
  // Returns true if only this process may access the target's memory, so that no other changes
  // elements there meanwhile.
  bool IsAlone(int target) const {
    return open_[target].load(std::memory_order_relaxed) == Access::kAlone;
  }
  Failure CheckAccess(int target) const;
  // Checks that MPI_Win_flush and the like may be called: a passive epoch is open, with that target
  // or (kAnyTarget) any.
  static constexpr int kAnyTarget = -1;
  Failure CheckPassive(int target) const;
  // Returns true between MPI_Win_lock_all and MPI_Win_unlock_all. Takes no mutex.
  bool IsAllLocked() const { return lock_all_.load(std::memory_order_relaxed) != LockKind::kNone; }
  // Checks that MPI_Win_free may come now.
  Failure CheckFree() const;

  Failure CheckFence() const;
  void Fence(bool opens);

  // Lock opens the epoch, so that only one of two threads goes on. FindLock says of which kind it
  // is, and Unlock ends it.
  Failure Lock(int target, LockKind kind);
  Failure FindLock(int target, LockKind* kind) const;
  void Unlock(int target);
  Failure LockAll(LockKind kind);
  Failure FindLockAll(LockKind* kind) const;
  void UnlockAll();

  // Epochs from MPI_Win_start to MPI_Win_complete, and from MPI_Win_post to MPI_Win_wait, with
  // these ranks of the window.
  Failure Start(std::vector<int> targets);
  Failure FindStarted(std::vector<int>* targets) const;
  void Complete();
  Failure Post(std::vector<int> origins);
  Failure FindPosted(std::vector<int>* origins) const;
  void Wait();

 private:
  enum class Access : uint8_t { kNone, kWithOthers, kAlone };

  Failure CheckQuiet(const char* call) const;
  void OpenTo(int target, Access access) { open_[target].store(access, std::memory_order_relaxed); }
  void OpenToAll(bool is_open) { open_to_all_.store(is_open, std::memory_order_relaxed); }

  std::atomic<bool> open_to_all_{false};
  const std::unique_ptr<std::atomic<Access>[]> open_;  // by target
  mutable std::mutex mutex_;                           // guards what follows
  bool is_fenced_ = false;
  std::vector<LockKind> locks_;  // by target
  int lock_count_ = 0;
  std::atomic<LockKind> lock_all_{LockKind::kNone};
  std::optional<std::vector<int>> started_;
  std::optional<std::vector<int>> posted_;
};

}  // namespace ferry::mpi
