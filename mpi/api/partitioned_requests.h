// What calls of partitioned communication name: hints, and requests.
//
// Calling thread: the caller's.
#pragma once

#include <mpi.h>

#include <vector>

#include "mpi/base/failure.h"
#include "mpi/p2p/request.h"
#include "mpi/partitioned/units.h"

namespace ferry::mpi {

// The two hints of inits. MPI_ERR_INFO, MPI_ERR_INFO_VALUE.
Failure ReadUnitLimits(MPI_Info handle, UnitLimits* limits);

// All of the requests. What the call is to return; MPI_SUCCESS: they are `found`.
int FindAllPartitioned(const char* call, int count, const MPI_Request handles[],
                       std::vector<Request*>* found);

}  // namespace ferry::mpi
