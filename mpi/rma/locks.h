// The lock of each process of a window, which others hold by turns, or share (MPI 5.0, section
// 12.5.3). Its owner takes no part: all is done by atomic operations on words of its control block.
//
// The word `lock` names the rank that holds it alone (plus 1), or is 0; its upper bit says that
// others wait. A rank that shares the lock says so in `stands`, where it has a word of its own,
// before it looks at `lock`; a rank that wants the lock alone first takes `lock`, and then waits
// until no rank shares it (so a stream of sharing ranks does not keep it out). When a rank gives
// the lock back while others wait, the next in the order of ranks gets it, if that one wants it
// alone.
//
// Each word names its rank. So other ranks recognise the lock of a rank that has died: the one that
// meets it takes the dead rank's part out, and its call fails with MPI_ERR_PROC_ABORTED, since the
// dead rank's changes may be half done. The next call finds the lock free.
//
// Calling thread: that of the call. All block. Failures: MPI_ERR_PROC_ABORTED.
#pragma once

#include "mpi/base/failure.h"
#include "mpi/rma/window.h"

namespace ferry::mpi {

// Takes the target's lock. `kind`: kShared or kExclusive. After a failure the lock is not held.
Failure TakeLock(Win& win, int target, LockKind kind);
// Gives the lock back; operations under it have to be over.
Failure GiveLock(Win& win, int target, LockKind kind);

}  // namespace ferry::mpi
