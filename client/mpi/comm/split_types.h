// MPI_Comm_split_type: communicators of processes that are near each other. MPI 5.0, section 7.4.2.
//
// Collective; blocks. Calling thread: any, one at a time for one parent.
#pragma once

#include "client/mpi/comm/comm.h"
#include "client/mpi/error/failure.h"
#include "client/mpi/handle/object.h"
#include "client/mpi/info/info.h"

namespace ferry::mpi {

// MPI_COMM_TYPE_SHARED: the processes of a node, which share memory. MPI_COMM_TYPE_HW_GUIDED and
// MPI_COMM_TYPE_RESOURCE_GUIDED: what the info key mpi_hw_resource_type names, of which Ferry knows
// mpi_shared_memory: a node, again; no communicator for others. MPI_COMM_TYPE_HW_UNGUIDED: a node
// where that is less than the parent has, and then `info`, which may be null, names it; else no
// communicator. MPI_UNDEFINED: none.
// MPI_ERR_ARG for any other type.
Result<Ref<Comm>> SplitByType(const Comm& parent, int split_type, int key, Info* info);

}  // namespace ferry::mpi
