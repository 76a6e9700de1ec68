// Checks that a descriptor is one that a correct rank writes into the lane of a peer of its node.
// Used by the engine that drains the lane, and by the daemon that is told of a descriptor in it.
//
// Calling thread: any; on a copy of the descriptor.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>

#include "shm/layout/descriptor.h"
#include "shm/layout/lane_layout.h"

namespace ferry::engine {

inline bool IsPlausibleEager(const shm::Descriptor& descriptor) {
  return descriptor.tag >= 0 &&
         ((descriptor.flags & shm::kFlagCell) != 0
              ? descriptor.cell < shm::kLaneCells && descriptor.size_bytes <= shm::kCellBytes
              : descriptor.size_bytes <= shm::kInlineBytes);
}

// `request_limit`: of the sender, which bounds its transfers.
inline bool IsPlausibleFromPeer(const shm::Descriptor& descriptor, uint32_t request_limit) {
  switch (static_cast<shm::DescriptorKind>(descriptor.kind)) {
    case shm::DescriptorKind::kEager:
      return IsPlausibleEager(descriptor);
    case shm::DescriptorKind::kRts: {
      shm::LocalRts rts;
      std::memcpy(&rts, descriptor.payload, sizeof(rts));
      return descriptor.tag >= 0 && rts.transfer != 0 && rts.transfer < request_limit;
    }
    default:
      return false;
  }
}

// Names the descriptor, for a message about what is wrong with it.
inline std::string Describe(const shm::Descriptor& descriptor) {
  shm::LocalRts rts;
  std::memcpy(&rts, descriptor.payload, sizeof(rts));
  return "a descriptor of kind " + std::to_string(descriptor.kind) + ", flags " +
         std::to_string(descriptor.flags) + ", cell " + std::to_string(descriptor.cell) + ", tag " +
         std::to_string(descriptor.tag) + ", " + std::to_string(descriptor.size_bytes) +
         " bytes, transfer " + std::to_string(rts.transfer);
}

}  // namespace ferry::engine
