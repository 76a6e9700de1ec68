#include "daemon/jobs/job_members.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "common/clock.h"

namespace ferry::daemon {
namespace {

// Gives process ids away, and so allows process_vm calls, only if all ranks here can use them.
attach::PeerPlace PlaceOf(const JobRecord& job, uint32_t rank, bool shares_processes) {
  attach::PeerPlace place{};
  place.node = job.spec.node_of_rank[rank];
  place.local_index = job.plan.local_index[rank];
  if (const auto& session = job.ranks[rank].session; session != nullptr && shares_processes) {
    place.pid = static_cast<uint32_t>(session->pid);
    place.private_memory_reachable = session->private_memory_reachable ? 1 : 0;
  }
  return place;
}

// True for the rank that reports what all wait for: the first of those that have joined, on any
// node.
bool SpeaksForThoseWhoWait(const JobRecord& job, uint32_t rank) {
  const auto first = std::find_if(job.ranks.begin(), job.ranks.end(),
                                  [](const Rank& one) { return one.state == RankState::kJoined; });
  return first - job.ranks.begin() == static_cast<std::ptrdiff_t>(rank);
}

}  // namespace

void JobMembers::Join(const Session& session, uint64_t wait_ms, JoinDone done) {
  if (const Status status = jobs_.CheckServed(session); !status.ok()) {
    return done(status, {});
  }
  JobRecord* job = nullptr;
  Rank* rank = jobs_.FindRank(session, &job);
  const std::string name = RankText(session.rank, session.job_id);
  if (rank->state == RankState::kAttached) {
    return done({ErrorCode::kNotInitialized, name + " must hand over its segments before it joins"},
                {});
  }
  if (rank->join_done != nullptr) {
    return done({ErrorCode::kAlreadyExists, name + " is joining already"}, {});
  }
  rank->join_done = std::move(done);
  if (!job->failure.ok()) {
    return Finish(*job, session.rank, job->failure);
  }
  rank->is_joining = true;
  if (job->joining_since_ns == 0) {
    job->joining_since_ns = MonotonicNs();
  }
  EndPollLater(*job, session.rank, wait_ms);
  CheckJoined(*job, session.rank);
  CheckComplete(*job);
}

// A rank that asks to join becomes a member once it is known which processes reach its memory,
// because the answer tells its peers.
void JobMembers::CheckJoined(JobRecord& job, uint32_t index) {
  Rank& rank = job.ranks[index];
  if (rank.state == RankState::kServing && rank.join_done != nullptr &&
      rank.session->reach_settled) {
    rank.private_memory_reachable = rank.session->private_memory_reachable;
    job.SetState(index, RankState::kJoined);
    rank.has_joined = true;
    jobs_.TellNodes(job, &Node::joined_pending);
    jobs_.Changed();
  }
}

void JobMembers::OnReach(const std::string& job_id, uint32_t rank) {
  if (JobRecord* job = jobs_.FindJob(job_id); job != nullptr && rank < job->size()) {
    CheckJoined(*job, rank);
    CheckComplete(*job);
  }
}

// ---- Long polls ----

void JobMembers::EndPollLater(JobRecord& job, uint32_t index, uint64_t wait_ms) {
  Rank& rank = job.ranks[index];
  if (wait_ms == 0) {
    return;
  }
  rank.poll_timer =
      std::make_unique<boost::asio::steady_timer>(context_, std::chrono::milliseconds(wait_ms));
  rank.poll_timer->async_wait([this, alive = jobs_.alive(), id = job.spec.id, serial = job.serial,
                               index](const boost::system::error_code& error) {
    JobRecord* const found = !error && *alive ? jobs_.FindJob(id) : nullptr;
    if (found != nullptr && found->serial == serial) {
      EndPoll(*found, index);
    }
  });
}

// Answers the rank's long poll; the rank calls again.
void JobMembers::EndPoll(JobRecord& job, uint32_t index) {
  Rank& rank = job.ranks[index];
  rank.poll_timer.reset();
  if (const JoinDone done = std::exchange(rank.join_done, nullptr); done != nullptr) {
    done({}, {true, SpeaksForThoseWhoWait(job, index) ? job.MissingRanks() : ""});
  }
  if (const DetachDone on_left = std::exchange(rank.on_left, nullptr); on_left != nullptr) {
    on_left(false);
  }
}

void JobMembers::CheckComplete(JobRecord& job) {
  if (!job.complete) {
    // A tree's news have come, so there is a way for them; of the others most stay dormant.
    for (const Node& node : job.nodes) {
      if (job.news != nullptr) {
        break;
      }
      if (node.state != NodeState::kSelf && node.state != NodeState::kUp) {
        return;
      }
    }
    if (!job.AllJoined()) {
      return;
    }
    job.complete = true;
    jobs_.Changed();
  }
  for (const uint32_t rank : job.own_ranks) {
    Finish(job, rank, {});
  }
}

void JobMembers::Finish(JobRecord& job, uint32_t rank, const Status& status) {
  const JoinDone done = std::exchange(job.ranks[rank].join_done, nullptr);
  if (done == nullptr) {
    return;  // the rank has not asked, or is answered when it calls again
  }
  job.ranks[rank].poll_timer.reset();
  job.ranks[rank].is_joining = false;
  done(status, {});
}

StatusOr<JobMembers::Places> JobMembers::PlacesOf(const Session& session, uint32_t first,
                                                  uint32_t most) const {
  FERRY_RETURN_IF_ERROR(jobs_.CheckServed(session));
  const JobRecord& job = *jobs_.FindJob(session.job_id);
  if (first >= job.size()) {
    return Status(ErrorCode::kInvalidRank, RankText(first, session.job_id) +
                                               " is out of range: its ranks are 0 to " +
                                               std::to_string(job.size() - 1));
  }
  Places places{job.spec.node, static_cast<uint32_t>(job.nodes.size()), job.size(), {}};
  const bool shares_processes = job.SharesProcesses();
  for (uint32_t rank = first; rank < job.size() && places.peers.size() < most; ++rank) {
    places.peers.push_back(PlaceOf(job, rank, shares_processes));
  }
  return places;
}

// A rank that asks again has no session any more: its first call ended it.
void JobMembers::Detach(const Session& session, uint64_t wait_ms, DetachDone done) {
  JobRecord* const job = jobs_.FindJob(session.job_id);
  Rank* const rank =
      job != nullptr && session.rank < job->size() ? &job->ranks[session.rank] : nullptr;
  if (rank == nullptr || (rank->session.get() != &session && rank->leaving.get() != &session)) {
    return done(true);
  }
  if (rank->on_left != nullptr) {
    std::exchange(rank->on_left, nullptr)(false);  // an earlier call of the rank
  }
  rank->on_left = std::move(done);
  jobs_.EndRank(*job, session.rank, {});
  if (rank->on_left != nullptr) {
    EndPollLater(*job, session.rank, wait_ms);
  }
}

void JobMembers::FailAll(JobRecord& job, const Status& why) {
  for (const uint32_t rank : job.own_ranks) {
    Finish(job, rank, why);
  }
}

}  // namespace ferry::daemon
