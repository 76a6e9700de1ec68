#include "tools/ferryrun/host_source.h"

#include <cstdio>
#include <optional>

#include "client/bootstrap/launched_task.h"
#include "config/environment.h"
#include "tools/ferryrun/allocation.h"
#include "tools/ferryrun/hosts.h"
#include "tools/ferryrun/process.h"

namespace ferry::tools {
namespace {

bool HasProgram(const std::string& name) {
  const auto path = config::FindVariable(config::ProcessEnvironment(), "PATH");
  return FindProgram(name, path.value_or("")).ok();
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
  const std::string launcher = allocation.launcher;
  const bool is_usable = !launcher.empty() && !is_launcher_named && HasProgram(launcher);
  return HostSource{.is_this_host = [here](const std::string& name) { return name == here; },
                    .launcher = is_usable ? launcher : ""};
}

}  // namespace ferry::tools
