// The interface by which rings of devices begin one-sided operations (internode/rma/one_sided.h).
//
// Calling thread: the progress thread. Nothing blocks.
#pragma once

#include <cstdint>
#include <functional>

#include "common/error_code.h"
#include "internode/delivery/directory.h"
#include "internode/delivery/one_sided_state.h"
#include "shm/layout/descriptor.h"
#include "shm/layout/one_sided_layout.h"

namespace ferry::progress {

// The signal of a put: a word of the same rank that changes once the put's bytes have arrived.
struct RingSignal {
  shm::SignalUpdate update = shm::SignalUpdate::kNone;
  uint32_t segment = 0;
  uint64_t offset = 0;
  uint64_t value = 0;
};

// An operation that a ring of a rank asks for: a put, a get, or an atomic one. Kind, width and size
// have been checked; the memory that it names has not.
struct RingCall {
  RingToken token;
  shm::OneSidedOperation operation = shm::OneSidedOperation::kNone;
  uint8_t width = 0;
  bool wants_answer = false;
  uint32_t peer = 0;
  uint32_t segment = 0;  // of the peer
  uint64_t offset = 0;   // in that segment
  uint64_t size_bytes = 0;
  // The rank's bytes of a put or get. Region 0: those of a put, up to kInlinePutBytes, are in the
  // two words below; those of a get, up to 8, are the value.
  shm::Location here{};
  uint64_t operand = 0;
  uint64_t compare = 0;
  RingSignal signal;  // of a put whose bytes are the rank's

  bool has_signal() const { return signal.update != shm::SignalUpdate::kNone; }
  bool is_put() const { return operation == shm::OneSidedOperation::kPut; }
  bool is_get() const { return operation == shm::OneSidedOperation::kGet; }
};

class RingCalls {
 public:
  // Sends the operation to another node. kOk: it is under way, and on_ring_end is called at its
  // end, later. kWouldBlock: it cannot leave yet; try again with the same claim, which belongs to
  // that operation. Any other code: it is impossible. *is_long: later operations may overtake it.
  virtual ErrorCode BeginForRing(ServedRank& rank, const RingCall& call, uint64_t now_ns,
                                 Claim* claim, bool* is_long) = 0;
  // Carries the operation out in memory of a rank of this node. *value: the previous value, or the
  // value that was got.
  virtual ErrorCode CarryOutForRing(ServedRank& rank, const RingCall& call, uint64_t now_ns,
                                    uint64_t* value) = 0;
  std::function<void(ServedRank& rank, const RingToken& token, ErrorCode error, uint64_t value)>
      on_ring_end;
  // Forgets a ring that is gone: results that come for it are neither stored nor reported.
  virtual void ForgetRing(ServedRank& rank, uint64_t ring) = 0;

 protected:
  ~RingCalls() = default;
};

}  // namespace ferry::progress
