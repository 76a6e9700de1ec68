// Asks the daemons of a job for what its measured ranks have written (JobProfile).
//
// Main thread; blocks for at most the time that the client was given, for each question.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/status.h"
#include "tools/admin/daemon_client.h"
#include "tools/profile/report.h"

namespace ferry::tools {

// The clock of a daemon against this process's, by the question whose answer came soonest: half of
// the way there and back is the most that it can be wrong by.
struct ClockOffset {
  int64_t offset_ns = 0;  // the daemon's CLOCK_MONOTONIC less ours
  uint64_t error_ns = 0;
};
StatusOr<ClockOffset> AskClock(const LauncherClient& client, const std::string& job_id);

// Adds what the daemon has of the job's ranks to `ranks`, which has a place for each rank of the
// job, and to `node`. kNotFound: it knows no such job.
Status FetchReports(const LauncherClient& client, const std::string& job_id, NodeFacts* node,
                    std::vector<RankProfile>* ranks);

}  // namespace ferry::tools
