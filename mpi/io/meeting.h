// How the ranks of a file agree: facts that each tells all others, in shared memory where they
// share a node. Collective calls on files meet here, so that all of them fail if one does.
//
// Calling thread: that of the call, one at a time for one file. Blocks until all ranks have come;
// MPI_ERR_PROC_ABORTED if one of them is gone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "mpi/base/failure.h"
#include "mpi/comm/comm.h"

namespace ferry::mpi {

class Meeting {
 public:
  // `call`: the function of MPI; `comm`: the file's own.
  Meeting(const char* call, Comm& comm) : call_(call), comm_(comm) {}

  int rank() const { return comm_.rank(); }
  int size() const { return comm_.size(); }

  // Gathers `bytes` of each rank to all, in the order of ranks.
  Failure Gather(const void* own, size_t bytes, void* all);
  // Gathers a value of each rank to all.
  template <typename Facts>
  Failure Gather(const Facts& own, std::vector<Facts>* all) {
    all->resize(static_cast<size_t>(size()));
    return Gather(&own, sizeof(own), all->data());
  }
  // FirstFailure (mpi/comm/agree.h) of all ranks: the same class on all that have not failed
  // themselves.
  Failure Agree(const Failure& own);

 private:
  const char* const call_;
  Comm& comm_;
};

}  // namespace ferry::mpi
