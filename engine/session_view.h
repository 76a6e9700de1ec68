// A rank's two segments, as pointers in this process.
//
// The rank that made the segments, its peers (inbox only) and the daemon use one kind of view.
// Built once from mappings whose headers were checked; the view owns nothing.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/status.h"
#include "shm/layout/inbox_layout.h"
#include "shm/layout/session_layout.h"
#include "shm/session_by_rank.h"

namespace ferry::engine {

// The part of a rank's memory that all ranks of the node, and the daemon, may see.
struct InboxView {
  shm::InboxLayout* layout = nullptr;
  uint64_t size_bytes = 0;
  uint32_t rank = 0;
  uint32_t local_size = 0;
  uint32_t request_limit = 0;

  bool valid() const { return layout != nullptr; }
  std::byte* base() const { return reinterpret_cast<std::byte*>(layout); }
  shm::WakeLayout* wake() const { return &layout->wake; }
  shm::LaneLayout* lane(uint32_t index) const {
    return reinterpret_cast<shm::LaneLayout*>(base() + shm::InboxLaneOffset(index));
  }
  // Null for an index that no correct peer names.
  shm::TransferLayout* transfer(uint32_t index) const {
    if (index == 0 || index >= request_limit) {
      return nullptr;
    }
    return reinterpret_cast<shm::TransferLayout*>(base() + shm::InboxTransferOffset(local_size)) +
           index;
  }
};

// The part that only the rank and its daemon see.
struct SessionView {
  shm::SessionLayout* layout = nullptr;
  shm::SessionByRank by_rank;
  uint64_t size_bytes = 0;
  InboxView inbox;
  uint32_t rank = 0;
  uint32_t job_size = 0;
  uint32_t request_limit = 0;

  bool valid() const { return layout != nullptr; }
  std::byte* base() const { return reinterpret_cast<std::byte*>(layout); }
  shm::RequestLayout* request(uint32_t index) const {
    return reinterpret_cast<shm::RequestLayout*>(base() + shm::SessionRequestsOffset()) + index;
  }
  shm::MatchTableLayout* match() const {
    return reinterpret_cast<shm::MatchTableLayout*>(
        base() + shm::PlacesOfSession(job_size, request_limit).match);
  }
};

// The facts about itself that a rank gives when it makes its segments.
struct SegmentPlan {
  uint32_t rank = 0;
  uint32_t job_size = 0;
  uint32_t local_size = 0;
  uint32_t request_limit = 0;     // request slots, slot 0 (unused) included
  uint32_t unexpected_limit = 0;  // match-table entries, entry 0 (unused) included

  uint64_t session_bytes() const {
    return shm::SessionSizeBytes(job_size, request_limit, unexpected_limit);
  }
  uint64_t inbox_bytes() const { return shm::InboxSizeBytes(local_size, request_limit); }
};

// Prepares zeroed segments of the planned sizes; publishes their layout version last.
void InitializeSegments(const SegmentPlan& plan, uint32_t creator_pid, std::byte* session,
                        std::byte* inbox);

// Checks the header of a mapped inbox (magic, both versions named on a mismatch, kind, sizes).
StatusOr<InboxView> ViewInbox(std::byte* base, uint64_t size_bytes);
// Checks both segments of a session and that they belong together.
StatusOr<SessionView> ViewSession(std::byte* session, uint64_t session_bytes, std::byte* inbox,
                                  uint64_t inbox_bytes);

}  // namespace ferry::engine
