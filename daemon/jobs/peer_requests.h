// The requests about jobs that daemons send each other: checks of those that come in, and which of
// those sent out are worth repeating.
#pragma once

#include <cstdint>
#include <string>

#include "common/status.h"
#include "daemon/jobs/jobs.h"

namespace ferry::daemon {

// The job that another daemon's request is about. kNotFound; kPermissionDenied: `proof` is none of
// the job's secret.
StatusOr<JobRecord*> FindJobOfPeer(const Jobs& jobs, const std::string& job_id,
                                   const std::string& proof, uint64_t incarnation);
// Ok if `proof` is of that secret.
Status CheckProof(const std::string& secret, const std::string& job_id, const std::string& proof,
                  uint64_t incarnation);
// Checks that the daemon at `caller` is that node of the job. kInvalidArgument, kPermissionDenied.
Status CheckNode(const JobRecord& job, uint32_t node, const std::string& caller);

// True if another daemon may take later what it has refused with `status`.
bool IsWorthAnotherTry(const Status& status);

}  // namespace ferry::daemon
