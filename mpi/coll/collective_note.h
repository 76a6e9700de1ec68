// Notes that collectives leave about themselves for those who look at a rank (client/api/calls.h).
//
// Calling thread: that of the call. Nothing blocks.
#pragma once

#include <cstdint>

#include "client/api/calls.h"
#include "coll/problem.h"
#include "mpi/comm/comm.h"

namespace ferry::mpi {

// This rank's part of the payload: the vector, or its own blocks.
uint64_t PayloadBytes(const collective::Problem& problem);
// Names the communicator, the root and the bytes.
void DescribeProblem(const Comm& comm, const collective::Problem& problem,
                     shm::CallDescription* description);

// A blocking call; `problem` is looked at while it lasts, and may still be empty at first.
struct CollectiveNote : client::CallNote {
  CollectiveNote(const char* function, const Comm& comm, uint64_t call_number,
                 const collective::Problem* problem)
      : CallNote(&DescribeIt), function(function), comm(comm), problem(problem) {
    number = call_number;
    has_number = true;
  }

  const char* const function;
  const Comm& comm;
  const collective::Problem* const problem;

 private:
  static void DescribeIt(const CallNote& note, shm::CallDescription* description);
};

}  // namespace ferry::mpi
