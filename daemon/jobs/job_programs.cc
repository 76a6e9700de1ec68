#include "daemon/jobs/job_programs.h"

#include <utility>

#include "common/job_name.h"
#include "daemon/jobs/peer_requests.h"
#include "daemon/session/rank_view.h"

namespace ferry::daemon {
std::shared_ptr<JobSeries> JobPrograms::Find(const std::string& job_id) const {
  if (const auto found = series_.find(job_id); found != series_.end()) {
    return found->second;
  }
  const JobRecord* job = jobs_.FindJob(job_id);
  return job == nullptr ? nullptr : job->series;
}

std::shared_ptr<JobSeries> JobPrograms::FindLaunch(const std::string& job_id) const {
  const auto found = series_.find(ReadJobName(job_id).launch);
  return found == series_.end() ? nullptr : found->second;
}

Status JobPrograms::Begin(JobSpec spec, QuotaHold quota) {
  auto series = std::make_shared<JobSeries>();
  series->attached.resize(spec.node_of_rank.size());
  series->spec = std::move(spec);
  series->quota = std::move(quota);
  series_.emplace(series->spec.id, series);
  Status begun;
  for (uint32_t node = 0; begun.ok() && node < series->spec.node_addresses.size(); ++node) {
    const std::string& address = series->spec.node_addresses[node];
    if (node != series->spec.node) {
      begun = jobs_.links().Name(address, series->spec.owner);
    }
    if (node != series->spec.node && begun.ok()) {
      named_[series->spec.id].insert(address);
    }
  }
  if (begun.ok()) {
    begun = BeginProgram(*series, 1).status();
  }
  if (!begun.ok()) {
    Close(*series, begun);
  }
  return begun;
}

void JobPrograms::Close(JobSeries& series, const Status& why) {
  if (series.failure.ok()) {
    series.failure = why;
  }
  for (const std::string& address : named_[series.spec.id]) {
    jobs_.links().Release(address, series.spec.owner);
  }
  named_.erase(series.spec.id);
  series_.erase(series.spec.id);
}

bool JobPrograms::ExitsCome(const JobRecord& job) const {
  if (!job.spec.tells_exits || job.series == nullptr) {
    return false;
  }
  const auto launch = series_.find(job.series->spec.id);
  return launch != series_.end() && launch->second == job.series &&
         job.series->newest == job.program;
}

StatusOr<JobRecord*> JobPrograms::BeginProgram(JobSeries& series, uint32_t program) {
  if (!series.failure.ok()) {
    return Status(series.failure.code(), "job " + series.spec.id + " takes no further program: " +
                                             series.failure.message());
  }
  JobSpec spec = series.spec;
  spec.id = series.IdOf(program);
  std::unique_ptr<JobRecord> job = MakeJob(std::move(spec));
  job->series = series_.at(series.spec.id);
  job->program = program;
  StatusOr<JobRecord*> begun = jobs_.BeginJob(std::move(job));
  FERRY_RETURN_IF_ERROR(begun.status());
  series.newest = program;
  series.jobs[program] = *begun;
  for (const auto& [rank, how] : series.gone) {
    EndGone(**begun, rank, how);
  }
  return begun;
}

void JobPrograms::EndGone(JobRecord& job, uint32_t rank, const std::string& how) {
  jobs_.EndRank(job, rank, {ErrorCode::kPeerDied, RankText(rank, job.spec.id) + " " + how});
}

// ---- Ranks here ----

StatusOr<JobRecord*> JobPrograms::JobFor(JobSeries& series, uint32_t rank) {
  const uint32_t last = series.attached[rank];
  if (const auto before = series.jobs.find(last); before != series.jobs.end()) {
    const std::shared_ptr<Session> session = before->second->ranks[rank].session;
    if (session != nullptr && ReadProcessState(session->pid) == ProcessState::kEnded) {
      // Its hang-up has not been seen yet: that of a program which ended without leaving.
      jobs_.EndRank(*before->second, rank,
                    {ErrorCode::kPeerDied, RankText(rank, session->job_id) + " (pid " +
                                               std::to_string(session->pid) + ") died"});
    } else if (session != nullptr) {
      return Status(ErrorCode::kAlreadyExists, RankText(rank, before->second->spec.id) +
                                                   " is attached already, by pid " +
                                                   std::to_string(session->pid));
    }
  }
  if (const auto next = series.jobs.find(last + 1); next != series.jobs.end()) {
    return next->second;
  }
  if (const auto gone = series.gone.find(rank); gone != series.gone.end()) {
    return Status(ErrorCode::kAlreadyExists,
                  RankText(rank, series.spec.id) + " has ended: its process " + gone->second);
  }
  return BeginProgram(series, last + 1);
}

void JobPrograms::NoteAttached(const JobRecord& job, uint32_t rank) {
  if (job.series != nullptr) {
    job.series->attached[rank] = job.program;
  }
}

bool JobPrograms::ProcessEnded(JobSeries& series, uint32_t rank, const std::string& how,
                               uint32_t program) {
  const uint32_t attached = series.attached[rank];
  if (attached >= program) {
    return false;
  }
  series.gone.try_emplace(rank, how);
  for (const auto& [number, job] : series.jobs) {
    if (number > attached) {
      EndGone(*job, rank, how);
    }
  }
  return true;
}

void JobPrograms::NoteFailure(const JobRecord& job, const Status& why) {
  if (job.series == nullptr) {
    return;
  }
  if (job.series->failure.ok()) {
    job.series->failure = why;
  }
  for (const auto& [number, later] : job.series->jobs) {
    if (number > job.program && !later->complete) {
      jobs_.FailJob(*later, why);
    }
  }
}

// ---- Other nodes ----

void JobPrograms::OnNodeDown(const std::string& address, const Status& why) {
  for (auto& [id, addresses] : named_) {
    JobSeries& series = *series_.at(id);
    if (addresses.erase(address) != 0 && series.failure.ok()) {
      series.failure = {why.code(), "the node at " + address + ": " + why.message()};
    }
  }
}

Status JobPrograms::CheckPeer(const std::string& job_id, const std::string& proof,
                              uint64_t incarnation) const {
  const std::shared_ptr<JobSeries> series = FindLaunch(job_id);
  return series == nullptr ? FindJobOfPeer(jobs_, job_id, proof, incarnation).status()
                           : CheckProof(series->spec.secret, job_id, proof, incarnation);
}

// Another node may be one program ahead of this one, not more: its ranks leave a program only with
// the ranks here, and these only once they know that all have joined.
StatusOr<JobRecord*> JobPrograms::FindOrBegin(const std::string& job_id, const std::string& proof,
                                              uint64_t incarnation) {
  const std::shared_ptr<JobSeries> found = FindLaunch(job_id);
  if (jobs_.FindJob(job_id) != nullptr || found == nullptr) {
    return FindJobOfPeer(jobs_, job_id, proof, incarnation);
  }
  JobSeries& series = *found;
  const uint32_t program = ReadJobName(job_id).program;
  FERRY_RETURN_IF_ERROR(CheckProof(series.spec.secret, job_id, proof, incarnation));
  const auto newest = series.jobs.find(series.newest);
  const bool is_over = newest == series.jobs.end();
  if (program != series.newest + 1 || (!is_over && !newest->second->complete)) {
    return Status(ErrorCode::kNotFound, "there is no job " + job_id + " on this daemon");
  }
  return BeginProgram(series, program);
}

}  // namespace ferry::daemon
