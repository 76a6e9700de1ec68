// The two groups of an intercommunicator as the peers of its channel: first the group with the
// lowest rank of the job.
//
// Pure but for what a communicator is; any thread; nothing blocks.
#pragma once

#include <vector>

#include "client/mpi/comm/comm.h"

namespace ferry::mpi {

struct Sides {
  std::vector<int> own;     // by rank in the group: which peer that is
  std::vector<int> remote;  // of the other group
};

Sides SidesOf(const Comm& inter);

}  // namespace ferry::mpi
