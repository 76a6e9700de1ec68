#include "daemon/jobs/jobs.h"

namespace ferry::daemon {

JobRecord* Jobs::FindJob(const std::string& job_id) const {
  const auto found = jobs().find(job_id);
  return found == jobs().end() ? nullptr : found->second.get();
}

Rank* Jobs::FindRank(const Session& session, JobRecord** job) const {
  JobRecord* found = FindJob(session.job_id);
  if (found == nullptr || session.rank >= found->size() ||
      found->ranks[session.rank].session.get() != &session) {
    return nullptr;
  }
  *job = found;
  return &found->ranks[session.rank];
}

Status Jobs::CheckServed(const Session& session) const {
  JobRecord* job = nullptr;
  return FindRank(session, &job) != nullptr
             ? Status()
             : Status(ErrorCode::kNotInitialized,
                      RankText(session.rank, session.job_id) + " has ended");
}

}  // namespace ferry::daemon
