// How the ranks of a file agree: facts that each tells all others, in shared memory where they
// share a node. Collective calls on files meet here, so that all of them fail if one does.
//
// Calling thread: that of the call, one at a time for one file. Blocks until all ranks have come,
// or, in the background, suspends; MPI_ERR_PROC_ABORTED if one of them is gone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "mpi/base/failure.h"
#include "mpi/comm/comm.h"
#include "mpi/io/io_thread.h"

namespace ferry::mpi {

// The waits of a call that does not block (background.h).
class Background {
 public:
  // As Meeting's.
  virtual Failure Gather(const void* own, size_t bytes, void* all) = 0;
  // Has the thread that accesses files do the work; returns once that is over.
  virtual void Do(IoWork* work, IoLine line) = 0;

 protected:
  ~Background() = default;
};

class Meeting {
 public:
  // `call`: the function of MPI; `comm`: the file's own. `background`: null for calls that block.
  Meeting(const char* call, Comm& comm, Background* background = nullptr)
      : call_(call), comm_(comm), background_(background) {}

  Background* background() const { return background_; }
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
  Background* const background_;
};

}  // namespace ferry::mpi
