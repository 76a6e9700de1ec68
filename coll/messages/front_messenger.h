// The messages of collectives, by libferry: those of a communicator, or of a team of OpenSHMEM.
//
// Calling thread: one at a time. Nothing blocks but Copy, while it copies, and ReceiveHeld.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_set>
#include <utility>

#include "client/api/front_end.h"
#include "coll/messenger.h"
#include "common/number_list.h"

namespace ferry::collective {

// Ordinary memory, aligned to 64 bytes, for std::free. Null: there is none.
void* AllocateAligned(size_t size_bytes);

class FrontMessenger : public Messenger {
 public:
  // `front_end` is where the process keeps its connection: null once that has ended, which the
  // messenger may outlive. `world_ranks`: of the job, by peer; `self` is this process among the
  // peers. No other messages have this `context`.
  FrontMessenger(client::FrontEnd* const& front_end, uint32_t context, NumberList world_ranks,
                 int self)
      : front_end_(front_end),
        context_(context),
        world_ranks_(std::move(world_ranks)),
        self_(self) {}

  // This process among the peers, and how many there are.
  int self() const { return self_; }
  int size() const { return static_cast<int>(world_ranks_.size()); }
  int WorldRank(int peer) const { return world_ranks_[static_cast<size_t>(peer)]; }
  const NumberList& world_ranks() const { return world_ranks_; }

  // Patient: for a thread that is about to wait for all that it starts. A small receive is then
  // *held*, not posted: if the thread waits for nothing else, libferry's blocking receive takes the
  // message straight from the lane, at half the cost. Turning it off posts a held receive.
  void SetPatient(bool patient);
  bool has_held() const { return held_.state == Held::State::kHeld; }
  // Blocks until the held message has come, or soon after `end_ns` (MonotonicNs), when it is
  // posted. Test then returns its end. If the receive is refused, such as for its memory, the
  // message is thrown away when it comes, and then Test returns the refusal.
  void ReceiveHeld(uint64_t end_ns);
  void PostHeld();

  ErrorCode StartSend(int peer, uint32_t tag, const void* data, size_t size_bytes,
                      Ticket* ticket) override;
  ErrorCode StartReceive(int peer, uint32_t tag, void* data, size_t size_bytes, Ticket* ticket,
                         size_t* received_bytes) override;
  ErrorCode Test(Ticket ticket, size_t* received_bytes) override;
  void Cancel(Ticket ticket) override;
  ErrorCode Copy(void* to, const void* from, size_t size_bytes) override;
  // Allocates host memory only.
  void* AllocateScratch(size_t size_bytes, int device) override;
  void FreeScratch(void* scratch) override;
  FailureText TextOf(ErrorCode error) override;

 private:
  struct Held {
    enum class State { kNone, kHeld, kPosted, kOver };
    State state = State::kNone;
    client::Message message;
    client::RequestHandle handle = 0;  // once posted
    client::Completion completion;     // once over
    ErrorCode refused = ErrorCode::kOk;
  };

  client::Message MessageTo(int peer, uint32_t tag, const void* data, size_t size_bytes) const;
  void ThrowHeldAway(ErrorCode why);
  ErrorCode TestHeld(size_t* received_bytes);

  client::FrontEnd* const& front_end_;
  const uint32_t context_;
  const NumberList world_ranks_;  // by peer
  const int self_;
  bool is_patient_ = false;
  Held held_;
  std::unordered_set<void*> heap_scratch_;  // the rest is the system's
};

}  // namespace ferry::collective
