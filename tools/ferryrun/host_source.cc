#include "tools/ferryrun/host_source.h"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <optional>
#include <vector>

#include "client/bootstrap/launched_task.h"
#include "config/environment.h"
#include "config/loader.h"
#include "config/toml_loader.h"
#include "tools/ferryrun/allocation.h"
#include "tools/ferryrun/hosts.h"
#include "tools/ferryrun/process.h"

namespace ferry::tools {
namespace {

// Returns true if the user says how other hosts are reached: in the file, by a variable or by a
// flag. All of them have been read once, so errors in them are known.
bool NamesLauncher(const config::Options& options, const Arguments& arguments) {
  config::Options said;
  said.launcher.clear();
  if (!options.config_file.empty()) {
    (void)config::ApplyToml(options.config_file, &said);
  }
  (void)config::ApplyEnvironment(config::ProcessEnvironment(), &said);
  std::vector<const char*> flags;
  std::transform(arguments.options.begin(), arguments.options.end(), std::back_inserter(flags),
                 [](const std::string& flag) { return flag.c_str(); });
  (void)config::ApplyFlags(flags, &said);
  return !said.launcher.empty() || !said.rsh.empty();
}

bool HasProgram(const std::string& name) {
  const auto path = config::FindVariable(config::ProcessEnvironment(), "PATH");
  return FindProgram(name, path.value_or("")).ok();
}

}  // namespace

StatusOr<HostSource> TakeHosts(const config::Options& options, Arguments* arguments) {
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
  return HostSource{.is_this_host = [here](const std::string& name) { return name == here; },
                    .by_srun = allocation.is_reached_by_srun &&
                               !NamesLauncher(options, *arguments) && HasProgram("srun")};
}

}  // namespace ferry::tools
