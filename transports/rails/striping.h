// The stripes of reads and writes: which rail carries which part of an operation.
//
// An operation of up to `stripe_bytes` is one stripe. A longer one goes in stripes of that size
// over all rails, each of which takes the next stripe when it has finished one. A failed stripe of
// a read goes by another rail, a failed stripe of a write fails the write.
//
// Thread: the progress thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "common/error_code.h"
#include "transports/rails/rail_messages.h"
#include "transports/rails/rails_state.h"

namespace ferry::transport {

class Striping {
 public:
  // The arguments outlive it.
  Striping(RailsState& state, RailMessages& messages);
  Striping(const Striping&) = delete;
  Striping& operator=(const Striping&) = delete;

  // Posts as many stripes as the rails take, and ends the operation if all of it is done.
  void Advance(RailOperation* operation);
  // Advances the operations for which no rail had room.
  void AdvanceParked();
  bool has_parked() const { return !parked_.empty(); }
  // Takes the end of the posted stripe of that number.
  void OnStripeEnd(uint32_t index, ErrorCode code);
  // Fails the operation: nothing more of it is posted.
  void Fail(RailOperation* operation, ErrorCode code);
  // Ends the operation when all of it is done or, if it has failed, when no rail has any of it. The
  // operation then waits to be reported.
  void EndIfDone(RailOperation* operation);

 private:
  struct PostedStripe {
    uint32_t operation = 0;
    uint32_t rail = 0;
    Stripe stripe;
  };

  std::optional<Stripe> NextStripe(const RailOperation& operation) const;
  std::optional<size_t> RailFor(const RailOperation& operation, const RailPeer& peer,
                                const Stripe& stripe, uint32_t full) const;
  ErrorCode PostStripe(RailOperation* operation, const RailPeer& peer, const Stripe& stripe,
                       size_t rail);
  void OnStripeFailed(RailOperation* operation, Stripe stripe, size_t rail, ErrorCode code);

  RailsState& state_;
  RailMessages& messages_;
  std::array<uint64_t, kMaxRails> load_bytes_{};
  std::vector<PostedStripe> posted_stripes_;
  std::vector<uint32_t> free_posted_stripes_;
  std::vector<uint32_t> parked_;
  std::vector<uint32_t> resumed_;  // operations of parked_, while they are tried again
};

}  // namespace ferry::transport
