// The messages of a communicator's collectives, by libferry.
//
// Calling thread: one at a time. Nothing blocks but Copy, while it copies.
#pragma once

#include <unordered_set>
#include <vector>

#include "client/core/front_end.h"
#include "client/mpi/collective/messenger.h"
#include "client/mpi/comm/comm.h"

namespace ferry::mpi {

// The two groups of an intercommunicator as the peers of its channel: first the group with the
// lowest rank of the job.
struct Sides {
  std::vector<int> own;     // by rank in the group: which peer that is
  std::vector<int> remote;  // of the other group
};
Sides SidesOf(const Comm& inter);

class FrontMessenger : public Messenger {
 public:
  // `comm` outlives it. The peers are the group's ranks, or, of an intercommunicator, the ranks of
  // both groups (SidesOf).
  explicit FrontMessenger(const Comm& comm);

  // This process among the peers, and how many there are.
  int self() const { return self_; }
  int size() const { return static_cast<int>(world_ranks_.size()); }
  int WorldRank(int peer) const { return world_ranks_[static_cast<size_t>(peer)]; }
  const std::vector<int>& world_ranks() const { return world_ranks_; }

  // While a thread is about to wait for whatever it starts: a small receive is *held*, not posted,
  // for if it turns out to be all that there is to wait for, libferry's blocking receive takes the
  // message straight from the lane, at half the cost. Turning it off posts what is held.
  void SetPatient(bool patient);
  bool has_held() const { return held_.state == Held::State::kHeld; }
  // Blocks until the held message has come, or soon after `end_ns` (MonotonicNs), when it is
  // posted. Test tells of it.
  void ReceiveHeld(uint64_t end_ns);
  void PostHeld();

  ErrorCode StartSend(int peer, uint32_t tag, const void* data, size_t size_bytes,
                      Ticket* ticket) override;
  ErrorCode StartReceive(int peer, uint32_t tag, void* data, size_t size_bytes, Ticket* ticket,
                         size_t* received_bytes) override;
  ErrorCode Test(Ticket ticket, size_t* received_bytes) override;
  ErrorCode Copy(void* to, const void* from, size_t size_bytes) override;
  void* AllocateScratch(size_t size_bytes, int device) override;
  void FreeScratch(void* scratch) override;

 private:
  struct Held {
    enum class State { kNone, kHeld, kPosted, kOver };
    State state = State::kNone;
    client::Message message;
    client::RequestHandle handle = 0;  // once posted
    client::Completion completion;     // once over
  };

  client::Message MessageTo(int peer, uint32_t tag, const void* data, size_t size_bytes) const;
  ErrorCode TestHeld(size_t* received_bytes);

  const uint32_t context_;
  std::vector<int> world_ranks_;  // by peer
  int self_ = 0;
  bool is_patient_ = false;
  Held held_;
  std::unordered_set<void*> heap_scratch_;  // the rest is of devices, or the system's
};

}  // namespace ferry::mpi
