// Asking the peer that owns memory for the keys of its rails, and answering such questions
// (rail_keys.h).
//
// Thread: the progress thread.
#pragma once

#include <cstdint>
#include <vector>

#include "transports/rails/rail_messages.h"
#include "transports/rails/rails_state.h"
#include "transports/rails/striping.h"

namespace ferry::transport {

class KeyExchange {
 public:
  // The arguments outlive it.
  KeyExchange(RailsState& state, RailMessages& messages, Striping& striping);
  KeyExchange(const KeyExchange&) = delete;
  KeyExchange& operator=(const KeyExchange&) = delete;

  // Asks for the keys that the operation needs. It goes on when they come, or fails after the
  // timeout.
  void Want(RailOperation* operation);
  // Drops a question, if there is one: the operation has failed.
  void Drop(const RailOperation& operation);
  // Extends the deadlines by a time without calls.
  void Postpone(uint64_t gap_ns);
  void Answer(const RailMessage& question);
  void OnAnswer(const RailMessage& answer);
  // Repeats questions that have had no answer, and ends operations that waited too long.
  void AskAgain();
  // Returns the time of the next call of AskAgain that is due; UINT64_MAX: none.
  uint64_t NextNs() const;
  // Returns how many operations have waited too long.
  uint64_t timeouts() const { return timeouts_; }

 private:
  void Ask(const RmaRequest& request);

  RailsState& state_;
  RailMessages& messages_;
  Striping& striping_;
  std::vector<uint32_t> asking_;  // operations that wait for keys
  uint64_t timeouts_ = 0;         // that no rail has counted
};

}  // namespace ferry::transport
