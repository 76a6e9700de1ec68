// ServedSegments: what a core knows of a rank that it serves: its identity, its two segments, and
// (Seat) the places in these by which rank and core exchange descriptors.
//
// The identity and the segments never change after the rank was added to the core.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <string>

#include "shm/layout/inbox_layout.h"
#include "shm/layout/session_layout.h"
#include "shm/segment.h"
#include "shm/session_by_rank.h"

namespace ferry::progress {

struct ServedSegments {
  std::string job_id;
  uint32_t rank = 0;
  uint32_t local_index = 0;    // its lane in every inbox of the node
  uint32_t local_size = 0;     // ranks of the job on this node
  uint32_t job_size = 0;       // and on all
  uint32_t request_limit = 0;  // copied out when the segments were checked: the rank can change it
  // For copies through staging blocks: its process, and whether the kernel allows access to that.
  pid_t pid = 0;
  std::atomic<bool> private_memory_reachable = false;
  // A home that does not own the mappings releases them before this is destroyed
  // (Mapping::Release).
  shm::Mapping session_map;
  shm::Mapping inbox_map;

  shm::SessionLayout* layout() const {
    return reinterpret_cast<shm::SessionLayout*>(session_map.base());
  }
  shm::SessionByRank by_rank() const {
    return shm::SessionByRank::In(session_map.base(), job_size, request_limit);
  }
  shm::InboxLayout* inbox() const { return reinterpret_cast<shm::InboxLayout*>(inbox_map.base()); }
};

// The places in a rank's segments by which one core serves the rank.
struct Seat {
  shm::LaneLayout* commands = nullptr;        // the lane from the rank to the core
  shm::WakeLayout* wake = nullptr;            // by which the rank wakes the core
  uint32_t lane = 0;                          // of the rank's inbox, for arriving messages
  shm::OneSidedFailures* failures = nullptr;  // failures that the core reports to the rank
};

// The seat of ferryd, which carries all messages between nodes but those of direct links.
inline Seat DaemonSeat(const ServedSegments& rank) {
  return {&rank.layout()->to_daemon, &rank.layout()->daemon_wake, shm::DaemonLane(rank.local_size),
          &rank.layout()->failures[0]};
}
// The seat of the rank's own core, for its direct links.
inline Seat LinkSeat(const ServedSegments& rank) {
  return {&rank.layout()->to_link, &rank.layout()->link_wake, shm::LinkLane(rank.local_size),
          &rank.layout()->failures[1]};
}

}  // namespace ferry::progress
