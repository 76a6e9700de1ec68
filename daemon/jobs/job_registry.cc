#include "daemon/jobs/job_registry.h"

#include <unistd.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <cstring>
#include <thread>
#include <utility>

#include "common/clock.h"
#include "common/counted.h"
#include "common/net_address.h"
#include "daemon/jobs/job_link_books.h"
#include "daemon/jobs/job_members.h"
#include "daemon/jobs/job_nodes.h"
#include "daemon/jobs/job_pair_books.h"
#include "daemon/jobs/job_profiles.h"
#include "daemon/jobs/job_programs.h"
#include "daemon/jobs/job_regions.h"
#include "daemon/session/session_segments.h"
#include "daemon/tls/secrets.h"

namespace ferry::daemon {
JobRegistry::JobRegistry(boost::asio::io_context& context, DataPlane& data_plane,
                         RegistryLimits limits)
    : context_(context),
      data_plane_(data_plane),
      limits_(std::move(limits)),
      quotas_(limits_.quotas, limits_.shared_places),
      members_(new JobMembers(context, *this)),
      programs_(new JobPrograms(*this)),
      profiles_(new JobProfiles(limits_.profile_bytes, &data_plane)),
      regions_(new JobRegions(context, *this, data_plane, quotas_, limits_)),
      pair_books_(new JobPairBooks(context, *this, data_plane)),
      link_books_(new JobLinkBooks(*this, data_plane, quotas_, limits_.links)),
      nodes_(new JobNodes(*this, {*members_, *programs_, *pair_books_, *link_books_}, data_plane,
                          limits_.peer_timeout_ms)) {}

JobRegistry::~JobRegistry() { *alive_ = false; }

// ---- Launcher ----

std::string JobRegistry::WhyAlone() const {
  const auto lacking = std::find_if_not(limits_.own_hosts.begin(), limits_.own_hosts.end(),
                                        [](const std::string& host) { return HasInterface(host); });
  return lacking == limits_.own_hosts.end()
             ? ""
             : "no interface has " + *lacking + "; is the loopback interface down?";
}

// Refuses jobs of several nodes where there is no network.
Status JobRegistry::CheckNetwork(const JobSpec& spec) const {
  const std::string alone = spec.node_addresses.size() > 1 ? WhyAlone() : "";
  if (alone.empty()) {
    return {};
  }
  return {ErrorCode::kNodeUnreachable, "job " + spec.id + " has " +
                                           std::to_string(spec.node_addresses.size()) +
                                           " nodes, but this one has no network (" + alone + ")"};
}

Status JobRegistry::CreateJob(JobSpec spec) {
  if (draining_) {
    return {ErrorCode::kDraining, "ferryd is draining and takes no new jobs"};
  }
  FERRY_RETURN_IF_ERROR(CheckJobSpec(spec, limits_.max_ranks, limits_.max_local_ranks));
  FERRY_RETURN_IF_ERROR(CheckNetwork(spec));
  if (sweep_posted_) {
    Sweep();  // what jobs that are over still hold
  }
  if (FindJob(spec.id) != nullptr || programs_->Find(spec.id) != nullptr) {
    return {ErrorCode::kAlreadyExists,
            "job " + spec.id +
                " exists already on this daemon (of whichever user): choose "
                "another name"};
  }
  StatusOr<QuotaHold> hold = quotas_.Take(
      spec.owner,
      {.jobs = 1, .nodes = spec.node_addresses.size() - 1, .ranks = spec.node_of_rank.size()});
  FERRY_RETURN_IF_ERROR(hold.status());
  if (spec.programs_follow) {
    return programs_->Begin(std::move(spec), std::move(*hold));
  }
  std::unique_ptr<JobRecord> job = MakeJob(std::move(spec));
  job->quota = std::move(*hold);
  return BeginJob(std::move(job)).status();
}

StatusOr<JobRecord*> JobRegistry::BeginJob(std::unique_ptr<JobRecord> job) {
  const std::string id = job->spec.id;
  if (FindJob(id) != nullptr) {
    return Status(ErrorCode::kAlreadyExists, "job " + id + " exists already on this daemon");
  }
  job->serial = next_serial_++;
  job->created_ns = MonotonicNs();
  job->history = JobHistory::Begin();
  if (on_exits_ != nullptr && job->program > 1) {
    on_exits_(job->series->spec.id, std::nullopt);  // of the program before it
  }
  ++totals_.jobs_created;
  FERRY_RETURN_IF_ERROR(nodes_->Add(*job));
  if (Status status = data_plane_.AddJob(job->plan); !status.ok()) {
    nodes_->Drop(*job);
    return status;
  }
  JobRecord* const begun = jobs_.emplace(id, std::move(job)).first->second.get();
  nodes_->Begin(*begun);
  Changed();
  return begun;
}

Status JobRegistry::DestroyJob(const std::string& job_id, const std::optional<RankExits>& exits) {
  JobRecord* job = FindJob(job_id);
  const std::shared_ptr<JobSeries> series = programs_->Find(job_id);
  if (job == nullptr && series == nullptr) {
    return {ErrorCode::kNotFound, "there is no job " + job_id + " on this daemon"};
  }
  const Status why(ErrorCode::kAborted, "job " + job_id + " was destroyed by its launcher");
  if (series == nullptr) {
    Destroy(*job, why);
  } else {
    programs_->Close(*series, why);
    if (const auto latest = series->jobs.find(series->newest); latest != series->jobs.end()) {
      latest->second->history.exits = exits;
    } else if (on_exits_ != nullptr) {
      on_exits_(series->spec.id, exits);
    }
    for (const auto& [program, one] : series->jobs) {
      Destroy(*one, why);
    }
    Changed();  // also where none of its jobs was left: a drain may wait for it
  }
  profiles_->Drop(job_id);
  SweepSoon();
  return {};
}

void JobRegistry::Destroy(JobRecord& job, const Status& why) {
  FailJob(job, why);
  const HeldEnds ends(*this, job);
  for (uint32_t rank = 0; rank < job.size(); ++rank) {
    EndRank(job, rank, why);
  }
}

StatusOr<bool> JobRegistry::RankProcessEnded(const std::string& job_id, uint32_t rank,
                                             const std::string& how) {
  JobRecord* job = FindJob(job_id);
  const std::shared_ptr<JobSeries> series = programs_->FindLaunch(job_id);
  const JobSpec* const spec = series != nullptr ? &series->spec
                              : job != nullptr  ? &job->spec
                                                : nullptr;
  if (spec == nullptr || rank >= spec->node_of_rank.size() || !spec->IsLocal(rank)) {
    return Status(ErrorCode::kNotFound, RankText(rank, job_id) + " is not a rank of this daemon");
  }
  if (series != nullptr) {
    return programs_->ProcessEnded(*series, rank, how, ReadJobName(job_id).program);
  }
  if (job->ranks[rank].state != RankState::kAbsent) {
    return false;  // its connection tells how it ends
  }
  EndRank(*job, rank, {ErrorCode::kPeerDied, RankText(rank, job_id) + " " + how});
  return true;
}

// ---- Attach socket ----

namespace {

// Checks all of a claim that is the same for each program of a series.
Status CheckClaim(const AttachClaim& claim, const JobSpec& spec) {
  if (!ConstantTimeEquals(claim.secret, spec.secret)) {
    return {ErrorCode::kPermissionDenied,
            "wrong secret for job " + claim.job_id + ": check FERRY_JOB_SECRET"};
  }
  if (claim.uid != spec.owner) {  // also root's and ferryd's: a job acts as its owner only
    return {ErrorCode::kPermissionDenied,
            "job " + claim.job_id + " belongs to uid " + std::to_string(spec.owner) + ", and uid " +
                std::to_string(claim.uid) + " may not be a rank of it"};
  }
  const size_t size = spec.node_of_rank.size();
  if (claim.size != size) {
    return {ErrorCode::kInvalidArgument, "job " + claim.job_id + " has " + Counted(size, "rank") +
                                             ", not " + std::to_string(claim.size) +
                                             ": check FERRY_SIZE"};
  }
  if (claim.rank >= size) {
    return {ErrorCode::kInvalidRank, RankText(claim.rank, claim.job_id) +
                                         " is out of range: its ranks are 0 to " +
                                         std::to_string(size - 1)};
  }
  if (!spec.IsLocal(claim.rank)) {
    return {ErrorCode::kInvalidRank, RankText(claim.rank, claim.job_id) + " belongs to node " +
                                         std::to_string(spec.node_of_rank[claim.rank]) +
                                         "; this is node " + std::to_string(spec.node)};
  }
  return {};
}

}  // namespace

StatusOr<JobRecord*> JobRegistry::CheckAttach(const AttachClaim& claim) {
  const std::shared_ptr<JobSeries> series = programs_->Find(claim.job_id);
  StatusOr<JobRecord*> job = FindJob(claim.job_id);
  if (*job == nullptr && series == nullptr) {
    return Status(ErrorCode::kNotFound, "there is no job " + claim.job_id +
                                            " on this daemon: start ranks with ferryrun, or check "
                                            "FERRY_JOB_ID and FERRY_RUN_DIRECTORY");
  }
  FERRY_RETURN_IF_ERROR(CheckClaim(claim, series != nullptr ? series->spec : (*job)->spec));
  if (local_ranks_ + leaving_ >= limits_.max_local_ranks) {
    return Status(ErrorCode::kLimitExceeded, "this daemon serves " +
                                                 Counted(local_ranks_ + leaving_, "rank") +
                                                 ", as many as max_local_ranks allows");
  }
  if (series != nullptr) {
    job = programs_->JobFor(*series, claim.rank);
    FERRY_RETURN_IF_ERROR(job.status());
  }
  if ((*job)->aborted) {
    return (*job)->failure;
  }
  const Rank& rank = (*job)->ranks[claim.rank];
  if (rank.state == RankState::kEnded) {
    return Status(ErrorCode::kAlreadyExists,
                  RankText(claim.rank, claim.job_id) + " has ended; a rank attaches only once");
  }
  if (rank.state != RankState::kAbsent) {
    return Status(ErrorCode::kAlreadyExists, RankText(claim.rank, claim.job_id) +
                                                 " is attached already, by pid " +
                                                 std::to_string(rank.session->pid));
  }
  return job;
}

StatusOr<std::shared_ptr<Session>> JobRegistry::Attach(const AttachClaim& claim,
                                                       std::weak_ptr<RankConnection> connection) {
  const StatusOr<JobRecord*> found = CheckAttach(claim);
  FERRY_RETURN_IF_ERROR(found.status());
  JobRecord* const job = *found;
  StatusOr<QuotaHold> hold = quotas_.Take(claim.uid, {.sessions = 1});
  FERRY_RETURN_IF_ERROR(hold.status());
  std::shared_ptr<Session> session = MakeSession();
  session->job_id = job->spec.id;
  session->rank = claim.rank;
  session->local_index = job->plan.local_index[claim.rank];
  session->local_size = job->LocalSize();
  session->job_size = job->size();
  session->pid = claim.pid;
  session->uid = claim.uid;
  session->shares_processes = claim.shares_processes;
  session->quota = std::move(*hold);
  JobPrograms::NoteAttached(*job, claim.rank);
  Rank& rank = job->ranks[claim.rank];
  job->SetState(claim.rank, RankState::kAttached);
  ++totals_.ranks_attached;
  ++job->history.attached;
  job->history.rank_time.Begin();
  totals_.rank_time.Begin();
  rank.session = session;
  rank.connection = std::move(connection);
  ++local_ranks_;
  Changed();
  return session;
}

Status JobRegistry::Serve(const Session& session) {
  JobRecord* job = nullptr;
  Rank* rank = FindRank(session, &job);
  if (rank == nullptr || rank->state != RankState::kAttached) {
    return {ErrorCode::kAlreadyExists,
            RankText(session.rank, session.job_id) + " has handed over its segments before"};
  }
  StatusOr<QuotaHold> hold = quotas_.Take(session.uid, {.requests = session.request_limit});
  if (!hold.ok()) {
    return {hold.status().code(),
            RankText(session.rank, session.job_id) + ": " + hold.status().message()};
  }
  rank->session->request_quota = std::move(*hold);
  FERRY_RETURN_IF_ERROR(data_plane_.AddSession(rank->session));
  job->SetState(session.rank, RankState::kServing);
  Changed();
  return {};
}

StatusOr<std::shared_ptr<Session>> JobRegistry::FindPeer(const Session& session,
                                                         uint32_t rank) const {
  JobRecord* job = nullptr;
  if (FindRank(session, &job) == nullptr) {
    return Status(ErrorCode::kNotInitialized,
                  RankText(session.rank, session.job_id) + " has ended");
  }
  if (rank >= job->size() || !job->IsLocal(rank)) {
    return Status(ErrorCode::kInvalidRank,
                  RankText(rank, session.job_id) + " is not a rank of this node");
  }
  switch (job->ranks[rank].state) {
    case RankState::kServing:
    case RankState::kJoined:
      return job->ranks[rank].session;
    case RankState::kEnded:
      return job->ranks[rank].end.ok()
                 ? Status(ErrorCode::kNotFound, RankText(rank, session.job_id) + " has left")
                 : Status(ErrorCode::kPeerDied, RankText(rank, session.job_id) + " has ended");
    case RankState::kAbsent:
    case RankState::kAttached:
      break;
  }
  return Status(ErrorCode::kWouldBlock,
                RankText(rank, session.job_id) + " has not attached yet: join the job first");
}

void JobRegistry::EndSession(const Session& session, const Status& why) {
  JobRecord* job = nullptr;
  if (FindRank(session, &job) != nullptr) {
    EndRank(*job, session.rank, why);
  }
}

void JobRegistry::EndSession(const std::string& job_id, uint32_t rank, const Status& why) {
  if (JobRecord* job = FindJob(job_id);
      job != nullptr && rank < job->size() && job->ranks[rank].session != nullptr) {
    EndRank(*job, rank, why);
  }
}

// ---- Ends ----

// The data plane may have operations under way for the rank that wait for a NIC, or for a node that
// stands still. This function does not wait for them: the other ranks hear of the end first, and
// the session is kept until the operations are over.
void JobRegistry::EndRank(JobRecord& job, uint32_t index, const Status& how) {
  Rank& rank = job.ranks[index];
  if (rank.state == RankState::kEnded) {
    return;
  }
  const bool was_serving = rank.state == RankState::kServing || rank.state == RankState::kJoined;
  job.SetState(index, RankState::kEnded);
  rank.end = how;
  if (job.IsLocal(index)) {
    CloseLocalRank(job, index);
  }
  if (rank.leaving != nullptr && was_serving) {
    Depart(job, index);
  } else {
    DropLeaving(job, index);
    AnnounceEnd(job, index);
  }
  if (!job.complete) {
    FailJob(job, how.ok() ? Status(ErrorCode::kPeerDied,
                                   RankText(index, job.spec.id) + " left before all had joined")
                          : how);
  }
  if (!how.ok()) {
    programs_->NoteFailure(job, how);
  }
  Changed();
}

// Stops serving the rank: refuses its calls, and tells it why.
void JobRegistry::CloseLocalRank(JobRecord& job, uint32_t index) {
  Rank& rank = job.ranks[index];
  JobMembers::Finish(job, index,
                     rank.end.ok() ? Status(ErrorCode::kCancelled,
                                            RankText(index, job.spec.id) + " left while it joined")
                                   : rank.end);
  rank.importing.clear();
  if (rank.session != nullptr) {
    if (!rank.end.ok()) {
      ++totals_.ranks_died;
      NoteDeath(job, index);
    }
    if (rank.session->session_map.valid()) {
      // The counters of this rank go on in the sums, so that no number on a status page shrinks.
      const shm::Statistics statistics(rank.session->layout()->counters);
      job.ended.Add(statistics);
      totals_.ended.Add(statistics);
      NoteHistograms(job, *rank.session, &totals_.ended_histograms);
      profiles_->NoteEnd(*rank.session);
    }
    job.history.rank_time.End();
    totals_.rank_time.End();
    --local_ranks_;
    rank.leaving = std::exchange(rank.session, nullptr);
    ++leaving_;
  }
  const auto connection = std::exchange(rank.connection, {}).lock();
  if (connection != nullptr && !rank.end.ok()) {
    connection->Goodbye(rank.end);
  }
}

void JobRegistry::Depart(JobRecord& job, uint32_t index) {
  const auto later = [&](void (JobRegistry::*step)(JobRecord&, uint32_t)) {
    return [this, alive = alive_, id = job.spec.id, serial = job.serial, index, step,
            own = std::this_thread::get_id()] {
      const auto go_on = [=, this] {
        JobRecord* found = *alive ? FindJob(id) : nullptr;
        if (found != nullptr && found->serial == serial) {
          (this->*step)(*found, index);
        }
      };
      if (std::this_thread::get_id() == own) {
        go_on();  // before RemoveSession has returned
      } else {
        boost::asio::post(context_, go_on);
      }
    };
  };
  data_plane_.RemoveSession(job.spec.id, index,
                            {later(&JobRegistry::AnnounceEnd), later(&JobRegistry::OnLetGo)});
}

void JobRegistry::AnnounceEnd(JobRecord& job, uint32_t index) {
  Rank& rank = job.ranks[index];
  rank.announced = true;
  const ErrorCode how = rank.end.ok() ? ErrorCode::kNotFound : PeerError(rank.end.code());
  // If its link failed, NodeFailed has told the data plane already.
  if (!job.nodes[job.spec.node_of_rank[index]].is_failure_known) {
    HoldEnds(job);
    job.held_ends.push_back({index, how});
    TellEnds(job);
  }
  if (job.matches != nullptr) {
    job.matches->OnRankEnded(index, how);
  }
  if (job.links != nullptr) {
    job.links->book.OnRankEnded(index, how, MonotonicNs());
  }
  if (job.IsLocal(index)) {
    TellNodes(job, &Node::left_pending);
  }
  SweepSoon();
}

void JobRegistry::TellEnds(JobRecord& job) {
  if (--job.holds_ends == 0 && !job.held_ends.empty()) {
    data_plane_.RanksEnded(job.spec.id, std::exchange(job.held_ends, {}));
  }
}

void JobRegistry::OnLetGo(JobRecord& job, uint32_t index) {
  data_plane_.ReleaseSession(job.spec.id, index);
  DropLeaving(job, index);
  Changed();
}

// Drops the session now; the rank's connection may stay for as long as its process lives.
void JobRegistry::DropLeaving(JobRecord& job, uint32_t index) {
  Rank& rank = job.ranks[index];
  if (rank.leaving != nullptr) {
    rank.leaving->DropRegions();
    rank.leaving->quota.Release();
    rank.leaving->request_quota.Release();
    rank.leaving.reset();
    --leaving_;
  }
  SweepSoon();
  if (auto on_left = std::exchange(rank.on_left, nullptr); on_left != nullptr) {
    rank.poll_timer.reset();
    // Behind the sweep: a rank that hears that it has left finds neither its session nor its job.
    boost::asio::post(context_, [on_left = std::move(on_left)] { on_left(true); });
  }
}

void JobRegistry::FailJob(JobRecord& job, const Status& why) {
  if (job.failure.ok()) {
    job.failure = why;
    Changed();
  }
  JobMembers::FailAll(job, job.failure);
}

void JobRegistry::Abort(const Session& session, int exit_code, const std::string& reason) {
  JobRecord* job = nullptr;
  if (FindRank(session, &job) == nullptr) {
    return;
  }
  if (!job->aborted) {
    job->history.exit_code = exit_code;
  }
  AbortJob(*job, {ErrorCode::kAborted,
                  RankText(session.rank, session.job_id) + " aborted it with exit code " +
                      std::to_string(exit_code) + (reason.empty() ? "" : ": " + reason)});
  TellNodes(*job, &Node::left_pending);
}

void JobRegistry::AbortJob(JobRecord& job, const Status& why) {
  if (job.aborted) {
    return;
  }
  job.aborted = true;
  job.failure = why;
  JobMembers::FailAll(job, why);
  data_plane_.PoisonJob(job.spec.id, ErrorCode::kAborted);
  if (job.matches != nullptr) {
    job.matches->FailAll(ErrorCode::kAborted);
  }
  if (job.links != nullptr) {
    job.links->book.Clear();
  }
  programs_->NoteFailure(job, why);
  Changed();
}

void JobRegistry::FailHere(const std::string& job_id, const Status& why) {
  if (JobRecord* job = FindJob(job_id); job != nullptr) {
    AbortJob(*job, why);
    TellNodes(*job, &Node::left_pending);
  }
}

void JobRegistry::Drain(bool for_good) {
  draining_ = true;
  stops_ |= for_good;
  Changed();
}

Status JobRegistry::Undrain() {
  if (stops_) {
    return {ErrorCode::kDraining, "ferryd is about to stop, and takes no new jobs"};
  }
  draining_ = false;
  Changed();  // also for those who wait for its jobs to end
  return {};
}

void JobRegistry::EndAll(const std::string& reason) {
  for (const auto& [id, job] : jobs_) {
    for (const uint32_t rank : job->own_ranks) {
      EndRank(*job, rank, {ErrorCode::kDaemonDied, reason});
    }
  }
}

void JobRegistry::TellLastJobs() {
  if (const OnJobEnd tell = std::exchange(on_job_end_, nullptr); tell != nullptr) {
    for (const auto& [id, job] : jobs_) {
      tell(*job);
    }
  }
  on_exits_ = nullptr;
}

// ---- Small things ----

uint64_t JobRegistry::leaving() const { return leaving_ + regions_->leaving(); }

void JobRegistry::TellNodes(JobRecord& job, bool Node::*pending) { nodes_->Tell(job, pending); }

void JobRegistry::WantWay(JobRecord& job, uint32_t node) { nodes_->WantWay(job, node); }

void JobRegistry::SweepSoon() {
  if (!std::exchange(sweep_posted_, true)) {
    boost::asio::post(context_, [this, alive = alive_] {
      if (*alive) {
        Sweep();
      }
    });
  }
}

void JobRegistry::Sweep() {
  sweep_posted_ = false;
  std::vector<std::string> over;
  for (const auto& [id, job] : jobs_) {
    if (job->AllEnded() && job->NewsDelivered() && !job->IsLeaving()) {
      over.push_back(id);
    }
  }
  for (const std::string& id : over) {
    Remove(id);
  }
}

void JobRegistry::Remove(const std::string& job_id) {
  const auto job = jobs_.extract(job_id);
  if (on_job_end_ != nullptr) {
    on_job_end_(*job.mapped());
  }
  if (const auto& series = job.mapped()->series; series != nullptr) {
    series->jobs.erase(job.mapped()->program);
  } else {
    profiles_->Drop(job_id);  // it is over, and has no launcher that would ask
  }
  nodes_->Drop(*job.mapped());
  data_plane_.RemoveJob(job_id);
  Changed();
}

void JobRegistry::Changed() const {
  if (on_change_ != nullptr) {
    on_change_();
  }
}

}  // namespace ferry::daemon
