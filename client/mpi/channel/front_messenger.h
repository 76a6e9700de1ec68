// The messages of a communicator's collectives, by libferry.
//
// Calling thread: one at a time. Nothing blocks but Copy, while it copies.
#pragma once

#include <unordered_set>
#include <vector>

#include "client/mpi/collective/messenger.h"
#include "client/mpi/comm/comm.h"

namespace ferry::mpi {

class FrontMessenger : public Messenger {
 public:
  // `comm` outlives it. The peers are the group's ranks, or, of an intercommunicator, the ranks of
  // both groups: first those of the group with the lowest rank of the job.
  explicit FrontMessenger(const Comm& comm);

  // This process among the peers, and how many there are.
  int self() const { return self_; }
  int size() const { return static_cast<int>(world_ranks_.size()); }
  int WorldRank(int peer) const { return world_ranks_[static_cast<size_t>(peer)]; }

  ErrorCode StartSend(int peer, uint32_t tag, const void* data, size_t size_bytes,
                      Ticket* ticket) override;
  ErrorCode StartReceive(int peer, uint32_t tag, void* data, size_t size_bytes, Ticket* ticket,
                         size_t* received_bytes) override;
  ErrorCode Test(Ticket ticket, size_t* received_bytes) override;
  ErrorCode Copy(void* to, const void* from, size_t size_bytes) override;
  void* AllocateScratch(size_t size_bytes) override;
  void FreeScratch(void* scratch) override;

 private:
  const uint32_t context_;
  std::vector<int> world_ranks_;  // by peer
  int self_ = 0;
  std::unordered_set<void*> heap_scratch_;  // the rest is the system's
};

}  // namespace ferry::mpi
