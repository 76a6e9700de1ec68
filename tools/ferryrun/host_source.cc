#include "tools/ferryrun/host_source.h"

#include <cstdio>
#include <optional>

#include "client/bootstrap/launched_task.h"
#include "config/environment.h"
#include "tools/ferryrun/allocation.h"
#include "tools/ferryrun/hosts.h"
#include "tools/ferryrun/launchers.h"

namespace ferry::tools {
namespace {

// Chooses among the ways of the allocation's batch system.
void ChooseLauncher(const Allocation& allocation, HostSource* source) {
  std::string why;
  for (const char* const launcher : allocation.launchers) {
    const std::string fault = WhyUnusable(launcher, config::ProcessEnvironment());
    if (fault.empty()) {
      source->launcher = launcher;
      return;
    }
    why += (why.empty() ? "" : ", ") + fault;
  }
  source->remark =
      "other hosts of " + allocation.system + "'s allocation are reached by ssh: " + why;
}

}  // namespace

StatusOr<HostSource> TakeHosts(bool is_launcher_named, Arguments* arguments) {
  if (!arguments->hosts.empty() || arguments->names_nodes) {
    return HostSource{.is_this_host = IsThisHost};
  }
  const StatusOr<std::optional<Allocation>> found =
      FindAllocation(config::ProcessEnvironment(), arguments->allocation, client::HasTerminal());
  FERRY_RETURN_IF_ERROR(found.status());
  if (!found->has_value()) {
    return HostSource{.is_this_host = IsThisHost};
  }
  const Allocation& allocation = **found;
  const auto here = NameOfThisHost(allocation, config::HostName(), IsThisHost);
  FERRY_RETURN_IF_ERROR(TakeAllocation(allocation, here, IsThisHost, arguments));
  if (arguments->verbose) {
    std::fprintf(stderr, "ferryrun: %s\n", Describe(allocation).c_str());
  }
  HostSource source{.is_this_host = [here](const std::string& name) { return name == here; }};
  if (!is_launcher_named) {
    ChooseLauncher(allocation, &source);
  }
  return source;
}

}  // namespace ferry::tools
