// Starts the agents of a job's other hosts: each by a launcher of ferryrun's own, or, where there
// are more than a few, along a tree. Ferryrun then logs in to the first host of each part of them,
// and a relay there (relay.h) logs in to the others of that part, or to the first hosts of its own
// parts; so no host starts more than `radix` launchers. The programs of batch systems start agents
// that call ferryrun (launchers.h, called_hosts.h), one srun, for example, those of all hosts.
//
// As Open MPI does it, whose tree has a radix of 64, too (prte_rml_radix, before that
// routed_radix_max_connections, with plm_ssh_no_tree_spawn to leave it out).
//
// Main thread; nothing blocks but PlanCalls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/status.h"
#include "config/options.h"
#include "tools/ferryrun/remote_host.h"

namespace ferry::tools {

// Hosts that follow each other.
struct HostGroup {
  size_t first = 0;
  size_t count = 0;

  bool operator==(const HostGroup&) const = default;
};

// Pure: divides `count` hosts from `first` on into at most `radix` groups, which differ by one host
// at most. The first host of each group reaches the others of it.
std::vector<HostGroup> SplitHosts(size_t first, size_t count, uint64_t radix);

struct AgentPlan {
  std::vector<std::string> hosts;               // as the user wrote them
  config::Options options;                      // `launcher` and `rsh` count
  uint64_t radix = 0;                           // 0: a launcher for each host, from this one
  uint64_t grace_ms = 0;                        // for agents, when their orders have ended
  std::string network = {};                     // --network, for agents that call
  std::optional<uint64_t> start_limit_ms = {};  // for agents that call; nothing: as CallPlan has it
};

// Starts an agent on every host; they log in side by side. Returns the hosts in their order. There
// is no tree for the programs of batch systems, which start what these count as tasks of the job's
// first host. Errors: LauncherCommand's, PlanCalls' and StartCallers'; a launcher that cannot be
// started on this host.
StatusOr<std::vector<std::unique_ptr<RemoteHost>>> StartAgents(const AgentPlan& plan);

}  // namespace ferry::tools
