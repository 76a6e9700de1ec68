#include "internode/core/core_control.h"

#include <algorithm>
#include <utility>

#include "engine/engine_options.h"
#include "internode/rma/one_sided.h"
#include "shm/atomic.h"

namespace ferry::progress {

static_assert(kFirstOneSidedRts == shm::kFirstOneSidedMessage);  // as readers of traces know it

// ------------------------------------------------------------------ jobs, sessions, regions, nodes

Status CoreControl::AddJob(const JobPlan& plan) {
  FERRY_RETURN_IF_ERROR(state_.directory.AddJob(plan));
  Job* job = state_.directory.FindJob(plan.job_id);
  job->private_stage = {state_.copies, state_.options.staging_block_bytes,
                        state_.options.staging_blocks, state_.options.staging_least_blocks};
  job->device_stage = {state_.device_copies, state_.options.device_block_bytes,
                       state_.options.device_blocks, state_.options.device_least_blocks};
  job->trace = state_.tracer.TapFor(plan.job_id);
  return {};
}

void CoreControl::RemoveJob(const std::string& job_id) {
  if (Job* job = state_.directory.FindJob(job_id); job != nullptr) {
    state_.staged_sends.Drop(job, state_.now_ns);
    state_.rndv_gets.Drop(*job);
    state_.rndv_puts.Drop(*job);
    state_.one_sided.memory().Drop(job);
    for (const Stage* stage : {&job->private_stage, &job->device_stage}) {
      state_.depot.Retire(*stage, state_.now_ns + state_.options.operation_timeout_ns);
    }
  }
  state_.directory.RemoveJob(job_id);
  state_.directory.SweepLinks(
      [this](transport::PeerId peer) { (void)state_.transport->RemovePeer(peer); });
}

void CoreControl::AddSession(std::shared_ptr<const ServedSegments> session, const Seat& seat,
                             RankCare care) {
  Job* job = state_.directory.FindJob(session->job_id);
  const uint64_t max_waiting = uint64_t{job->remote_ranks} * engine::kRemoteWindow;
  auto served = std::make_unique<ServedRank>(std::move(session), seat, job, max_waiting,
                                             state_.options.max_held_bytes, job->hold_budget);
  served->attention = std::move(care.attention);
  served->nearest_rail = care.nearest_rail;
  if (care.copier != nullptr) {
    job->private_stage.copier = care.copier;
    job->device_stage.copier = std::move(care.copier);
    job->device_stage.shrinks = false;  // a worker process keeps blocks pinned for its GPU's driver
  }
  ServedRank* added = state_.directory.AddServed(std::move(served));
  for (uint32_t rank = 0; state_.tells_deaths() && rank < job->plan.size(); ++rank) {
    if (job->ended[rank] != ErrorCode::kOk && job->ended[rank] != ErrorCode::kNotFound) {
      added->by_rank.StoreDead(rank, job->ended[rank]);
    }
  }
  if (const auto trouble = arrivals_.DeliverEarly(*added)) {
    ends_.OnTrouble(*trouble);
  }
}

bool CoreControl::TryRemoveSession(const std::string& job_id, uint32_t rank, uint64_t deadline_ns,
                                   bool* says_no_more) {
  ServedRank* served = state_.directory.FindServed(job_id, rank);
  if (served == nullptr) {
    *says_no_more = true;
    return true;
  }
  // Its last commands still go out: a send is over for the rank once it lies in the lane.
  if (!served->ended && served->commands.Peek() != nullptr && state_.now_ns < deadline_ns) {
    return false;
  }
  *says_no_more = true;
  Job* job = served->job;
  state_.ReportLanded(*served);
  served->ended = true;
  served->claim.Drop();
  state_.rndv_gets.FailOf(served, ErrorCode::kPeerDied,
                          state_.now_ns);  // that is what the senders hear
  state_.rndv_puts.FailOf(served, ErrorCode::kPeerDied, state_.now_ns);  // and the receivers
  state_.staged_sends.FailOf(*served, ErrorCode::kPeerDied, state_.now_ns);
  state_.landings.FailOf(*served, ErrorCode::kPeerDied, state_.now_ns);
  if (state_.extension != nullptr) {
    state_.extension->CloseOf(*served, ErrorCode::kPeerDied);
  }
  for (auto& [id, region] : served->regions) {
    region.closing = true;
  }
  state_.one_sided.memory().RetryWaiting(state_.now_ns);
  // A worker process may be stopped: this thread does not wait for it.
  if (served->operations != 0 &&
      (job->private_stage.copier == nullptr ||
       !job->private_stage.copier->Abandon(served->session->local_index, copied_) ||
       served->operations != 0)) {
    return false;
  }
  bool written = false;
  for (auto& [id, region] : served->regions) {
    written |= !state_.rtrs.TryRemoveRegion(*served, region, deadline_ns, state_.now_ns);
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
  state_.rtrs.Forget(*served);
  shm::StoreRelaxed(served->seat.wake->sleepers, 0);
  state_.directory.RemoveServed(served);
  return true;
}

Status CoreControl::AddRegion(const std::string& job_id, uint32_t rank, ClaimableRegion memory) {
  ServedRank* served = state_.directory.FindServed(job_id, rank);
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
  const transport::Capabilities& nic = state_.transport->capabilities();
  const transport::DeviceMemory& device = memory.for_nic;
  if (!nic.reaches_devices || (!device.is_mapped && (device.dmabuf < 0 || !nic.takes_dmabufs))) {
    memory.at_nic = nullptr;
  }
  served->regions[id].memory = std::move(memory);
  return {};
}

bool CoreControl::TryRemoveRegion(const std::string& job_id, uint32_t rank, uint32_t region,
                                  uint64_t deadline_ns,
                                  const std::shared_ptr<UnpinSignal>& unpinned) {
  ServedRank* served = state_.directory.FindServed(job_id, rank);
  if (served == nullptr || !served->regions.contains(region)) {
    return true;
  }
  const auto found = served->regions.find(region);
  found->second.closing = true;
  served->claim.Drop();  // the next command asks again, if it is for another region
  state_.rndv_gets.FailIn(&found->second, ErrorCode::kInvalidBuffer, state_.now_ns);
  state_.staged_sends.FailIn(&found->second, ErrorCode::kInvalidBuffer, state_.now_ns);
  state_.rndv_puts.FailIn(&found->second, ErrorCode::kInvalidBuffer, state_.now_ns);
  state_.one_sided.memory().RetryWaiting(state_.now_ns);
  if (state_.extension != nullptr) {
    state_.extension->CloseIn(*served, found->second);
  }
  if (found->second.users != 0 ||
      !state_.rtrs.TryRemoveRegion(*served, found->second, deadline_ns, state_.now_ns) ||
      !Retire(*served, found->second, deadline_ns, unpinned)) {
    return false;
  }
  if (found->second.memory.at_nic != nullptr) {
    state_.registrar.Unpin(nullptr, nullptr,
                           unpinned);  // after what the extension had pinned of it
  }
  served->regions.erase(found);
  return true;
}

// True once nothing here uses it. A peer that was told of a part may begin to read it until it
// hears of the end, and a key that it does not find would cost it the connection: then the memory
// is kept for a while. So it is, from the deadline on, for a NIC that does not let go.
bool CoreControl::Retire(ServedRank& rank, ServedRegion& region, uint64_t deadline_ns,
                         const std::shared_ptr<UnpinSignal>& unpinned) {
  if (region.announced != 0) {
    state_.staged_sends.ForgetRegion(rank, &region);
  }
  return state_.registrations.TryRetire(region.memory, state_.now_ns, deadline_ns, unpinned);
}

Status CoreControl::AddNode(const std::string& job_id, uint32_t node, const NodeRoute& route) {
  Job* job = state_.directory.FindJob(job_id);
  const std::string what = "node " + std::to_string(node) + " of job " + job_id;
  if (job == nullptr) {
    return {ErrorCode::kNotFound, what + ": the job is not known here"};
  }
  if (node >= job->routes.size() || node == job->plan.node) {
    return {ErrorCode::kInvalidArgument, what + " is not another node of it"};
  }
  Link* link = state_.directory.FindLink(route.link);
  const bool returns = link != nullptr && link->failure == ErrorCode::kLinkDown &&
                       (route.life > link->life || link->routes == 0);  // see ReportLinksDown
  if (job->routes[node].link != nullptr &&
      job->routes[node].link->failure == ErrorCode::kLinkDown && !CoreEnds::HaveSettled(*job)) {
    return {ErrorCode::kWouldBlock, what + ": ranks here have not noticed yet that it was cut off"};
  }
  if (link == nullptr || returns) {
    StatusOr<transport::PeerId> peer = state_.transport->AddPeer(route.fabric_address, route.guest);
    FERRY_RETURN_IF_ERROR(peer.status());
    link = state_.directory.AddLink(route, *peer);
  }
  if (link->failure != ErrorCode::kOk) {
    return {ErrorCode::kNodeUnreachable, what + ": that daemon has failed before"};
  }
  Route& added = job->routes[node];
  if (added.link != nullptr) {
    --added.link->routes;
  }
  ++link->routes;
  added = {.link = link,
           .send_key = route.send_key,
           .receive_key = route.receive_key,
           .was_cut = added.was_cut,
           .is_returning = added.was_cut || route.awaits_answer,
           .is_opening = !added.was_cut && route.awaits_answer,
           .traffic = added.traffic};
  for (const uint32_t rank : job->rank_of_local) {
    if (job->left[rank]) {  // before there was a way to say so
      ends_.TellOfEnd(*job, rank, ErrorCode::kNotFound, node);
    }
  }
  state_.directory.SweepLinks(
      [this](transport::PeerId peer) { (void)state_.transport->RemovePeer(peer); });
  return {};
}

void CoreControl::Connect(uint64_t number, uint64_t now_ns) {
  if (const Link* link = state_.directory.FindLink(number); link != nullptr) {
    state_.transport->Connect(link->peer, now_ns);
  }
}

ErrorCode CoreControl::ConnectionTo(uint64_t number, std::string* why) {
  const Link* link = state_.directory.FindLink(number);
  return link != nullptr ? state_.transport->ConnectionTo(link->peer, why) : ErrorCode::kNotFound;
}

// ----------------------------------------------------------------------------------------- reports

std::vector<NicStatistics> CoreControl::Nics() const {
  std::vector<NicStatistics> nics;
  for (transport::Transport* rail : state_.transport->Rails()) {
    NicStatistics& nic = nics.emplace_back(CountsOf(*rail));
    if (state_.extension != nullptr) {
      state_.extension->Report(nics.size() - 1, &nic);
    }
  }
  NicStatistics& first = nics.front();  // what there is once, it has
  first.errors += arrivals_.dropped();
  const StagingStatistics staging = state_.depot.Statistics();
  first.staging_blocks = staging.blocks;
  first.staging_most_blocks = staging.most_blocks;
  first.staging_busy = staging.busy;
  first.staging_waits = staging.waits;
  first.staging_grown = staging.grown;
  first.staging_shrunk = staging.shrunk;
  first.device_direct += staging.device_direct;
  first.device_staged = staging.device_staged;
  first.device_refusal = state_.registrations.device_refusal();
  first.outstanding = static_cast<uint32_t>(state_.Counters().operations);
  return nics;
}

NicStatistics CoreControl::CountsOf(const transport::Transport& rail) {
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

Status CoreControl::StartTrace(TraceRing ring) {
  FERRY_RETURN_IF_ERROR(state_.tracer.Start(std::move(ring), MonotonicNs()));
  for (const auto& [id, job] : state_.directory.jobs()) {
    job->trace.Follow(state_.tracer.TapFor(id));
  }
  return {};
}

StatusOr<TraceDump> CoreControl::StopTrace() {
  if (state_.tracer.on()) {
    state_.rndv_gets.TraceUnfinished();
    state_.staged_sends.TraceUnfinished();
    state_.rndv_puts.TraceUnfinished();
  }
  for (const auto& [id, job] : state_.directory.jobs()) {
    job->trace.Follow({});
  }
  return state_.tracer.Stop(MonotonicNs());
}

void CoreControl::TraceJob(const std::string& job_id,
                           std::shared_ptr<shm::DaemonTraceWriter> events) {
  if (Job* const job = state_.directory.FindJob(job_id); job != nullptr) {
    job->trace.Keep(std::move(events));
  }
}

RankReport CoreControl::Inspect(const std::string& job_id, uint32_t rank) {
  RankReport report;
  const ServedRank* served = state_.directory.FindServed(job_id, rank);
  if (served == nullptr) {
    return report;
  }
  state_.rndv_gets.Report(*served, state_.now_ns, &report.transfers);
  state_.staged_sends.Report(*served, state_.now_ns, &report.transfers);
  state_.rndv_puts.Report(*served, state_.now_ns, &report.transfers);
  state_.rtrs.Report(*served, state_.now_ns, &report.transfers);
  if (served->held && state_.now_ns > served->held_since_ns) {
    report.held_ns = state_.now_ns - served->held_since_ns;
  }
  if (served->held && served->claim.waiting()) {
    report.held_ns = state_.now_ns - std::min(state_.now_ns, served->claim.since_ns());
    report.held_for = served->claim.wants();
  }
  report.arrivals_waiting = served->delivery.waiting();
  return report;
}

std::vector<NodeTraffic> CoreControl::Traffic(const std::string& job_id) const {
  std::vector<NodeTraffic> traffic;
  if (const Job* const job = state_.directory.FindJob(job_id); job != nullptr) {
    for (size_t node = 0; node < job->routes.size(); ++node) {
      traffic.push_back(job->routes[node].traffic);
    }
  }
  return traffic;
}

bool CoreControl::IsIdleWith(const std::string& job_id, uint32_t peer) {
  Job* const job = state_.directory.FindJob(job_id);
  if (job == nullptr || !job->IsRank(peer)) {
    return true;
  }
  const Link* const link = job->RouteTo(peer).link;
  if (!state_.rndv_gets.IsIdleWith(job, peer) || !state_.staged_sends.IsIdleWith(job, peer) ||
      !state_.rndv_puts.IsIdleWith(job, peer) || !state_.pushes.IsIdleWith(job, peer) ||
      state_.one_sided.memory().OwesNews(job, peer) ||
      (link != nullptr && (!state_.landings.IsIdleWith(*link) || !link->frame.empty() ||
                           !link->waiting.empty() || link->outstanding != 0))) {
    return false;
  }
  bool any = false;
  job->ForEachServed([&](ServedRank& rank) {
    any |= rank.delivery.HasRtsOf(peer) || !OneSided::IsIdleWith(rank, peer);
    rank.ForEachRts([&](const SentRts& rts) {
      any |= rts.state != SentRts::State::kNone && rts.destination == peer;
    });
    for (const RtrReceive& entry : rank.rtr_receives) {
      any |= entry.state != RtrReceive::State::kNone && entry.source == peer;
    }
  });
  return !any;
}

bool CoreControl::WantsOf(const std::string& job_id, uint32_t peer) {
  Job* const job = state_.directory.FindJob(job_id);
  bool wants = false;
  if (job != nullptr) {
    job->ForEachServed([&](ServedRank& rank) { wants |= !OneSided::IsIdleWith(rank, peer); });
  }
  return wants;
}

bool CoreControl::FetchesPutInto(const std::string& job_id, uint32_t peer, MemoryRange memory) {
  return state_.rndv_gets.FetchesPutInto(state_.directory.FindJob(job_id), peer, memory);
}

bool CoreControl::Idle() const {
  const auto is_through = [](const std::shared_ptr<Copier>& copier) {
    return copier == nullptr || copier->pending() == 0;
  };
  return state_.rndv_gets.empty() && state_.staged_sends.empty() && state_.pushes.empty() &&
         state_.landings.empty() && state_.rndv_puts.empty() && state_.rtrs.written() == 0 &&
         is_through(state_.copies) && is_through(state_.device_copies) && !state_.outbound.busy() &&
         std::all_of(
             state_.directory.jobs().begin(), state_.directory.jobs().end(),
             [&](const auto& entry) { return is_through(entry.second->private_stage.copier); }) &&
         std::all_of(state_.directory.served().begin(), state_.directory.served().end(),
                     [](const auto& rank) {
                       return rank->ended ||
                              (rank->delivery.empty() && !rank->delivery.has_landed() &&
                               rank->commands.Peek() == nullptr);
                     });
}

}  // namespace ferry::progress
