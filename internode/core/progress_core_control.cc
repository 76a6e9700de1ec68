// ProgressCore: what the control plane asks for. See progress_core.h.
#include <algorithm>
#include <utility>

#include "engine/engine_options.h"
#include "internode/core/progress_core.h"
#include "shm/atomic.h"

namespace ferry::progress {

// ---- Jobs, sessions, regions, nodes ------------------------------------------------------------

Status ProgressCore::AddJob(const JobPlan& plan) {
  FERRY_RETURN_IF_ERROR(directory_.AddJob(plan));
  Job* job = directory_.FindJob(plan.job_id);
  job->private_stage = {copies_, options_.staging_block_bytes, options_.staging_blocks,
                        options_.staging_least_blocks};
  job->device_stage = {device_copies_, options_.device_block_bytes, options_.device_blocks,
                       options_.device_least_blocks};
  job->trace = tracer_.TapFor(plan.job_id);
  return {};
}

void ProgressCore::RemoveJob(const std::string& job_id) {
  if (Job* job = directory_.FindJob(job_id); job != nullptr) {
    staged_sends_.Drop(job, now_ns_);
    rndv_gets_.Drop(*job);
    rndv_puts_.Drop(*job);
    one_sided_.Drop(job);
    for (const Stage* stage : {&job->private_stage, &job->device_stage}) {
      depot_.Retire(*stage, now_ns_ + options_.operation_timeout_ns);
    }
  }
  directory_.RemoveJob(job_id);
  directory_.SweepLinks([this](transport::PeerId peer) { (void)transport_->RemovePeer(peer); });
}

void ProgressCore::AddSession(std::shared_ptr<const ServedSegments> session, const Seat& seat,
                              RankCare care) {
  Job* job = directory_.FindJob(session->job_id);
  const uint64_t max_waiting = uint64_t{job->remote_ranks} * engine::kRemoteWindow;
  auto served = std::make_unique<ServedRank>(std::move(session), seat, job, max_waiting,
                                             options_.max_held_bytes, job->hold_budget);
  served->attention = std::move(care.attention);
  served->nearest_rail = care.nearest_rail;
  if (care.copier != nullptr) {
    job->private_stage.copier = care.copier;
    job->device_stage.copier = std::move(care.copier);
    job->device_stage.shrinks = false;  // a worker process keeps blocks pinned for its GPU's driver
  }
  ServedRank* added = directory_.AddServed(std::move(served));
  for (uint32_t rank = 0; tells_deaths() && rank < job->plan.size(); ++rank) {
    if (job->ended[rank] != ErrorCode::kOk && job->ended[rank] != ErrorCode::kNotFound) {
      shm::StoreRelease(added->session->layout()->peers[rank].dead,
                        static_cast<uint32_t>(job->ended[rank]));
    }
  }
  if (const auto trouble = arrivals_.DeliverEarly(*added)) {
    OnTrouble(*trouble);
  }
}

bool ProgressCore::TryRemoveSession(const std::string& job_id, uint32_t rank, uint64_t deadline_ns,
                                    bool* says_no_more) {
  ServedRank* served = directory_.FindServed(job_id, rank);
  if (served == nullptr) {
    *says_no_more = true;
    return true;
  }
  // Its last commands still go out: a send is over for the rank once it lies in the lane.
  if (!served->ended && served->commands.Peek() != nullptr && now_ns_ < deadline_ns) {
    return false;
  }
  *says_no_more = true;
  Job* job = served->job;
  ReportLanded(*served);
  served->ended = true;
  served->claim.Drop();
  rndv_gets_.FailOf(served, ErrorCode::kPeerDied, now_ns_);  // that is what the senders hear
  rndv_puts_.FailOf(served, ErrorCode::kPeerDied, now_ns_);  // and the receivers
  staged_sends_.FailOf(*served, ErrorCode::kPeerDied, now_ns_);
  landings_.FailOf(*served, ErrorCode::kPeerDied, now_ns_);
  if (extension_ != nullptr) {
    extension_->CloseOf(*served, ErrorCode::kPeerDied);
  }
  for (auto& [id, region] : served->regions) {
    region.closing = true;
  }
  one_sided_.RetryWaiting(now_ns_);
  // A worker process may be stopped: this thread does not wait for it.
  if (served->operations != 0 &&
      (job->private_stage.copier == nullptr ||
       !job->private_stage.copier->Abandon(served->session->local_index, *this) ||
       served->operations != 0)) {
    return false;
  }
  bool written = false;
  for (auto& [id, region] : served->regions) {
    written |= !rtrs_.TryRemoveRegion(*served, region, deadline_ns, now_ns_);
  }
  if (written) {
    return false;
  }
  for (auto next = served->regions.begin(); next != served->regions.end();) {
    next = Retire(*served, next->second, deadline_ns, nullptr) ? served->regions.erase(next)
                                                               : std::next(next);
  }
  if (!served->regions.empty()) {
    return false;
  }
  rtrs_.Forget(*served);
  shm::StoreRelaxed(served->seat.wake->sleepers, 0);
  directory_.RemoveServed(served);
  return true;
}

Status ProgressCore::AddRegion(const std::string& job_id, uint32_t rank, ClaimableRegion memory) {
  ServedRank* served = directory_.FindServed(job_id, rank);
  const uint32_t id = memory.number;
  memory.name =
      "region " + std::to_string(id) + " of rank " + std::to_string(rank) + " of job " + job_id;
  if (served == nullptr || served->ended) {
    return {ErrorCode::kNotFound, memory.name + ": the rank is not served here"};
  }
  if (id == 0 || (memory.base != nullptr) == memory.by_stream) {
    return {ErrorCode::kInvalidArgument,
            memory.name + ": needs a number other than 0, and a mapping"};
  }
  if (served->regions.contains(id)) {
    return {ErrorCode::kAlreadyExists, memory.name + " is known already"};
  }
  memory.identity.region = ++regions_added_;
  const transport::Capabilities& nic = transport_->capabilities();
  const transport::DeviceMemory& device = memory.for_nic;
  if (!nic.reaches_devices || (!device.is_mapped && (device.dmabuf < 0 || !nic.takes_dmabufs))) {
    memory.at_nic = nullptr;
  }
  served->regions[id].memory = std::move(memory);
  return {};
}

bool ProgressCore::TryRemoveRegion(const std::string& job_id, uint32_t rank, uint32_t region,
                                   uint64_t deadline_ns,
                                   const std::shared_ptr<UnpinSignal>& unpinned) {
  ServedRank* served = directory_.FindServed(job_id, rank);
  if (served == nullptr || !served->regions.contains(region)) {
    return true;
  }
  const auto found = served->regions.find(region);
  found->second.closing = true;
  served->claim.Drop();  // the next command asks again, if it is for another region
  rndv_gets_.FailIn(&found->second, ErrorCode::kInvalidBuffer, now_ns_);
  staged_sends_.FailIn(&found->second, ErrorCode::kInvalidBuffer, now_ns_);
  rndv_puts_.FailIn(&found->second, ErrorCode::kInvalidBuffer, now_ns_);
  one_sided_.RetryWaiting(now_ns_);
  if (extension_ != nullptr) {
    extension_->CloseIn(*served, found->second);
  }
  if (found->second.users != 0 ||
      !rtrs_.TryRemoveRegion(*served, found->second, deadline_ns, now_ns_) ||
      !Retire(*served, found->second, deadline_ns, unpinned)) {
    return false;
  }
  if (found->second.memory.at_nic != nullptr) {
    registrar_.Unpin(nullptr, nullptr, unpinned);  // after what the extension had pinned of it
  }
  served->regions.erase(found);
  return true;
}

// True once nothing here uses it. A peer that was told of a part may begin to read it until it
// hears of the end, and a key that it does not find would cost it the connection: then the memory
// is kept for a while. So it is, from the deadline on, for a NIC that does not let go.
bool ProgressCore::Retire(ServedRank& rank, ServedRegion& region, uint64_t deadline_ns,
                          const std::shared_ptr<UnpinSignal>& unpinned) {
  if (region.announced != 0) {
    staged_sends_.ForgetRegion(rank, &region);
  }
  return registrations_.TryRetire(region.memory, now_ns_, deadline_ns, unpinned);
}

Status ProgressCore::AddNode(const std::string& job_id, uint32_t node, const NodeRoute& route) {
  Job* job = directory_.FindJob(job_id);
  const std::string what = "node " + std::to_string(node) + " of job " + job_id;
  if (job == nullptr) {
    return {ErrorCode::kNotFound, what + ": the job is not known here"};
  }
  if (node >= job->routes.size() || node == job->plan.node) {
    return {ErrorCode::kInvalidArgument, what + " is not another node of it"};
  }
  Link* link = directory_.FindLink(route.link);
  const bool returns = link != nullptr && link->failure == ErrorCode::kLinkDown &&
                       (route.life > link->life || link->routes == 0);  // see ReportBrokenLinks
  if (job->routes[node].link != nullptr &&
      job->routes[node].link->failure == ErrorCode::kLinkDown && !HaveSettled(*job)) {
    return {ErrorCode::kWouldBlock, what + ": ranks here have not noticed yet that it was cut off"};
  }
  if (link == nullptr || returns) {
    StatusOr<transport::PeerId> peer = transport_->AddPeer(route.fabric_address, route.guest);
    FERRY_RETURN_IF_ERROR(peer.status());
    link = directory_.AddLink(route, *peer);
  }
  if (link->failure != ErrorCode::kOk) {
    return {ErrorCode::kNodeUnreachable, what + ": that daemon has failed before"};
  }
  Route& added = job->routes[node];
  if (added.link != nullptr) {
    --added.link->routes;
  }
  ++link->routes;
  added = {link, route.send_key, route.receive_key, added.was_cut, added.was_cut};
  for (uint32_t rank = 0; rank < job->plan.size(); ++rank) {
    if (job->IsLocal(rank) && job->left[rank]) {  // before there was a way to say so
      TellOfEnd(*job, rank, ErrorCode::kNotFound, node);
    }
  }
  directory_.SweepLinks([this](transport::PeerId peer) { (void)transport_->RemovePeer(peer); });
  return {};
}

// Returns true once the job's ranks here have left the last cut behind them: each has acted on it,
// and the daemon has read all commands that the rank had written until then.
bool ProgressCore::HaveSettled(const Job& job) {
  return std::all_of(job.served.begin(), job.served.end(), [](ServedRank* rank) {
    return rank == nullptr || rank->ended || HasSettled(*rank);
  });
}

bool ProgressCore::HasSettled(ServedRank& rank) {
  // Pairs with PeerEnds::ApplyDeaths.
  const uint32_t applied = shm::LoadAcquire(rank.session->layout()->deaths_applied);
  if (static_cast<int32_t>(applied - rank.cut_epoch) < 0) {
    return false;
  }
  if (!rank.last_stale_command) {
    rank.last_stale_command = *rank.commands.HeadWord() + rank.commands.Backlog();
  }
  return *rank.commands.HeadWord() >= *rank.last_stale_command;
}

void ProgressCore::NodeReturned(const std::string& job_id, uint32_t node) {
  Job* job = directory_.FindJob(job_id);
  if (job == nullptr || node >= job->routes.size()) {
    return;
  }
  ReturnNode(*job, node);
}

// Its ranks hear of it before they get anything that the node sends: one that has a message of
// after a cut can answer it.
void ProgressCore::ReturnNode(Job& job, uint32_t node) {
  job.routes[node].is_returning = false;
  for (uint32_t rank = 0; rank < job.plan.size(); ++rank) {
    if (job.plan.node_of_rank[rank] != node || job.ended[rank] != ErrorCode::kLinkDown) {
      continue;
    }
    if (job.left[rank]) {  // its node does not say so again
      MarkDead(job, rank, ErrorCode::kNotFound);
      continue;
    }
    job.ended[rank] = ErrorCode::kOk;
    for (ServedRank* served : job.served) {
      if (served == nullptr) {
        continue;
      }
      served->partings.erase(rank);
      if (tells_deaths()) {  // Pairs with SendEngine::CanLeave.
        shm::StoreRelease(served->session->layout()->peers[rank].dead, 0U);
      }
    }
  }
  AnnounceDeaths(job);
}

void ProgressCore::Connect(uint64_t number, uint64_t now_ns) {
  if (const Link* link = directory_.FindLink(number); link != nullptr) {
    transport_->Connect(link->peer, now_ns);
  }
}

ErrorCode ProgressCore::ConnectionTo(uint64_t number, std::string* why) {
  const Link* link = directory_.FindLink(number);
  return link != nullptr ? transport_->ConnectionTo(link->peer, why) : ErrorCode::kNotFound;
}

// ---- Looking in --------------------------------------------------------------------------------

std::vector<NicStatistics> ProgressCore::Nics() const {
  std::vector<NicStatistics> nics;
  for (transport::Transport* rail : transport_->Rails()) {
    NicStatistics& nic = nics.emplace_back(CountsOf(*rail));
    if (extension_ != nullptr) {
      extension_->Report(nics.size() - 1, &nic);
    }
  }
  NicStatistics& first = nics.front();  // what there is once, it has
  first.errors += arrivals_.dropped();
  const StagingStatistics staging = depot_.Statistics();
  first.staging_blocks = staging.blocks;
  first.staging_most_blocks = staging.most_blocks;
  first.staging_busy = staging.busy;
  first.staging_waits = staging.waits;
  first.staging_grown = staging.grown;
  first.staging_shrunk = staging.shrunk;
  first.device_direct += staging.device_direct;
  first.device_staged = staging.device_staged;
  first.device_refusal = registrations_.device_refusal();
  first.outstanding = static_cast<uint32_t>(Counters().operations);
  return nics;
}

NicStatistics ProgressCore::CountsOf(const transport::Transport& rail) {
  const transport::Description& description = rail.Describe();
  const transport::Statistics& counts = rail.statistics();
  const transport::Capabilities& can = rail.capabilities();
  NicStatistics nic;
  nic.takes_dmabufs = can.takes_dmabufs;
  nic.device_memory = can.takes_dmabufs     ? "by address or dma-buf"
                      : can.reaches_devices ? "by address"
                                            : "staged";
  nic.provider = description.provider;
  nic.fabric = description.fabric;
  nic.domain = description.domain;
  nic.address = description.address;
  nic.source_address = description.source_address;
  nic.version = description.version;
  nic.messages_sent = counts.messages_sent;
  nic.messages_received = counts.messages_received;
  nic.bytes_sent = counts.message_bytes_sent + counts.write_bytes;
  nic.bytes_received = counts.message_bytes_received + counts.read_bytes;
  nic.reads = counts.reads;
  nic.writes = counts.writes;
  nic.errors = counts.errors;
  return nic;
}

TraceCounters ProgressCore::Counters() const {
  TraceCounters counters;
  counters.operations = rndv_gets_.reads() + rndv_puts_.writes();
  for (const auto& [number, link] : directory_.links()) {
    counters.operations += link->outstanding;
  }
  const StagingStatistics staging = depot_.Statistics();
  counters.staging_busy = staging.busy;
  counters.staging_waits = staging.waits;
  return counters;
}

Status ProgressCore::StartTrace(TraceRing ring) {
  FERRY_RETURN_IF_ERROR(tracer_.Start(std::move(ring), MonotonicNs()));
  for (const auto& [id, job] : directory_.jobs()) {
    job->trace = tracer_.TapFor(id);
  }
  return {};
}

StatusOr<TraceDump> ProgressCore::StopTrace() {
  if (tracer_.on()) {
    rndv_gets_.TraceUnfinished();
    staged_sends_.TraceUnfinished();
    rndv_puts_.TraceUnfinished();
  }
  for (const auto& [id, job] : directory_.jobs()) {
    job->trace = {};
  }
  return tracer_.Stop(MonotonicNs());
}

RankReport ProgressCore::Inspect(const std::string& job_id, uint32_t rank) {
  RankReport report;
  const ServedRank* served = directory_.FindServed(job_id, rank);
  if (served == nullptr) {
    return report;
  }
  rndv_gets_.Report(*served, now_ns_, &report.transfers);
  staged_sends_.Report(*served, now_ns_, &report.transfers);
  rndv_puts_.Report(*served, now_ns_, &report.transfers);
  rtrs_.Report(*served, now_ns_, &report.transfers);
  if (served->held && now_ns_ > served->held_since_ns) {
    report.held_ns = now_ns_ - served->held_since_ns;
  }
  if (served->held && served->claim.waiting()) {
    report.held_ns = now_ns_ - std::min(now_ns_, served->claim.since_ns());
    report.held_for = served->claim.wants();
  }
  report.arrivals_waiting = served->delivery.waiting();
  return report;
}

bool ProgressCore::IsIdleWith(const std::string& job_id, uint32_t peer) {
  Job* const job = directory_.FindJob(job_id);
  if (job == nullptr || !job->IsRank(peer)) {
    return true;
  }
  const Link* const link = job->RouteTo(peer).link;
  if (!rndv_gets_.IsIdleWith(job, peer) || !staged_sends_.IsIdleWith(job, peer) ||
      !rndv_puts_.IsIdleWith(job, peer) || !pushes_.IsIdleWith(job, peer) ||
      one_sided_.OwesNews(job, peer) ||
      (link != nullptr && (!landings_.IsIdleWith(*link) || !link->frame.empty() ||
                           !link->waiting.empty() || link->outstanding != 0))) {
    return false;
  }
  return std::all_of(job->served.begin(), job->served.end(), [peer](ServedRank* rank) {
    if (rank == nullptr) {
      return true;
    }
    bool any = rank->delivery.HasRtsOf(peer);
    rank->ForEachRts([&](const SentRts& rts) {
      any |= rts.state != SentRts::State::kNone && rts.destination == peer;
    });
    for (const RtrReceive& entry : rank->rtr_receives) {
      any |= entry.state != RtrReceive::State::kNone && entry.source == peer;
    }
    return !any && OneSided::IsIdleWith(*rank, peer);
  });
}

bool ProgressCore::WantsOf(const std::string& job_id, uint32_t peer) {
  Job* const job = directory_.FindJob(job_id);
  return job != nullptr &&
         std::any_of(job->served.begin(), job->served.end(), [&](ServedRank* rank) {
           return rank != nullptr && !OneSided::IsIdleWith(*rank, peer);
         });
}

bool ProgressCore::Idle() const {
  const auto is_through = [](const std::shared_ptr<Copier>& copier) {
    return copier == nullptr || copier->pending() == 0;
  };
  return rndv_gets_.empty() && staged_sends_.empty() && pushes_.empty() && landings_.empty() &&
         rndv_puts_.empty() && rtrs_.written() == 0 && is_through(copies_) &&
         is_through(device_copies_) && !outbound_.busy() &&
         std::all_of(
             directory_.jobs().begin(), directory_.jobs().end(),
             [&](const auto& entry) { return is_through(entry.second->private_stage.copier); }) &&
         std::all_of(directory_.served().begin(), directory_.served().end(), [](const auto& rank) {
           return rank->ended || (rank->delivery.empty() && !rank->delivery.has_landed() &&
                                  rank->commands.Peek() == nullptr);
         });
}

}  // namespace ferry::progress
