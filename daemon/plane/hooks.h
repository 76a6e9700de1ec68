// The news that the data plane tells the control plane by itself.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "common/error_code.h"
#include "common/status.h"

namespace ferry::daemon {

// Called on the progress thread, seldom: they must not block nor call the data plane back (post to
// a loop instead). Any may be empty.
struct PlaneHooks {
  // A rank wrote what no correct library writes. It is poisoned and no longer listened to; the
  // control plane should end its session.
  std::function<void(const std::string& job_id, uint32_t rank, const std::string& text)>
      on_violation;
  // A daemon sent what no correct daemon sends, or the other nodes broke their credit: every
  // session of the job here is poisoned with `error`.
  std::function<void(const std::string& job_id, ErrorCode error, const std::string& text)>
      on_job_failed;
  // The network lost a message to a daemon, or a connection. Nothing is sent to it until the
  // control plane has found out what it is, and says so by NodeFailed. Without this hook the daemon
  // is taken for dead.
  std::function<void(uint64_t link, ErrorCode error, const std::string& text)> on_link_lost;
  // The network, or the limits of the registration cache, refused memory of a rank, whose message
  // fails.
  std::function<void(const std::string& text)> on_memory_refused;
  // The rank's Session::reach_settled became true (another thread than the others).
  std::function<void(const std::string& job_id, uint32_t rank)> on_reach;
  // A DataPlane::ImportRegion that returned kWouldBlock has ended (the same thread as on_reach).
  std::function<void(const std::string& job_id, uint32_t rank, uint32_t region,
                     const Status& status)>
      on_import;
};

}  // namespace ferry::daemon
