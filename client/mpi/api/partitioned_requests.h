// The partitioned requests that calls name.
//
// Calling thread: the caller's.
#pragma once

#include <mpi.h>

#include <vector>

#include "client/mpi/request/request.h"

namespace ferry::mpi {

// All of them. What the call is to return; MPI_SUCCESS: they are `found`.
int FindAllPartitioned(const char* call, int count, const MPI_Request handles[],
                       std::vector<Request*>* found);

}  // namespace ferry::mpi
