#include "internode/delivery/directory.h"

#include <algorithm>
#include <cstring>

#include "shm/layout/session_layout.h"

namespace ferry::progress {

ServedRegion* ServedRank::FindRegion(const shm::Location& where, uint64_t bytes) {
  const auto found = regions.find(where.region);
  const bool usable = found != regions.end() && !found->second.closing &&
                      found->second.memory.IsInside(where.address, bytes);
  return usable ? &found->second : nullptr;
}

SentRts* ServedRank::FindRts(uint32_t number) {
  std::vector<SentRts>& all = number < kFirstOneSidedRts ? sent_rts : one_sided.sent_rts;
  const uint32_t index = number % kFirstOneSidedRts;
  return index < all.size() ? &all[index] : nullptr;
}

SentRts& ServedRank::RtsAt(uint32_t number) {
  std::vector<SentRts>& all = number < kFirstOneSidedRts ? sent_rts : one_sided.sent_rts;
  const uint32_t index = number % kFirstOneSidedRts;
  all.resize(std::max<size_t>(all.size(), index + 1));
  return all[index];
}

uint32_t ServedRank::TakeRts() {
  std::vector<uint32_t>& free = one_sided.free_rts_numbers;
  if (free.empty()) {
    const auto next = std::max<size_t>(one_sided.sent_rts.size(), shm::kAnswers);
    one_sided.sent_rts.resize(next + 1);
    return kFirstOneSidedRts + static_cast<uint32_t>(next);
  }
  const uint32_t number = free.back();
  free.pop_back();
  return number;
}

void ServedRank::Answer(shm::DescriptorKind kind, uint32_t peer, uint32_t request,
                        uint32_t generation, ErrorCode error, uint8_t flags) {
  shm::Descriptor answer{};
  answer.kind = static_cast<uint8_t>(kind);
  answer.flags = flags;
  answer.source = peer;
  answer.destination = rank();
  const shm::TransferResult result{request, generation, static_cast<int32_t>(error), 0, {}};
  std::memcpy(answer.payload, &result, sizeof(result));
  (void)delivery.Deliver(answer);  // answers have no limit but their requests
}

Job::Job(const JobPlan& its_plan)
    : plan(its_plan), served(plan.size()), ended(plan.size()), left(plan.size(), false) {
  const uint32_t count = 1 + *std::max_element(plan.node_of_rank.begin(), plan.node_of_rank.end());
  routes = ZeroedArray<Route>(std::max(count, plan.node + 1));
  use_of = ZeroedArray<NodeUse*>(routes.size());
  any_rank_of.resize(routes.size(), plan.size());
  for (uint32_t rank = 0; rank < plan.size(); ++rank) {
    uint32_t& any = any_rank_of[plan.node_of_rank[rank]];
    any = std::min(any, rank);
    if (!IsLocal(rank)) {
      ++remote_ranks;
      continue;
    }
    const uint32_t local_index = plan.local_index[rank];
    if (local_index >= rank_of_local.size()) {
      rank_of_local.resize(local_index + 1);
    }
    rank_of_local[local_index] = rank;
  }
}

TraceRecord RecordOf(const Job& job, TraceKind kind, uint32_t rank, uint32_t peer,
                     uint64_t begin_ns) {
  TraceRecord record;
  record.kind = kind;
  record.rank = rank;
  record.peer = peer;
  record.peer_node = job.plan.node_of_rank[peer];
  record.begin_ns = record.end_ns = begin_ns;
  return record;
}

Status Directory::AddJob(const JobPlan& plan) {
  if (plan.size() == 0 || plan.local_index.size() != plan.node_of_rank.size() ||
      std::any_of(plan.node_of_rank.begin(), plan.node_of_rank.end(),
                  [&](uint32_t node) { return node >= plan.size(); }) ||
      std::any_of(plan.local_index.begin(), plan.local_index.end(),
                  [&](uint32_t lane) { return lane >= plan.size(); })) {
    return {ErrorCode::kInvalidArgument,
            "job " + plan.job_id + ": the plan's ranks, nodes and lanes do not fit each other"};
  }
  if (jobs_.contains(plan.job_id) || by_key_.contains(plan.key)) {
    return {ErrorCode::kAlreadyExists, "job " + plan.job_id + " (or its key) is known already"};
  }
  auto job = std::make_unique<Job>(plan);
  by_key_[plan.key] = job.get();
  jobs_[plan.job_id] = std::move(job);
  return {};
}

void Directory::RemoveJob(const std::string& job_id) {
  const auto found = jobs_.find(job_id);
  if (found == jobs_.end()) {
    return;
  }
  for (size_t node = 0; node < found->second->routes.size(); ++node) {
    if (Link* const link = found->second->routes[node].link; link != nullptr) {
      --link->routes;
    }
  }
  by_key_.erase(found->second->plan.key);
  jobs_.erase(found);
}

Job* Directory::FindJob(const std::string& job_id) {
  const auto found = jobs_.find(job_id);
  return found == jobs_.end() ? nullptr : found->second.get();
}

Job* Directory::FindJobByKey(uint64_t key) {
  const auto found = by_key_.find(key);
  return found == by_key_.end() ? nullptr : found->second;
}

Status Directory::CheckSession(const ServedSegments& session) {
  Job* job = FindJob(session.job_id);
  const std::string who = "rank " + std::to_string(session.rank) + " of job " + session.job_id;
  if (job == nullptr) {
    return {ErrorCode::kNotFound, who + ": the job is not known here; add it first"};
  }
  if (!job->IsRank(session.rank) || !job->IsLocal(session.rank) ||
      session.job_size != job->plan.size() ||
      session.local_index != job->plan.local_index[session.rank] ||
      session.local_size != std::max<size_t>(job->rank_of_local.size(), job->plan.local_size)) {
    return {ErrorCode::kInvalidArgument, who + " does not fit the job's plan for this node"};
  }
  if (!session.session_map.valid() || !session.inbox_map.valid()) {
    return {ErrorCode::kInvalidArgument, who + ": its segments are not mapped"};
  }
  if (session.session_map.size_bytes() <
      shm::PlacesOfSession(session.job_size, session.request_limit).match) {
    return {ErrorCode::kInvalidArgument, who + ": its session has no room for a job of " +
                                             std::to_string(session.job_size) + " ranks"};
  }
  if (job->served[session.rank] != nullptr) {
    return {ErrorCode::kAlreadyExists, who + " is served already"};
  }
  return {};
}

ServedRank* Directory::AddServed(std::unique_ptr<ServedRank> served) {
  ServedRank* added = served.get();
  added->job->served[added->rank()] = added;
  served_.push_back(std::move(served));
  return added;
}

void Directory::RemoveServed(ServedRank* served) {
  served->job->served[served->rank()] = nullptr;
  if (ErrorCode& ended = served->job->ended[served->rank()]; ended == ErrorCode::kOk) {
    ended = ErrorCode::kNotFound;
  }
  std::erase_if(served_, [served](const auto& one) { return one.get() == served; });
}

ServedRank* Directory::FindServed(const std::string& job_id, uint32_t rank) {
  Job* job = FindJob(job_id);
  return job == nullptr || !job->IsRank(rank) ? nullptr : job->served[rank];
}

Link* Directory::FindLink(uint64_t number) {
  const auto found = links_.find(number);
  return found == links_.end() ? nullptr : found->second.get();
}

Link* Directory::AddLink(const NodeRoute& route, transport::PeerId peer) {
  auto link = std::make_unique<Link>();
  link->number = route.link;
  link->life = route.life;
  link->peer = peer;
  link->fabric_address = route.fabric_address;
  std::unique_ptr<Link>& current = links_[route.link];
  if (current != nullptr) {
    past_links_.push_back(std::move(current));
  }
  return (current = std::move(link)).get();
}

}  // namespace ferry::progress
