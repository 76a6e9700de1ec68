// The timeline of a running job, whose ranks keep their last events (ferryrun --trace).
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/display/new_file.h"
#include "tools/display/table.h"
#include "tools/ferryctl/choice.h"
#include "tools/ferryctl/commands.h"
#include "tools/ferryctl/views.h"
#include "tools/profile/trace_file.h"

namespace ferry::tools {
namespace {

Status WriteOut(std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = write(STDOUT_FILENO, text.data(), text.size());
    if (count < 0 && errno != EINTR) {
      return StatusFromErrno(errno, "writing the trace to standard output");
    }
    text.remove_prefix(count < 0 ? 0 : static_cast<size_t>(count));
  }
  return {};
}

// Its size and its program, as any of the daemons says.
TracedJob Describe(const MeantThere& there) {
  TracedJob job;
  job.id = there.meant.job_id;
  job.name = there.label;
  for (const control::JobStatus& status : JobsOf(there.daemons)) {
    if (status.job_id() == job.id) {
      job.size = std::max(job.size, status.size());
      job.program = status.program();
    }
  }
  return job;
}

}  // namespace

Status TraceJob(const CtlArguments& arguments) {
  const StatusOr<MeantThere> there = FindMeant(arguments, arguments.action);
  FERRY_RETURN_IF_ERROR(there.status());
  if (there->meant.rank.has_value()) {
    return {ErrorCode::kInvalidArgument, "a trace is of all ranks of a job: leave out the rank"};
  }
  TracedJob job = Describe(*there);
  if (!arguments.last.empty()) {
    const StatusOr<uint64_t> last_ns = ReadDuration(arguments.last);
    FERRY_RETURN_IF_ERROR(last_ns.status());
    job.last_ns = *last_ns;
  }
  std::vector<TraceSource> sources;
  for (const Observer& daemon : there->daemons) {
    sources.push_back({[&daemon](const control::JobProfileRequest& request,
                                 const std::function<bool(const control::JobProfilePart&)>& take) {
                         return daemon.Read(request, take);
                       },
                       daemon.daemon().node().name(),
                       {}});
  }
  StatusOr<std::optional<NewFile>> file = FileIfNamed(arguments.output, /*replace=*/true);
  FERRY_RETURN_IF_ERROR(file.status());
  const StatusOr<std::string> said =
      WriteTrace(job, std::move(sources), [&file](std::string_view piece) {
        return file->has_value() ? (*file)->Add(piece) : WriteOut(piece);
      });
  FERRY_RETURN_IF_ERROR(said.status());
  if (!file->has_value()) {
    return {};
  }
  FERRY_RETURN_IF_ERROR((*file)->Commit(""));
  arguments.json ? PrintJson({{"file", arguments.output}})
                 : Print(arguments.output + ": " + *said + "\n");
  return {};
}

}  // namespace ferry::tools
