#include "tools/ferryrun/job_trace.h"

#include <cstdio>
#include <utility>

#include "common/job_name.h"

namespace ferry::tools {
namespace {

// Of a script that starts more programs of Ferry than this, one after the other, the first ones.
constexpr uint32_t kMostPrograms = 64;

// That of a later program: "out.2.json".
std::string PathOf(const std::string& path, uint32_t program) {
  if (program == 1) {
    return path;
  }
  const size_t dot = path.rfind('.');
  const size_t slash = path.rfind('/');
  const bool has_suffix = dot != std::string::npos && (slash == std::string::npos || dot > slash);
  const size_t end = has_suffix ? dot : path.size();
  return path.substr(0, end) + "." + std::to_string(program) + path.substr(end);
}

AskProfile AskOf(const LauncherClient* client) {
  if (client == nullptr) {
    return {};
  }
  return [client](const control::JobProfileRequest& request,
                  const std::function<bool(const control::JobProfilePart&)>& take) {
    return client->Read(&LauncherClient::Stub::JobProfile, request, take);
  };
}

}  // namespace

StatusOr<JobTrace> JobTrace::Create(const Arguments& arguments) {
  StatusOr<NewFile> file = NewFile::Create(arguments.trace_file, /*replace=*/true);
  FERRY_RETURN_IF_ERROR(file.status());
  return JobTrace(arguments.trace_file, arguments.trace_last_ns, std::move(*file));
}

void JobTrace::NoteClocks(const Job& job, const std::vector<Node>& nodes) {
  clocks_.resize(nodes.size());
  for (size_t node = 0; node < nodes.size(); ++node) {
    if (const AskProfile ask = AskOf(nodes[node].client); ask != nullptr) {
      (void)AskClock(ask, TextOf(JobName{job.id(), 1}), &clocks_[node]);
    }
  }
}

bool JobTrace::WriteOne(const Job& job, const std::vector<Node>& nodes, const JobLabels& labels,
                        uint32_t program) {
  std::vector<TraceSource> sources;
  for (size_t node = 0; node < nodes.size(); ++node) {
    sources.push_back({AskOf(nodes[node].client), nodes[node].name,
                       node < clocks_.size() ? clocks_[node] : std::vector<ClockSample>()});
  }
  const TracedJob traced{.id = TextOf(JobName{job.id(), program}),
                         .name = labels.name.empty() ? labels.program : labels.name,
                         .program = labels.program,
                         .size = job.size(),
                         .last_ns = last_ns_};
  const std::string path = PathOf(path_, program);
  StatusOr<std::string> said =
      WriteTrace(traced, std::move(sources), [&](std::string_view piece) -> Status {
        if (!file_.has_value()) {
          StatusOr<NewFile> file = NewFile::Create(path, /*replace=*/true);
          FERRY_RETURN_IF_ERROR(file.status());
          file_.emplace(std::move(*file));
        }
        return file_->Add(piece);
      });
  if (!said.ok() && said.status().code() == ErrorCode::kNotFound && program != 1) {
    return false;  // there was no such program
  }
  Status status = said.status();
  if (said.ok()) {
    status = file_->Commit("");
    file_.reset();
  }
  if (status.ok()) {
    std::fprintf(stderr, "ferryrun: %s: %s\n", path.c_str(), said->c_str());
  } else {
    std::fprintf(stderr, "ferryrun: no trace: %s\n", status.message().c_str());
  }
  return status.ok();
}

void JobTrace::Write(const Job& job, const std::vector<Node>& nodes, const JobLabels& labels) {
  for (uint32_t program = 1; program <= kMostPrograms && WriteOne(job, nodes, labels, program);
       ++program) {
  }
}

}  // namespace ferry::tools
