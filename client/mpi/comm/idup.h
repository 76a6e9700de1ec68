// MPI_Comm_idup: a duplicate whose number arrives later. MPI 5.0, section 7.4.2.
#pragma once

#include "client/mpi/comm/comm.h"
#include "client/mpi/error/failure.h"
#include "client/mpi/handle/object.h"
#include "client/mpi/request/request.h"

namespace ferry::mpi {

// Begins to duplicate `parent`, of either kind. *duplicate has the parent's groups, and may be used
// once *request is complete. Collective, in one order for all calls on `parent`; does not block:
// the process that makes the number sends it to all others at once, in a context that nothing else
// uses, so that calls meet in order. Calling thread: any, one at a time for one parent.
Failure BeginDuplicate(Comm& parent, Ref<Comm>* duplicate, Ref<Request>* request);

}  // namespace ferry::mpi
