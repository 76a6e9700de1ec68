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

}  // namespace

StatusOr<JobTrace> JobTrace::Create(const Arguments& arguments) {
  StatusOr<NewFile> file = NewFile::Create(arguments.trace_file, /*replace=*/true);
  FERRY_RETURN_IF_ERROR(file.status());
  return JobTrace(arguments.trace_file, arguments.trace_last_ns, std::move(*file));
}

bool JobTrace::WriteOne(const Job& job, const std::vector<Node>& nodes, const JobLabels& labels,
                        uint32_t program) {
  std::vector<TraceSource> sources;
  for (const Node& node : nodes) {
    sources.push_back({node.ask, node.name, node.clocks});
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
  sentences_.push_back(status.ok() ? path + ": " + *said : "no trace: " + status.message());
  return status.ok();
}

void JobTrace::Write(const Job& job, const std::vector<Node>& nodes, const JobLabels& labels) {
  for (uint32_t program = 1; program <= kMostPrograms && WriteOne(job, nodes, labels, program);
       ++program) {
  }
}

void JobTrace::Tell() const {
  for (const std::string& sentence : sentences_) {
    std::fprintf(stderr, "ferryrun: %s\n", sentence.c_str());
  }
}

}  // namespace ferry::tools
