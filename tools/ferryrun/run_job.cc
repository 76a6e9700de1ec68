// Finds what a run needs before it begins: options, hosts, places, programs. See launch.h.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include "tools/ferryrun/binding.h"
#include "tools/ferryrun/exit_codes.h"
#include "tools/ferryrun/host_source.h"
#include "tools/ferryrun/job_report.h"
#include "tools/ferryrun/launch.h"
#include "tools/ferryrun/placement.h"
#include "tools/ferryrun/rank_commands.h"
#include "tools/flags/option_flags.h"

namespace ferry::tools {

int RunJob(Arguments arguments) {
  if (const Status status = CountRanksOfNode(&arguments.mapping); !status.ok()) {
    return Fail(kCannotStart, status);
  }
  config::Origins origins;
  StatusOr<config::Options> options = LoadOptions(arguments.options, &origins);
  if (!options.ok()) {
    return Fail(kUsageError, options.status());
  }
  if (!options->collective_table.empty()) {  // rank 0 may run in another directory
    std::error_code ignored;
    options->collective_table =
        std::filesystem::absolute(options->collective_table, ignored).string();
  }
  if (JobReport::IsWanted(arguments, *options) &&
      options->profile.find("report") == std::string::npos) {
    options->profile = options->profile == "trace" ? "report,trace" : "report";
  }
  if (!arguments.trace_file.empty() && options->profile.find("trace") == std::string::npos) {
    options->profile = options->profile == "report" ? "report,trace" : "trace";
  }
  const bool is_launcher_named = origins.contains("launcher") || !options->rsh.empty();
  const StatusOr<HostSource> source = TakeHosts(is_launcher_named, &arguments);
  if (!source.ok()) {
    return Fail(kUsageError, source.status());
  }
  StatusOr<JobLayout> layout = PlanNodes(arguments, *options, source->is_this_host);
  if (!layout.ok()) {
    return Fail(kUsageError, layout.status());
  }
  const auto& nodes = layout->nodes;
  if (!source->remark.empty() &&
      std::any_of(nodes.begin(), nodes.end(), [](const NodePlan& node) { return node.remote; })) {
    std::fprintf(stderr, "ferryrun: %s\n", source->remark.c_str());
  }
  if (const Status status = CheckPrograms(arguments, *layout); !status.ok()) {
    return Fail(status.code() == ErrorCode::kInvalidArgument ? kUsageError : ExitCodeOf(status),
                status);
  }
  StatusOr<SignalSource> signals = SignalSource::Create();
  if (!signals.ok()) {
    return Fail(kCannotStart, signals.status());
  }
  return RunLaunch(arguments, *options, source->launcher, std::move(*layout), std::move(*signals));
}

}  // namespace ferry::tools
