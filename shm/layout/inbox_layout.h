// A rank's inbox segment, which its peers on the node map too.
//
// InboxLayout, then LaneLayout[local_size + 2] (one lane per rank of the node by local index; the
// last two carry arrivals from other nodes: the daemon's, and those of the rank's direct links),
// then TransferLayout[request_limit].
#pragma once

#include <cstdint>

#include "shm/layout/lane_layout.h"
#include "shm/layout/layout_check.h"
#include "shm/layout/segment_header.h"
#include "shm/layout/transfer_layout.h"
#include "shm/layout/wake_layout.h"

namespace ferry::shm {

struct alignas(4096) InboxLayout {
  SegmentHeader header;
  WakeLayout wake;
};
FERRY_ASSERT_LAYOUT(InboxLayout, 4096);
FERRY_ASSERT_OFFSET(InboxLayout, header, 0);
FERRY_ASSERT_OFFSET(InboxLayout, wake, 128);

inline constexpr uint64_t InboxLaneOffset(uint32_t lane) {
  return sizeof(InboxLayout) + uint64_t{lane} * sizeof(LaneLayout);
}

// After the lanes of the node's ranks comes the daemon's; then that of the rank's own core, which
// brings the messages of direct links.
inline constexpr uint32_t DaemonLane(uint32_t local_size) { return local_size; }
inline constexpr uint32_t LinkLane(uint32_t local_size) { return local_size + 1; }
inline constexpr uint32_t LaneCount(uint32_t local_size) { return local_size + 2; }
// Returns true for the lanes that bring messages of ranks of other nodes.
inline constexpr bool IsRemoteLane(uint32_t lane, uint32_t local_size) {
  return lane >= local_size;
}

inline constexpr uint64_t InboxTransferOffset(uint32_t local_size) {
  return InboxLaneOffset(LaneCount(local_size));
}

inline constexpr uint64_t InboxSizeBytes(uint32_t local_size, uint32_t request_limit) {
  return (InboxTransferOffset(local_size) + uint64_t{request_limit} * sizeof(TransferLayout) +
          4095) &
         ~uint64_t{4095};
}

}  // namespace ferry::shm
