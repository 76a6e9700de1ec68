// The hooks by which a core reports events to its home.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "common/error_code.h"
#include "shm/layout/descriptor.h"

namespace ferry::progress {

// Called on the progress thread, seldom. Hooks must not block nor call the core back (post to a
// loop instead). Any may be empty.
struct CoreHooks {
  // A rank wrote what no correct library writes. The core has poisoned it and reads its commands no
  // more; the home should end its session.
  std::function<void(const std::string& job_id, uint32_t rank, const std::string& text)>
      on_violation;
  // Another core sent what no correct one sends, or the other nodes broke their credit: every
  // session of the job here is poisoned with `error`.
  std::function<void(const std::string& job_id, ErrorCode error, const std::string& text)>
      on_job_failed;
  // The network lost a message to another node, or a connection. The core sends nothing to that
  // node until the home has found out the cause, and calls CoreEnds::NodeFailed. Without this
  // hook the node is taken for dead.
  std::function<void(uint64_t link, ErrorCode error, const std::string& text)> on_link_down;
  // The network, or the limits of the registration cache, refused memory of a rank, whose message
  // fails.
  std::function<void(const std::string& text)> on_memory_refused;
  // A rank has written a word about its direct link to another rank.
  std::function<void(const std::string& job_id, uint32_t rank, uint32_t peer,
                     shm::LinkMatter matter)>
      on_link_wanted;
  // A rank here has a message for a node of the job to which there is no way yet: it waits for
  // CoreControl::AddNode. Told once for each node.
  std::function<void(const std::string& job_id, uint32_t node)> on_way_wanted;
  // Set where the home, not the core, tells the ranks here which ranks are gone: rank `rank` is
  // unreachable for this core, which has failed its own work with it, but has not told the ranks
  // that it serves. Also called for ends that the home itself has reported. Without this hook the
  // core tells the ranks (PeerWords::dead).
  std::function<void(const std::string& job_id, uint32_t rank, ErrorCode error)> on_rank_ended;
};

}  // namespace ferry::progress
