// The news that a core tells its home by itself.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "common/error_code.h"
#include "shm/layout/descriptor.h"

namespace ferry::progress {

// Called on the progress thread, seldom: they must not block nor call the core back (post to a loop
// instead). Any may be empty.
struct CoreHooks {
  // A rank wrote what no correct library writes. It is poisoned and no longer listened to; its
  // session should be ended.
  std::function<void(const std::string& job_id, uint32_t rank, const std::string& text)>
      on_violation;
  // Another core sent what no correct one sends, or the other nodes broke their credit: every
  // session of the job here is poisoned with `error`.
  std::function<void(const std::string& job_id, ErrorCode error, const std::string& text)>
      on_job_failed;
  // The network lost a message to another node, or a connection. Nothing is sent to it until the
  // home has found out what it is, and says so by ProgressCore::NodeFailed. Without this hook the
  // node is taken for dead.
  std::function<void(uint64_t link, ErrorCode error, const std::string& text)> on_link_lost;
  // The network, or the limits of the registration cache, refused memory of a rank, whose message
  // fails.
  std::function<void(const std::string& text)> on_memory_refused;
  // A rank says something of its direct link to another one.
  std::function<void(const std::string& job_id, uint32_t rank, uint32_t peer,
                     shm::LinkMatter matter)>
      on_link_wanted;
  // Where somebody else tells the ranks here who is gone: rank `rank` is unreachable for this core,
  // which has failed its own work with it, but has said nothing to the ranks it serves. Called also
  // for what the home has said itself. Without this hook the core tells them by itself
  // (PeerWords::dead).
  std::function<void(const std::string& job_id, uint32_t rank, ErrorCode error)> on_rank_ended;
};

}  // namespace ferry::progress
