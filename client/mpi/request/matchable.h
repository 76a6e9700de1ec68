// The part of a request that ferry/mpi/mpix.h needs: how it is matched for life, and what a queue
// starts.
//
// Calling thread: see request.h. Nothing blocks.
#pragma once

#include <vector>

#include "client/core/front_end.h"
#include "client/mpi/error/failure.h"

namespace ferry::mpi {

class Matchable {
 public:
  // Adds libferry's requests that are to be matched; makes them, if need be. MPI_ERR_REQUEST,
  // MPI_ERR_TYPE, MPI_ERR_NO_MEM: why it cannot be matched.
  virtual Failure AddOffered(std::vector<client::RequestHandle>* requests) = 0;
  virtual Failure IsMatched(bool* matched) = 0;
  // Finds what queues start and wait for; 0: nothing, it is complete at once. MPI_ERR_TYPE: streams
  // cannot. Does not check that it is matched: others do, if there is anything to match.
  virtual Failure FindEnqueued(client::RequestHandle* handle) = 0;

 protected:
  ~Matchable() = default;
};

}  // namespace ferry::mpi
