#include "daemon/jobs/peer_requests.h"

#include "daemon/tls/secrets.h"

namespace ferry::daemon {

StatusOr<JobRecord*> FindJobOfPeer(const Jobs& jobs, const std::string& job_id,
                                   const std::string& proof, uint64_t incarnation) {
  JobRecord* job = jobs.FindJob(job_id);
  if (job == nullptr) {
    return Status(ErrorCode::kNotFound, "there is no job " + job_id + " on this daemon");
  }
  FERRY_RETURN_IF_ERROR(CheckProof(job->spec.secret, job_id, proof, incarnation));
  return job;
}

Status CheckProof(const std::string& secret, const std::string& job_id, const std::string& proof,
                  uint64_t incarnation) {
  return ConstantTimeEquals(proof, JobProof(secret, job_id, incarnation))
             ? Status()
             : Status(ErrorCode::kPermissionDenied,
                      "the caller does not know the secret of job " + job_id);
}

Status CheckNode(const JobRecord& job, uint32_t node, const std::string& caller) {
  if (node >= job.nodes.size() || node == job.spec.node) {
    return {ErrorCode::kInvalidArgument,
            "job " + job.spec.id + " has no other node " + std::to_string(node)};
  }
  if (job.nodes[node].address != caller) {
    return {ErrorCode::kPermissionDenied, "the daemon at " + caller + " is not node " +
                                              std::to_string(node) + " of job " + job.spec.id};
  }
  return {};
}

bool IsWorthAnotherTry(const Status& status) {
  switch (status.code()) {
    case ErrorCode::kNotFound:  // the job may not have been created there yet
    case ErrorCode::kNodeUnreachable:
    case ErrorCode::kTimeout:
    case ErrorCode::kLinkDown:
    case ErrorCode::kDaemonDied:  // it took us for dead: the next heartbeat ends the link
      return true;
    default:
      return false;
  }
}

}  // namespace ferry::daemon
