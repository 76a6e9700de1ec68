#include "tools/ferryrun/agent_tree.h"

#include <algorithm>
#include <utility>

#include "common/own_program.h"
#include "config/environment.h"
#include "tools/ferryrun/agent_protocol.h"
#include "tools/ferryrun/called_hosts.h"
#include "tools/ferryrun/launchers.h"
#include "tools/ferryrun/relay_link.h"

namespace ferry::tools {
namespace {

bool MayBeTree(const AgentPlan& plan) {
  return plan.radix > 0 && plan.hosts.size() > plan.radix &&
         (!plan.options.rsh.empty() || plan.options.launcher == "ssh");
}

StatusOr<std::vector<std::unique_ptr<RemoteHost>>> StartCalled(const AgentPlan& plan) {
  StatusOr<CallCommands> call =
      PlanCalls(plan.options, plan.hosts, OwnProgram(), config::ProcessEnvironment());
  FERRY_RETURN_IF_ERROR(call.status());
  CallPlan calls{.hosts = plan.hosts, .call = std::move(*call), .network = plan.network};
  if (plan.start_limit_ms) {
    calls.first_limit_ms = *plan.start_limit_ms;
    calls.next_limit_ms = *plan.start_limit_ms;
  }
  StatusOr<std::vector<std::unique_ptr<HostStream>>> streams = StartCallers(calls);
  FERRY_RETURN_IF_ERROR(streams.status());
  std::vector<std::unique_ptr<RemoteHost>> started;
  for (size_t i = 0; i < plan.hosts.size(); ++i) {
    started.push_back(std::make_unique<RemoteHost>(plan.hosts[i], std::move((*streams)[i])));
  }
  return started;
}

RelayTree TreeOf(const AgentPlan& plan, const HostGroup& group) {
  const auto first = plan.hosts.begin() + static_cast<ptrdiff_t>(group.first);
  return {.first_channel = static_cast<uint32_t>(group.first),
          .hosts = {first, first + static_cast<ptrdiff_t>(group.count)},
          .launcher = plan.options.launcher,
          .rsh = plan.options.rsh,
          .program = OwnProgram(),
          .radix = plan.radix,
          .grace_ms = plan.grace_ms};
}

}  // namespace

std::vector<HostGroup> SplitHosts(size_t first, size_t count, uint64_t radix) {
  const size_t groups = std::min<uint64_t>(count, radix);
  std::vector<HostGroup> split;
  for (size_t group = 0; group < groups; ++group) {
    const size_t size = count / groups + (group < count % groups ? 1 : 0);
    split.push_back({first, size});
    first += size;
  }
  return split;
}

StatusOr<std::vector<std::unique_ptr<RemoteHost>>> StartAgents(const AgentPlan& plan) {
  if (AgentsCall(plan.options, plan.hosts.size(), plan.radix)) {
    return StartCalled(plan);
  }
  const uint64_t most = MayBeTree(plan) ? plan.radix : plan.hosts.size();
  std::vector<std::unique_ptr<RemoteHost>> started;
  for (const HostGroup& group : SplitHosts(0, plan.hosts.size(), most)) {
    const std::string& name = plan.hosts[group.first];
    const bool leads_on = group.count > 1;
    const StatusOr<std::vector<std::string>> command =
        LauncherCommand(plan.options, name, OwnProgram(), {leads_on ? kRelayFlag : kAgentFlag});
    FERRY_RETURN_IF_ERROR(command.status());
    if (!leads_on) {
      StatusOr<std::unique_ptr<RemoteHost>> host = RemoteHost::Start(name, *command);
      FERRY_RETURN_IF_ERROR(host.status());
      started.push_back(std::move(*host));
      continue;
    }
    StatusOr<std::vector<std::unique_ptr<HostStream>>> streams =
        StartRelay(*command, TreeOf(plan, group));
    FERRY_RETURN_IF_ERROR(streams.status());
    for (size_t i = 0; i < group.count; ++i) {
      started.push_back(
          std::make_unique<RemoteHost>(plan.hosts[group.first + i], std::move((*streams)[i])));
    }
  }
  return started;
}

}  // namespace ferry::tools
