// The hints and requests that calls of partitioned communication name.
//
// Calling thread: the caller's.
#pragma once

#include <mpi.h>

#include <vector>

#include "mpi/base/failure.h"
#include "mpi/p2p/request.h"
#include "mpi/partitioned/units.h"

namespace ferry::mpi {

// Reads the two hints of inits. MPI_ERR_INFO, MPI_ERR_INFO_VALUE.
Failure ReadUnitLimits(MPI_Info handle, UnitLimits* limits);

// Finds the partitioned requests of all handles. Returns MPI_SUCCESS, with the requests in *found,
// or the error that the call is to return.
int FindAllPartitioned(const char* call, int count, const MPI_Request handles[],
                       std::vector<Request*>* found);

}  // namespace ferry::mpi
