// The lock of each process of a window, which others hold by turns, or share (MPI 5.0, section
// 12.5.3). Its owner takes no part: all is done by atomic operations on words of its control block.
//
// The word `lock` names the rank that holds it alone (plus 1), or is 0; its upper bit says that
// others wait. Who shares it says so in `stands`, each in a word of its own, before it looks at the
// word; who wants it alone first takes the word, and then waits until nobody shares it (so those
// who want it alone are not kept out by a stream of others). When it is given back and somebody
// waits, the next in the order of ranks gets it, if that one wants it alone.
//
// Each word tells whose it is. So the lock of a rank that has died is seen to be that: whoever
// meets it takes the dead one's part out, and its call fails with MPI_ERR_PROC_ABORTED, since what
// that rank was changing may be half done. The next call finds the lock free.
//
// Calling thread: that of the call. All block. Failures: MPI_ERR_PROC_ABORTED.
#pragma once

#include "mpi/base/failure.h"
#include "mpi/rma/window.h"

namespace ferry::mpi {

// `kind`: kShared or kExclusive. After a failure the lock is not held.
Failure TakeLock(Win& win, int target, LockKind kind);
// Gives it back; what was done under it has to be over.
Failure GiveLock(Win& win, int target, LockKind kind);

}  // namespace ferry::mpi
