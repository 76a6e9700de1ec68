// Short messages whose data have gaps, in calls that end with the message over: they are packed on
// the stack of the call, and need neither a request nor memory of the heap.
//
// Calling thread: the caller's. Packing blocks while it copies.
#pragma once

#include <cstddef>
#include <cstdint>

#include "mpi/api/message_arguments.h"

namespace ferry::mpi {

class ShortPacked {
 public:
  // Resolve has checked the arguments.
  static bool Fits(const MessageArguments& arguments, const Envelope& envelope) {
    return arguments.count * envelope.type->size_bytes() <= kMostBytes;
  }

  // Has the envelope's message lie here. Lives until the message is over.
  ShortPacked(const MessageArguments& arguments, Envelope* envelope)
      : payload_(PayloadOf(arguments, *envelope)) {
    envelope->message.buffer = bytes_;
    envelope->message.size_bytes = static_cast<uint64_t>(payload_.size_bytes());
  }

  Failure Pack() { return payload_.CopyOut(bytes_); }
  // Brings what has been received to its places.
  Failure Unpack(uint64_t bytes) const {
    return payload_.CopyIn(bytes_, static_cast<int64_t>(bytes));
  }

 private:
  static constexpr int64_t kMostBytes = 8192;

  const Payload payload_;
  alignas(64) std::byte bytes_[kMostBytes];
};

// Sends short data with gaps, if they can leave at once. False: nothing was sent.
bool SendShortNow(const MessageArguments& send, Envelope* out);

}  // namespace ferry::mpi
