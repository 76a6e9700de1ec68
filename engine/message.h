// Messages that have no request, as callers of the engine describe and get them.
//
// Plain data: any thread.
#pragma once

#include <cstdint>

#include "shm/layout/descriptor.h"
#include "shm/layout/transfer_layout.h"

namespace ferry::engine {

struct SendArguments {
  uint32_t destination = 0;
  uint32_t context = 0;
  int32_t tag = 0;
  uint64_t size_bytes = 0;
};

struct ProbeResult {
  int32_t source = 0;
  int32_t tag = 0;
  uint64_t size_bytes = 0;
};

// A small message that was taken from its lane.
struct EagerMessage {
  uint32_t source;
  int32_t tag;
  uint64_t size_bytes;
  uint32_t lane;
  uint32_t cell;  // where the data lies, or kNoCell: in `payload`
  uint8_t payload[shm::kInlineBytes];
};

// A message of the node that its sender announces, at the head of its lane.
struct AnnouncedMessage {
  uint32_t source;
  int32_t tag;
  uint64_t size_bytes;
  uint32_t lane;
  shm::TransferLayout* transfer;
  uint32_t generation;
  shm::Location where;  // in the source's memory
};

}  // namespace ferry::engine
