// What a core needs of a rank that it serves: who it is, its two segments, and where in these the
// two meet.
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

namespace ferry::progress {

struct ServedSegments {
  std::string job_id;
  uint32_t rank = 0;
  uint32_t local_index = 0;    // its lane in every inbox of the node
  uint32_t local_size = 0;     // ranks of the job on this node
  uint32_t job_size = 0;       // and on all
  uint32_t request_limit = 0;  // copied out when the segments were checked: the rank can change it
  // For copies by way of a stage: its process, and whether that may be reached.
  pid_t pid = 0;
  std::atomic<bool> private_memory_reachable = false;
  // A home whose mappings are somebody else's releases them before the end (Mapping::Release).
  shm::Mapping session_map;
  shm::Mapping inbox_map;

  shm::SessionLayout* layout() const {
    return reinterpret_cast<shm::SessionLayout*>(session_map.base());
  }
  shm::InboxLayout* inbox() const { return reinterpret_cast<shm::InboxLayout*>(inbox_map.base()); }
};

// Where a core serves a rank.
struct Seat {
  shm::LaneLayout* commands = nullptr;        // what the rank says to it
  shm::WakeLayout* wake = nullptr;            // by which the rank wakes it
  uint32_t lane = 0;                          // of the rank's inbox, for what arrives
  shm::OneSidedFailures* failures = nullptr;  // which it tells the rank
};

// ferryd's, for all messages between nodes,
inline Seat DaemonSeat(const ServedSegments& rank) {
  return {&rank.layout()->to_daemon, &rank.layout()->daemon_wake, shm::DaemonLane(rank.local_size),
          &rank.layout()->failures[0]};
}
// and that of the rank's own core, for its direct links.
inline Seat LinkSeat(const ServedSegments& rank) {
  return {&rank.layout()->to_link, &rank.layout()->link_wake, shm::LinkLane(rank.local_size),
          &rank.layout()->failures[1]};
}

}  // namespace ferry::progress
