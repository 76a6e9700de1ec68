// The timeline of a job (--trace): fetched from its daemons at its end, and written for the user.
//
// Main thread; Write blocks for as long as the daemons take to answer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/status.h"
#include "tools/display/new_file.h"
#include "tools/ferryrun/arguments.h"
#include "tools/ferryrun/job.h"
#include "tools/ferryrun/job_report.h"
#include "tools/profile/trace_file.h"

namespace ferry::tools {

class JobTrace {
 public:
  using Node = JobReport::Node;

  // Checks that the file can be written, before anything runs. Errors of NewFile::Create.
  static StatusOr<JobTrace> Create(const Arguments& arguments);

  // Asks the daemons, by node of the job, and writes the file.
  void Write(const Job& job, const std::vector<Node>& nodes, const JobLabels& labels);
  // Says on standard error what has been written, or why nothing.
  void Tell() const;

 private:
  JobTrace(std::string path, uint64_t last_ns, NewFile file)
      : path_(std::move(path)), last_ns_(last_ns), file_(std::move(file)) {}
  bool WriteOne(const Job& job, const std::vector<Node>& nodes, const JobLabels& labels,
                uint32_t program);

  std::string path_;
  uint64_t last_ns_;
  std::optional<NewFile> file_;         // for the first program
  std::vector<std::string> sentences_;  // for Tell
};

}  // namespace ferry::tools
