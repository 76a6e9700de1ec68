// Asks what a rank waits for: here, or the daemon of its node over the link to it.
//
// Calling thread: any but the control thread; blocks as WhyFollower says.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "daemon/control/control_loop.h"
#include "daemon/control/job_registry.h"
#include "daemon/control/peer_links.h"
#include "daemon/control/why.h"
#include "daemon/control/why_follower.h"

namespace ferry::daemon {

class NodeAsker final : public WhyAsker {
 public:
  // All outlive it. `quiet` is the control thread's.
  NodeAsker(ControlLoop& loop, const JobRegistry& registry, PeerLinks& links,
            const DataPlane& data_plane, QuietLog* quiet)
      : loop_(loop), registry_(registry), links_(links), data_plane_(data_plane), quiet_(quiet) {}

  // kNotFound, kNodeUnreachable, kTimeout, and what the other daemon says.
  StatusOr<control::RankWait> Ask(const std::string& job_id, uint32_t rank) override;

 private:
  struct Answer;
  void Begin(const std::string& job_id, uint32_t rank, const std::shared_ptr<Answer>& answer);

  ControlLoop& loop_;
  const JobRegistry& registry_;
  PeerLinks& links_;
  const DataPlane& data_plane_;
  QuietLog* const quiet_;
};

}  // namespace ferry::daemon
