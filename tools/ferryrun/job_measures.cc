#include "tools/ferryrun/job_measures.h"

#include <utility>

namespace ferry::tools {
namespace {

// The way to the daemon of a node: `host` leads there, or `client`, if it is here.
AskProfile WayTo(Supervisor* supervisor, RemoteHost* host, const LauncherClient* client) {
  return [=](const control::JobProfileRequest& request, const Supervisor::TakeProfilePart& take) {
    return host != nullptr ? supervisor->AskProfile(host, request, take)
                           : client->Read(&LauncherClient::Stub::JobProfile, request, take);
  };
}

}  // namespace

StatusOr<JobMeasures> JobMeasures::Create(const Arguments& arguments,
                                          const config::Options& options) {
  JobMeasures made;
  if (JobReport::IsWanted(arguments, options)) {
    StatusOr<JobReport> report = JobReport::Create(arguments, options);
    FERRY_RETURN_IF_ERROR(report.status());
    made.report_.emplace(std::move(*report));
  }
  if (!arguments.trace_file.empty()) {
    StatusOr<JobTrace> trace = JobTrace::Create(arguments);
    FERRY_RETURN_IF_ERROR(trace.status());
    made.trace_.emplace(std::move(*trace));
  }
  return made;
}

void JobMeasures::Begin(const Job& job, const Daemons& daemons) {
  if (!report_ && !trace_) {
    return;
  }
  auto serving = daemons.serving.begin();
  for (size_t node = 0; node < daemons.hosts.size(); ++node) {
    RemoteHost* const host = daemons.hosts[node].get();
    const LauncherClient* const client = host == nullptr ? &(serving++)->client : nullptr;
    nodes_.push_back(
        {WayTo(daemons.supervisor, host, client), daemons.layout.nodes[node].host});
  }
  JobReport::NoteClocks(job, &nodes_);
}

void JobMeasures::Gather(const Job& job, const JobLabels& labels) {
  if (trace_) {
    trace_->Write(job, nodes_, labels);
  }
  if (report_) {
    report_->Gather(job, nodes_);
  }
}

void JobMeasures::Write(const JobReport::End& end) {
  if (trace_) {
    trace_->Tell();
  }
  if (report_) {
    report_->Write(end);
  }
}

}  // namespace ferry::tools
