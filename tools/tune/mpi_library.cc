#include "tools/tune/mpi_library.h"

#include <dlfcn.h>

#include <type_traits>

namespace ferry::tools {

StatusOr<MpiLibrary> MpiLibrary::Open(const std::string& path) {
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return Status(ErrorCode::kNotFound, std::string("cannot open the MPI library: ") + dlerror());
  }
  MpiLibrary calls;
  Status status;
  const auto find = [&](const char* name, auto* function) {
    *function = reinterpret_cast<std::remove_pointer_t<decltype(function)>>(dlsym(library, name));
    if (*function == nullptr && status.ok()) {
      status = {ErrorCode::kUnsupported, path + " has no " + name};
    }
  };
  find("MPI_Init", &calls.init);
  find("MPI_Finalize", &calls.finalize);
  find("MPI_Wtime", &calls.wtime);
  find("MPI_Comm_rank", &calls.comm_rank);
  find("MPI_Comm_size", &calls.comm_size);
  find("MPI_Comm_split", &calls.comm_split);
  find("MPI_Comm_split_type", &calls.comm_split_type);
  find("MPI_Comm_free", &calls.comm_free);
  find("MPI_Barrier", &calls.barrier);
  find("MPI_Bcast", &calls.bcast);
  find("MPI_Gather", &calls.gather);
  find("MPI_Scatter", &calls.scatter);
  find("MPI_Allgather", &calls.allgather);
  find("MPI_Alltoall", &calls.alltoall);
  find("MPI_Reduce", &calls.reduce);
  find("MPI_Allreduce", &calls.allreduce);
  find("MPI_Reduce_scatter_block", &calls.reduce_scatter_block);
  find("MPI_Scan", &calls.scan);
  find("MPI_Exscan", &calls.exscan);
  FERRY_RETURN_IF_ERROR(status);
  return calls;
}

}  // namespace ferry::tools
