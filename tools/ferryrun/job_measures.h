// The report (--report) and the timeline (--trace) of a job, from what its measured ranks have left
// with its daemons. These are asked at its end, on other hosts by agents.
//
// Main thread; Begin and Gather block for as long as the daemons take to answer.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "common/status.h"
#include "config/options.h"
#include "tools/ferryrun/arguments.h"
#include "tools/ferryrun/daemons.h"
#include "tools/ferryrun/job.h"
#include "tools/ferryrun/job_report.h"
#include "tools/ferryrun/job_trace.h"
#include "tools/ferryrun/node_plan.h"
#include "tools/ferryrun/remote_host.h"
#include "tools/ferryrun/supervisor.h"

namespace ferry::tools {

class JobMeasures {
 public:
  // Checks that the files can be written, before anything runs. Errors of NewFile::Create.
  static StatusOr<JobMeasures> Create(const Arguments& arguments, const config::Options& options);

  // The daemons of the job; all outlive this object. `hosts`: by node, null if it is here;
  // `serving`: those here.
  struct Daemons {
    const JobLayout& layout;
    const std::vector<std::unique_ptr<RemoteHost>>& hosts;
    const std::vector<ServingDaemon>& serving;
    Supervisor* supervisor;
  };
  // Asks them for their clocks before the ranks begin, if anything is to be written of the job.
  void Begin(const Job& job, const Daemons& daemons);
  // Asks for what the ranks have left, when these have ended.
  void Gather(const Job& job, const JobLabels& labels);
  // Writes it; what goes wrong is told on standard error.
  void Write(const JobReport::End& end);

 private:
  std::optional<JobReport> report_;  // that is wanted
  std::optional<JobTrace> trace_;    // likewise
  std::vector<JobReport::Node> nodes_;
};

}  // namespace ferry::tools
