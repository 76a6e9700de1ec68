// The report of a job (--report, option job_reports): fetched from its daemons at its end, and
// written for the user.
//
// Main thread; NoteClocks and Gather block for as long as the daemons take to answer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/status.h"
#include "config/options.h"
#include "tools/display/new_file.h"
#include "tools/ferryrun/arguments.h"
#include "tools/ferryrun/job.h"
#include "tools/profile/fetch.h"
#include "tools/profile/report.h"

namespace ferry::tools {

class JobReport {
 public:
  // A daemon of the job.
  struct Node {
    AskProfile ask;
    std::string name;
    std::vector<ClockSample> clocks = {};  // asked before
  };
  struct End {
    JobLabels labels;
    uint64_t wall_ns = 0;
    int exit_code = 0;
  };

  // Returns true if a report of the job is wanted; then its ranks have to be measured.
  static bool IsWanted(const Arguments& arguments, const config::Options& options);
  // Checks that the files can be written, before anything runs. kPermissionDenied, kNotFound,
  // kSystem.
  static StatusOr<JobReport> Create(const Arguments& arguments, const config::Options& options);

  // Asks the daemons, by node of the job, for their clocks, before the ranks begin: with the
  // answers at the end it shows how fast each runs.
  static void NoteClocks(const Job& job, std::vector<Node>* nodes);
  // Asks the daemons for what the ranks have left, when these have ended.
  void Gather(const Job& job, const std::vector<Node>& nodes);
  // Writes the report of what was gathered; what goes wrong is told on standard error.
  void Write(const End& end);

 private:
  JobReport() = default;
  JobProfile Fetch(const Job& job, const std::vector<Node>& nodes, uint32_t program,
                   bool* is_known) const;
  void WriteOne(const JobProfile& profile, uint32_t program);

  bool is_asked_for_ = false;
  uint64_t eager_max_bytes_ = 0;
  bool is_bound_ = false;
  std::vector<JobProfile> profiles_;  // by program, from the first on
  std::string path_;                  // of the report that was asked for; empty: standard error
  std::string folder_;                // for one of each job; empty: none
  std::optional<NewFile> file_;       // of `path_`, for the first program
};

}  // namespace ferry::tools
