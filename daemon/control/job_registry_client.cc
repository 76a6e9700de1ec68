// JobRegistry and what ranks ask of it by gRPC: to join, to register, to meet peers, to leave.
#include <algorithm>
#include <chrono>
#include <utility>

#include "common/clock.h"
#include "common/hex_text.h"
#include "daemon/control/job_registry.h"

namespace ferry::daemon {
namespace {

// Process ids, and so process_vm calls, only where they are of use to all.
void FillPeer(const JobRecord& job, uint32_t rank, bool shares_processes, control::PeerInfo* info) {
  info->set_rank(rank);
  info->set_node(job.spec.node_of_rank[rank]);
  info->set_local_index(job.plan.local_index[rank]);
  if (const auto& session = job.ranks[rank].session; session != nullptr && shares_processes) {
    info->set_pid(static_cast<uint32_t>(session->pid));
    info->set_private_memory_reachable(session->private_memory_reachable);
  }
}

// One rank speaks for all that wait: the first of those that have joined, wherever it is.
bool SpeaksForThoseWhoWait(const JobRecord& job, uint32_t rank) {
  const auto first = std::find_if(job.ranks.begin(), job.ranks.end(),
                                  [](const Rank& one) { return one.state == RankState::kJoined; });
  return first - job.ranks.begin() == static_cast<std::ptrdiff_t>(rank);
}

}  // namespace

StatusOr<std::shared_ptr<Session>> JobRegistry::FindToken(const std::string& token) const {
  const auto found = tokens_.find(token);
  if (found == tokens_.end()) {
    return Status(ErrorCode::kPermissionDenied,
                  token.empty() ? "the call carries no token (metadata ferry-token): attach first"
                                : "the call's token names no attached rank: its session has ended");
  }
  return found->second;
}

void JobRegistry::Join(const std::shared_ptr<Session>& session, uint64_t wait_ms, JoinDone done) {
  JobRecord* job = nullptr;
  Rank* rank = FindRank(*session, &job);
  const std::string name = RankText(session->rank, session->job_id);
  if (rank == nullptr) {
    return done({ErrorCode::kNotInitialized, name + " has ended"}, {});
  }
  if (rank->state == RankState::kAttached) {
    return done({ErrorCode::kNotInitialized, name + " must hand over its segments before it joins"},
                {});
  }
  if (rank->join_done != nullptr) {
    return done({ErrorCode::kAlreadyExists, name + " is joining already"}, {});
  }
  rank->join_done = std::move(done);
  if (!job->failure.ok()) {
    return FinishJoin(*job, session->rank, job->failure);
  }
  rank->is_joining = true;
  if (job->joining_since_ns == 0) {
    job->joining_since_ns = MonotonicNs();
  }
  EndPollLater(*job, session->rank, wait_ms);
  CheckJoined(*job, session->rank);
  CheckComplete(*job);
}

// A rank that asks to join has joined once it is known who reaches its memory: its peers are told
// with the answer.
void JobRegistry::CheckJoined(JobRecord& job, uint32_t index) {
  Rank& rank = job.ranks[index];
  if (rank.state == RankState::kServing && rank.join_done != nullptr &&
      rank.session->reach_settled) {
    rank.private_memory_reachable = rank.session->private_memory_reachable;
    rank.state = RankState::kJoined;
    rank.has_joined = true;
    TellNodes(job, &Node::joined_pending);
    Changed();
  }
}

void JobRegistry::OnReach(const std::string& job_id, uint32_t rank) {
  if (JobRecord* job = FindJob(job_id); job != nullptr && rank < job->size()) {
    CheckJoined(*job, rank);
    CheckComplete(*job);
  }
}

// ---- Long polls ----

void JobRegistry::EndPollLater(JobRecord& job, uint32_t index, uint64_t wait_ms) {
  Rank& rank = job.ranks[index];
  if (wait_ms == 0) {
    return;
  }
  rank.poll_timer =
      std::make_unique<boost::asio::steady_timer>(context_, std::chrono::milliseconds(wait_ms));
  rank.poll_timer->async_wait([this, alive = alive_, id = job.spec.id, serial = job.serial,
                               index](const boost::system::error_code& error) {
    JobRecord* const found = !error && *alive ? FindJob(id) : nullptr;
    if (found != nullptr && found->serial == serial) {
      EndPoll(*found, index);
    }
  });
}

// The rank calls again.
void JobRegistry::EndPoll(JobRecord& job, uint32_t index) {
  Rank& rank = job.ranks[index];
  rank.poll_timer.reset();
  if (const JoinDone done = std::exchange(rank.join_done, nullptr); done != nullptr) {
    control::JoinJobReply reply;
    reply.set_waiting(true);
    reply.set_missing(SpeaksForThoseWhoWait(job, index) ? job.MissingRanks() : "");
    done({}, reply);
  }
  if (const DetachDone on_left = std::exchange(rank.on_left, nullptr); on_left != nullptr) {
    on_left(false);
  }
}

void JobRegistry::CheckComplete(JobRecord& job) {
  if (!job.complete) {
    for (const Node& node : job.nodes) {
      if (node.state != NodeState::kSelf && node.state != NodeState::kUp) {
        return;
      }
    }
    if (!job.AllJoined()) {
      return;
    }
    job.complete = true;
    Changed();
  }
  for (uint32_t rank = 0; rank < job.size(); ++rank) {
    FinishJoin(job, rank, {});
  }
}

void JobRegistry::FinishJoin(JobRecord& job, uint32_t rank, const Status& status) {
  const JoinDone done = std::exchange(job.ranks[rank].join_done, nullptr);
  if (done == nullptr) {
    return;  // it has asked for nothing, or will hear when it calls again
  }
  job.ranks[rank].poll_timer.reset();
  job.ranks[rank].is_joining = false;
  control::JoinJobReply reply;
  if (status.ok()) {
    reply.set_node(job.spec.node);
    reply.set_node_count(static_cast<uint32_t>(job.nodes.size()));
    const bool shares_processes = job.SharesProcesses();
    for (uint32_t peer = 0; peer < job.size(); ++peer) {
      FillPeer(job, peer, shares_processes, reply.add_peers());
    }
  }
  done(status, reply);
}

StatusOr<std::shared_ptr<Region>> JobRegistry::TakeRegion(
    const Session& session, const control::RegisterRegionRequest& request) {
  const std::string name = "region " + std::to_string(request.region()) + " of " +
                           RankText(session.rank, session.job_id);
  JobRecord* job = nullptr;
  Rank* rank = FindRank(session, &job);
  if (rank == nullptr || !rank->offered.contains(request.region())) {
    return Status(ErrorCode::kNotFound,
                  name + ": its descriptor did not come over the attach socket");
  }
  const auto node = rank->offered.extract(request.region());
  std::shared_ptr<Region> region = node.mapped();
  const uint64_t expected_bytes =
      region->by_stream ? request.size_bytes() : shm::RoundUpToPage(request.size_bytes());
  if (region->size_bytes() != expected_bytes) {
    return Status(ErrorCode::kInvalidArgument,
                  name + " was said to have " + std::to_string(request.size_bytes()) +
                      " bytes, but its segment has " + std::to_string(region->size_bytes()));
  }
  if (request.kind() == control::REGION_KIND_HOST_HEAP) {
    region->kind = RegionKind::kHostHeap;
  } else if (request.kind() == control::REGION_KIND_DEVICE) {
    region->kind = RegionKind::kDevice;
  } else {
    return Status(ErrorCode::kInvalidArgument,
                  name + ": unknown kind " + std::to_string(request.kind()));
  }
  if (region->by_stream && region->kind != RegionKind::kDevice) {
    return Status(ErrorCode::kInvalidArgument,
                  name + " is no device memory, so there is no need of streams to reach it");
  }
  region->device = request.device();
  region->allocation_id = request.allocation_id();
  return region;
}

Status JobRegistry::Resolve(const Session& session, const control::ResolvePeersRequest& request,
                            control::ResolvePeersReply* reply) const {
  JobRecord* job = nullptr;
  if (FindRank(session, &job) == nullptr) {
    return {ErrorCode::kNotInitialized, RankText(session.rank, session.job_id) + " has ended"};
  }
  const auto asked = static_cast<uint64_t>(request.ranks_size());
  if (asked > job->size()) {
    return {ErrorCode::kInvalidArgument, "asked for " + std::to_string(asked) + " ranks of job " +
                                             session.job_id + ", which has " +
                                             std::to_string(job->size())};
  }
  const bool shares_processes = job->SharesProcesses();
  for (const uint32_t rank : request.ranks()) {
    if (rank >= job->size()) {
      return {ErrorCode::kInvalidRank, RankText(rank, session.job_id) +
                                           " is out of range: its ranks are 0 to " +
                                           std::to_string(job->size() - 1)};
    }
    FillPeer(*job, rank, shares_processes, reply->add_peers());
  }
  for (uint32_t rank = 0; request.ranks().empty() && rank < job->size(); ++rank) {
    FillPeer(*job, rank, shares_processes, reply->add_peers());
  }
  return {};
}

void JobRegistry::Detach(const Session& session, uint64_t wait_ms, DetachDone done) {
  JobRecord* job = nullptr;
  Rank* rank = FindRank(session, &job);
  if (rank == nullptr) {
    return done(true);
  }
  rank->on_left = std::move(done);
  EndRank(*job, session.rank, {});
  if (rank->on_left != nullptr) {
    EndPollLater(*job, session.rank, wait_ms);
  }
}

void JobRegistry::DetachAgain(const std::string& token, uint64_t wait_ms, DetachDone done) {
  for (const auto& [id, job] : jobs_) {
    for (uint32_t index = 0; index < job->size(); ++index) {
      Rank& rank = job->ranks[index];
      if (rank.leaving != nullptr && HexText(rank.leaving->token) == token) {
        rank.on_left = std::move(done);
        return EndPollLater(*job, index, wait_ms);
      }
    }
  }
  done(true);
}

void JobRegistry::FailJoins(JobRecord& job, const Status& why) {
  for (uint32_t rank = 0; rank < job.size(); ++rank) {
    FinishJoin(job, rank, why);
  }
}

}  // namespace ferry::daemon
