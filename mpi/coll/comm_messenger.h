// The messages of a communicator's collectives: also between the two groups of an
// intercommunicator, and with scratch memory of devices.
//
// Calling thread: one at a time. Blocks as FrontMessenger does.
#pragma once

#include <cstddef>
#include <vector>

#include "coll/messages/front_messenger.h"
#include "common/number_list.h"
#include "mpi/comm/comm.h"

namespace ferry::mpi {

// The two groups of an intercommunicator as the peers of its channel: first the group with the
// lowest rank of the job.
struct Sides {
  std::vector<int> own;     // by rank in the group: which peer that is
  std::vector<int> remote;  // of the other group
};
Sides SidesOf(const Comm& inter);

class CommMessenger : public collective::FrontMessenger {
 public:
  // `comm` outlives it. The peers are the group's ranks, or, of an intercommunicator, the ranks of
  // both groups (SidesOf).
  explicit CommMessenger(const Comm& comm);

  void* AllocateScratch(size_t size_bytes, int device) override;
  void FreeScratch(void* scratch) override;

 private:
  struct Peers {
    NumberList world_ranks;
    int self;
  };
  CommMessenger(const Comm& comm, Peers peers);
  static Peers PeersOf(const Comm& comm);
};

}  // namespace ferry::mpi
