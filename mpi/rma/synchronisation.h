// The calls that begin and end epochs (MPI 5.0, section 12.5). The callers have checked the
// arguments.
//
// MPI_Win_post counts up a word in each origin's control block, for which MPI_Win_start waits, and
// MPI_Win_complete one in each target's, for which MPI_Win_wait does: so no process has to answer
// another.
//
// Calling thread: that of the call. All but Test block. After a failure an epoch that was to end
// has ended, and one that was to begin has not begun. Failures: MPI_ERR_RMA_SYNC;
// MPI_ERR_PROC_ABORTED and others of libferry's: a rank that the call waits for is gone, or
// operations of the epoch have failed.
#pragma once

#include <vector>

#include "mpi/base/failure.h"
#include "mpi/rma/window.h"

namespace ferry::mpi {

// MPI_MODE_NOPRECEDE: no operations are to be ended; MPI_MODE_NOSUCCEED: none follow.
Failure Fence(Win& win, int assertions);

Failure LockTarget(Win& win, int target, LockKind kind, int assertions);
Failure UnlockTarget(Win& win, int target);
Failure LockAllTargets(Win& win, int assertions);
Failure UnlockAllTargets(Win& win);
// `target` may be Epochs::kAnyTarget: all.
Failure Flush(Win& win, int target);

Failure Post(Win& win, const std::vector<int>& origins);
Failure Start(Win& win, const std::vector<int>& targets, int assertions);
Failure Complete(Win& win);
Failure Wait(Win& win);
Failure Test(Win& win, bool* is_over);

// Carries out MPI_Win_sync: keeps the program's loads and stores before it apart from those after
// it, as others' operations see them.
void Sync();

}  // namespace ferry::mpi
