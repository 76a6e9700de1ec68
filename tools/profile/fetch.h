// Asks the daemons of a job for what its measured ranks have written (JobProfile), and for their
// clocks.
//
// Main thread; blocks for at most the time that the asker allows, for each question.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/status.h"
#include "proto/control.pb.h"
#include "tools/profile/node_clock.h"
#include "tools/profile/report.h"

namespace ferry::tools {

// Makes one call of JobProfile of a daemon: take(part) for each part, until it returns false.
using AskProfile =
    std::function<Status(const control::JobProfileRequest& request,
                         const std::function<bool(const control::JobProfilePart&)>& take)>;

// Adds answers of a node's clock to the samples. Errors of the call.
Status AskClock(const AskProfile& ask, const std::string& job_id,
                std::vector<ClockSample>* samples);

// Adds what the daemon has of the job's ranks to `ranks`, which has a place for each rank of the
// job, and to `node`. kNotFound: it knows no such job.
Status FetchReports(const AskProfile& ask, const std::string& job_id, NodeFacts* node,
                    std::vector<RankProfile>* ranks);

}  // namespace ferry::tools
