// The calls of an MPI library with the standard binary interface, opened by its path: so that a
// program that is installed apart from the library needs no search path for it.
//
// Calling thread: any; Open blocks for the loader.
#pragma once

#include <mpi.h>

#include <string>

#include "common/status.h"

namespace ferry::tools {

struct MpiLibrary {
  // kNotFound: there is none; kUnsupported: it lacks a call. Stays open.
  static StatusOr<MpiLibrary> Open(const std::string& path);

  decltype(&MPI_Init) init = nullptr;
  decltype(&MPI_Finalize) finalize = nullptr;
  decltype(&MPI_Wtime) wtime = nullptr;
  decltype(&MPI_Comm_rank) comm_rank = nullptr;
  decltype(&MPI_Comm_size) comm_size = nullptr;
  decltype(&MPI_Comm_split) comm_split = nullptr;
  decltype(&MPI_Comm_split_type) comm_split_type = nullptr;
  decltype(&MPI_Comm_free) comm_free = nullptr;
  decltype(&MPI_Barrier) barrier = nullptr;
  decltype(&MPI_Bcast) bcast = nullptr;
  decltype(&MPI_Gather) gather = nullptr;
  decltype(&MPI_Scatter) scatter = nullptr;
  decltype(&MPI_Allgather) allgather = nullptr;
  decltype(&MPI_Alltoall) alltoall = nullptr;
  decltype(&MPI_Reduce) reduce = nullptr;
  decltype(&MPI_Allreduce) allreduce = nullptr;
  decltype(&MPI_Reduce_scatter_block) reduce_scatter_block = nullptr;
  decltype(&MPI_Scan) scan = nullptr;
  decltype(&MPI_Exscan) exscan = nullptr;
};

}  // namespace ferry::tools
