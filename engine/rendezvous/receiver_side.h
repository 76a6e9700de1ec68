// The fate of a receive that was announced by an RTR to its source.
//
// Pure. Calling thread: the holder of the rank's lease.
#pragma once

#include <cstdint>

#include "engine/rendezvous/rtr.h"

namespace ferry::engine {

// The messages that a receive takes. `source` and `tag` may be wildcards.
struct ReceivePattern {
  uint32_t context = 0;
  int32_t source = 0;
  int32_t tag = 0;
};

// True if the receive's envelope allows an RTR: it names its source and its tag.
bool IsAdvertisable(const ReceivePattern& pattern);
// True if one message could match both: then the later of two receives is not announced by an RTR.
bool CouldShareAMessage(const ReceivePattern& a, const ReceivePattern& b);

class ReceiveByRtr {
 public:
  using State = shm::RtrState;

  ReceiveByRtr() = default;
  explicit ReceiveByRtr(State state) : state_(state) {}

  State state() const { return state_; }
  // The receive is posted and `seen` messages of its source were taken before.
  Rtr SendRtr(const ReceivePattern& pattern, uint32_t receive, uint32_t generation, uint64_t seen);
  // A message of another way matched the receive: the peer has dropped the RTR, or will.
  void Match() { state_ = State::kQuiet; }
  // The peer announces that it writes. False: it must not; it breaks the rules.
  bool Announce();
  // The receive is to be cancelled. True: it is, at once. False: ask the peer, unless it was asked,
  // and wait for Acknowledge.
  bool Cancel();
  // The peer has given the RTR back. True: the receive is cancelled. False: it was matched
  // meanwhile.
  bool Acknowledge();

 private:
  State state_ = State::kQuiet;
};

}  // namespace ferry::engine
