// The part of a request that partitioned communication needs (MPI 5.0, chapter 4;
// ferry/mpi/ferry_mpi/mpix_partitioned.h): what a program says, and asks, of single partitions.
//
// Calling thread: any, several at a time, also for one request, while it is active.
#pragma once

#include "client/mpi/base/failure.h"

namespace ferry::mpi {

// Gives kernels access to a request; see client/mpi/partitioned/prequest.h.
class PrequestSource;

class Partitioned {
 public:
  // How many partitions the program readies here, and how many arrive. 0: this side has none of
  // these; so a send has no arrivals.
  virtual int readied_partitions() const = 0;
  virtual int arriving_partitions() const = 0;
  // Marks partitions [first, last], which exist, as ready. Does not wait for anybody.
  // MPI_ERR_REQUEST: the request is not active, or one of them was readied in this round: the
  // others are marked all the same.
  virtual Failure Ready(int first, int last) = 0;
  // Whether that partition's data are there; true if the request is not active, and once it has
  // failed. Makes progress. Does not block.
  virtual Failure HasArrived(int partition, bool* has_arrived) = 0;
  // Returns once the other processes of the request have come to this round: from then on what is
  // readied leaves at once. Blocks. MPI_ERR_REQUEST: it is not active.
  virtual Failure Prepare() = 0;
  // Null: kernels cannot use requests of this kind.
  virtual PrequestSource* prequest_source() { return nullptr; }

 protected:
  ~Partitioned() = default;
};

}  // namespace ferry::mpi
