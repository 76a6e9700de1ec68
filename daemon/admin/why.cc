#include "daemon/admin/why.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/counted.h"
#include "daemon/admin/why_kernels.h"
#include "daemon/admin/why_steps.h"
#include "daemon/admin/why_streams.h"
#include "shm/call_record.h"

namespace ferry::daemon {
namespace {

using Kind = Condition::Kind;

constexpr uint64_t kNsPerMs = 1'000'000;
constexpr uint64_t kTroublingNs = 1'000'000'000;
constexpr size_t kMostEdges = 256;   // of a rank
constexpr size_t kMostAround = 256;  // ranks of LookAround
constexpr uint32_t kMostPairs = 1024;
constexpr uint64_t kLongMs = 3000;  // a wait that may be a deadlock: most others are shorter

// Contexts of the application are those of its communicators; this one is Ferry's (barriers).
constexpr uint32_t kInternalContext = 1;

// ---- One rank ----

void AddReasons(uint32_t rank, uint64_t now_ns, WhySteps* steps, control::RankWait* wait) {
  for (const RequestView& request : steps->Look(rank).view.requests) {
    const Step step = steps->StepOf(rank, request);
    control::WaitReason* reason = wait->add_reasons();
    const bool barrier = request.context == kInternalContext;
    reason->set_operation(barrier ? "barrier" : request.send ? "send" : "receive");
    reason->set_peer(request.peer);
    reason->set_tag(request.tag);
    reason->set_context(request.context);
    reason->set_size_bytes(request.size_bytes);
    reason->set_step(step.text);
    reason->set_done_bytes(std::min(step.done_bytes, request.size_bytes));
    if (request.start_ns != 0 && request.start_ns < now_ns) {
      reason->set_age_ms((now_ns - request.start_ns) / kNsPerMs);
    }
    if (step.partner && *step.partner < steps->job().size()) {
      reason->set_peer_state(ConditionText(steps->Look(*step.partner).condition.kind));
    }
  }
}

void AddUnexpected(const RankView& view, control::RankWait* wait) {
  for (const UnexpectedView& message : view.unexpected) {
    control::UnexpectedMessages* group = wait->add_unexpected();
    group->set_source(message.source);
    group->set_tag(message.tag);
    group->set_context(message.context);
    group->set_size_bytes(message.size_bytes);
    group->set_count(message.count);
    group->set_announced(message.announced);
  }
}

void AddTroubles(uint32_t rank, WhySteps* steps, control::RankWait* wait) {
  const JobRecord& job = steps->job();
  const WhySteps::Known& known = steps->Look(rank);
  if (!job.failure.ok()) {
    wait->add_troubles("the job has failed: " + job.failure.message());
  }
  if (known.view.poison != ErrorCode::kOk) {
    wait->add_troubles(std::string("every call of this rank fails: ") +
                       ErrorCodeText(known.view.poison));
  }
  if (known.report.held_ns > kTroublingNs) {
    wait->add_troubles(
        std::string("ferryd cannot pass on the rank's next message to another node: it has waited "
                    "for ") +
        known.report.held_for + " for " + std::to_string(known.report.held_ns / kTroublingNs) +
        " s");
  }
  if (known.report.arrivals_waiting != 0) {
    wait->add_troubles(Counted(static_cast<int64_t>(known.report.arrivals_waiting),
                               "message from other nodes waits", "messages from other nodes wait") +
                       " in ferryd: the rank's lane is full");
  }
  for (uint32_t index = 0; index < job.nodes.size(); ++index) {
    const Node& node = job.nodes[index];
    if (node.state != NodeState::kSelf && !node.trouble.ok()) {
      wait->add_troubles("node " + std::to_string(index) + " (" + node.address +
                         "): " + node.trouble.message());
    }
  }
  for (uint32_t other = 0; other < job.size(); ++other) {
    if (const Rank& ended = job.ranks[other]; ended.state == RankState::kEnded && !ended.end.ok()) {
      wait->add_troubles(RankName(other) + " ended: " + ended.end.message());
      break;  // the first of them; others mostly follow from it
    }
  }
}

// The time since a waiting rank's latest request, after which it has begun nothing. Earlier
// requests say little: a receive may be posted for hours while the rank is busy with others.
// Nothing if it has none.
std::optional<uint64_t> WaitMs(const RankView& view, uint64_t now_ns) {
  uint64_t latest_ns = 0;
  for (const RequestView& request : view.requests) {
    latest_ns = std::max(latest_ns, std::min(request.start_ns, now_ns));
  }
  if (latest_ns == 0) {
    return std::nullopt;
  }
  return (now_ns - latest_ns) / kNsPerMs;
}

// ---- Calls and edges ----

// The only call of the rank that waits, if there is just one.
const shm::CallView* OnlyCall(const RankView& view) {
  const shm::CallsView& all = view.calls;
  return all.calls.size() == 1 && all.unshown == 0 && !all.changing ? &all.calls.front() : nullptr;
}

// The one rank that can end the call, if the call says so: it waits for no other request of the
// rank. Of a call that sends to one rank and receives from another the record has one only.
std::optional<uint32_t> OnlyPeer(const RankView& view) {
  const shm::CallView* const call = OnlyCall(view);
  if (call == nullptr || call->peer < 0) {
    return std::nullopt;
  }
  switch (call->name) {
    case shm::CallName::kMpiSend:
    case shm::CallName::kMpiSsend:
    case shm::CallName::kMpiRsend:
    case shm::CallName::kMpiRecv:
    case shm::CallName::kMpiProbe:
    case shm::CallName::kMpiMprobe:
    case shm::CallName::kFerrySend:
    case shm::CallName::kFerryRecv:
    case shm::CallName::kFerryProbe:
      return static_cast<uint32_t>(call->peer);
    default:
      return std::nullopt;
  }
}

// Returns true if one of the requests that the call waits for is enough, and it is unknown which.
bool EndsWithAny(const shm::CallView& call) {
  return call.name == shm::CallName::kMpiWaitany || call.name == shm::CallName::kMpiWaitsome ||
         call.name == shm::CallName::kFerryWaitany;
}

bool Meets(const shm::CallView& call) {
  const shm::CallKind kind = shm::KindOf(call.name);
  return call.has_group && call.has_number &&
         (kind == shm::CallKind::kCollective || kind == shm::CallKind::kCommunicator ||
          kind == shm::CallKind::kLife || kind == shm::CallKind::kMemory);
}

std::string EndsBy(const shm::CallView& call) {
  if (shm::KindOf(call.name) == shm::CallKind::kWait) {
    return kAnyRankMayChange;
  }
  if (!call.file.empty() && !call.has_number) {  // ranks that meet have one
    return "the system has not carried it out";
  }
  if (call.name == shm::CallName::kFerryQueueWait ||
      call.name == shm::CallName::kFerryStreamSynchronize) {
    return "its stream has not done all that was enqueued";
  }
  if (call.peer == shm::kCallAnyRank) {
    return kAnybodyMaySend;
  }
  return EndsWithAny(call) ? "the end of one of its requests is enough" : "";
}

void AddCalls(const RankView& view, uint64_t now_ns, control::RankWait* wait) {
  for (const shm::CallView& call : view.calls.calls) {
    control::RankCall* const told = wait->add_calls();
    FillCall(call, now_ns, told);
    told->set_ends_by(EndsBy(call));
    if (Meets(call)) {
      told->set_meets(true);
      told->set_group(call.group);
      told->set_number(call.number);
    }
  }
}

// The edges of one rank, one to each peer.
class Edges {
 public:
  Edges(const WhySteps& steps, uint32_t rank, control::RankWait* wait)
      : steps_(steps), rank_(rank), wait_(*wait) {}

  // Null: there is no such rank, it is the rank itself, or there are edges enough.
  control::WaitEdge* To(uint32_t peer) {
    if (peer == rank_ || peer >= steps_.job().size() ||
        (by_peer_.size() >= kMostEdges && !by_peer_.contains(peer))) {
      return nullptr;
    }
    control::WaitEdge*& edge = by_peer_[peer];
    if (edge == nullptr) {
      edge = wait_.add_edges();
      edge->set_peer(peer);
    }
    return edge;
  }

 private:
  const WhySteps& steps_;
  const uint32_t rank_;
  control::RankWait& wait_;
  std::map<uint32_t, control::WaitEdge*> by_peer_;
};

// Messages of a peer on another node that have come, by lanes and by matched pairs (it wraps).
uint32_t DrainedFrom(const WhySteps& steps, uint32_t rank, uint32_t peer) {
  return ReadPeerCounts(*steps.SessionOf(rank), peer).drained +
         static_cast<uint32_t>(PairsReceived(rank, peer, steps));
}

// The peer must send: to a probe, which has no request, or to a receive from any rank.
void AddSender(const Session& own, const WhySteps& steps, uint32_t peer, control::WaitEdge* edge) {
  const Session* const sender = steps.SessionOf(peer);
  const bool is_empty = sender == nullptr || LaneBacklog(own, sender->local_index) == 0;
  edge->set_receives(is_empty);
  if (!steps.job().IsLocal(peer)) {
    edge->set_drained(DrainedFrom(steps, own.rank, peer));
  }
}

void AddStep(const RequestView& request, const Step& step, control::WaitEdge* edge) {
  if (step.announced) {
    if (edge->announced() == 0) {
      edge->set_context(request.context);
      edge->set_tag(request.tag);
    }
    if (edge->context() == request.context && edge->tag() == request.tag) {
      edge->set_announced(edge->announced() + 1);
    }
  } else if (step.stuck && request.send) {
    edge->set_sends(true);
  } else if (step.stuck) {
    edge->set_receives(true);
    if (step.drained) {
      edge->set_drained(*step.drained);
    }
  }
}

// Adds all ranks that may still send. None, where the list would not be whole.
void AddAnybody(uint32_t rank, const WhySteps& steps, Edges* edges) {
  const JobRecord& job = steps.job();
  if (job.size() > kMostEdges) {
    return;
  }
  for (uint32_t peer = 0; peer < job.size(); ++peer) {
    control::WaitEdge* const edge =
        job.ranks[peer].state == RankState::kEnded ? nullptr : edges->To(peer);
    if (edge != nullptr) {
      AddSender(*steps.SessionOf(rank), steps, peer, edge);
    }
  }
}

// Adds whom a rank waits for of which one is enough: all of them, or none of the edges says that
// the rank is stuck.
void AddAlternatives(uint32_t rank, const shm::CallView& call, WhySteps* steps, Edges* edges,
                     control::RankWait* wait) {
  const RankView& view = steps->Look(rank).view;
  const bool is_from_any = call.peer == shm::kCallAnyRank;
  const bool is_probe = shm::KindOf(call.name) == shm::CallKind::kProbe;
  bool is_whole = view.requests.size() == view.unfinished;
  bool is_posted = false;               // a receive from any rank
  std::set<uint32_t> moving;            // of them a request may end by itself
  std::map<uint32_t, uint32_t> counts;  // requests by peer
  for (const RequestView& request : view.requests) {
    if (!request.send && request.peer < 0) {
      is_posted = is_posted || request.state == shm::RequestState::kPosted;
      is_whole = is_whole && request.state == shm::RequestState::kPosted;
      continue;
    }
    if (is_from_any) {
      continue;  // that receive ends without the others
    }
    const Step step = steps->StepOf(rank, request);
    control::WaitEdge* const edge = step.partner ? edges->To(*step.partner) : nullptr;
    if (edge == nullptr) {
      is_whole = false;
      continue;
    }
    AddStep(request, step, edge);
    ++counts[*step.partner];
    if (!step.stuck) {
      moving.insert(*step.partner);
    }
  }
  if (is_from_any || is_posted) {
    AddAnybody(rank, *steps, edges);
    is_whole = is_whole && (is_posted || is_probe);
  }
  for (control::WaitEdge& edge : *wait->mutable_edges()) {
    const uint32_t peer = edge.peer();
    // An edge has room for one send, or for receives.
    const uint32_t count = counts[peer] + (is_posted ? 1 : 0);
    const bool is_one = count == 1 || (!edge.sends() && edge.announced() == 0);
    if (!is_whole || !is_one || moving.contains(peer)) {
      edge.Clear();
      edge.set_peer(peer);
    }
  }
}

// Says what the stream waits for that the rank waits for, and which rank keeps it from that for
// ever.
void AddStreamWait(uint32_t rank, WhySteps* steps, control::RankWait* wait) {
  const std::optional<StreamWait> stream = FindStreamWait(rank, steps);
  if (!stream) {
    return;
  }
  const auto call =
      std::find_if(wait->mutable_calls()->begin(), wait->mutable_calls()->end(),
                   [](const control::RankCall& told) {
                     return told.name() == shm::CallText(shm::CallName::kFerryQueueWait);
                   });
  if (call == wait->mutable_calls()->end()) {
    return;
  }
  const std::string text = StreamWaitText(*stream);
  // A peer on another node may hold back what this one waits for: its daemon will say.
  const bool may_be_held = stream->is_remote && !stream->is_send;
  control::WaitEdge* const edge =
      stream->is_peer_held || may_be_held ? Edges(*steps, rank, wait).To(stream->peer) : nullptr;
  if (edge == nullptr) {
    call->set_ends_by(call->ends_by() + "; the next message that it waits for is one " + text);
    return;
  }
  // The stream never wakes to look around, and no other thread changes the order of its queue.
  wait->set_asleep(true);
  if (may_be_held) {
    edge->set_receives(true);
    edge->set_drained(DrainedFrom(*steps, rank, stream->peer));
    wait->set_detail(wait->detail() + ": " + call->ends_by() +
                     "; the next message that it waits for is one " + text);
  } else {
    edge->set_sends(true);
    wait->set_detail(wait->detail() + ", whose stream has first " + text +
                     ", where that stands behind a wait");
  }
  call->set_ends_by("");
}

// Says what the rank's kernels wait for, and adds whom: by edges that never say that it is stuck.
void AddKernels(uint32_t rank, WhySteps* steps, Edges* edges, control::RankWait* wait) {
  for (const uint32_t peer : TellKernels(steps->Look(rank).kernels, wait)) {
    edges->To(peer);
  }
  const size_t size = steps->job().size();
  const bool is_for_any = NeedsOf(*wait) == KernelNeeds::kAnyRank && size <= kMostEdges;
  for (uint32_t peer = 0; is_for_any && peer < size; ++peer) {
    if (steps->job().ranks[peer].state != RankState::kEnded) {
      edges->To(peer);
    }
  }
}

// Adds whom the rank waits for: one inside a blocking call, or one outside Ferry whose kernels
// wait.
void AddEdges(uint32_t rank, WhySteps* steps, control::RankWait* wait) {
  const RankView& view = steps->Look(rank).view;
  const std::optional<uint32_t> only = OnlyPeer(view);
  Edges edges(*steps, rank, wait);
  if (!steps->Look(rank).is_in_call()) {
    return AddKernels(rank, steps, &edges, wait);
  }
  if (const shm::CallView* const call = OnlyCall(view); call != nullptr) {
    const shm::CallKind kind = shm::KindOf(call->name);
    if (kind == shm::CallKind::kQueue) {
      AddStreamWait(rank, steps, wait);
      return wait->edges().empty() ? AddKernels(rank, steps, &edges, wait) : void();
    }
    if (kind == shm::CallKind::kWait) {
      return;  // it ends whatever becomes of the rank's requests
    }
    if (EndsWithAny(*call) || call->peer == shm::kCallAnyRank) {
      return AddAlternatives(rank, *call, steps, &edges, wait);
    }
  }
  for (const shm::CallView& call : view.calls.calls) {
    if (call.missing >= 0) {
      if (control::WaitEdge* const edge = edges.To(static_cast<uint32_t>(call.missing))) {
        edge->set_meets(true);
      }
    } else if (shm::KindOf(call.name) == shm::CallKind::kProbe && call.peer >= 0) {
      if (control::WaitEdge* const edge = edges.To(static_cast<uint32_t>(call.peer))) {
        AddSender(*steps->SessionOf(rank), *steps, edge->peer(), edge);
      }
    }
  }
  for (const RequestView& request : view.requests) {
    const Step step = steps->StepOf(rank, request);
    if (!step.partner || (only && *step.partner != *only)) {
      continue;
    }
    if (control::WaitEdge* const edge = edges.To(*step.partner); edge != nullptr) {
      AddStep(request, step, edge);
    }
  }
}

// ---- A look ----

// Returns true if the rank sleeps in Ferry and was not woken: the kernel says the same of the
// thread, where it is known.
bool IsAsleep(const RankView& view) {
  const shm::CallView* const call = OnlyCall(view);
  const ProcessState thread =
      call != nullptr ? ReadProcessState(static_cast<pid_t>(call->thread)) : view.process;
  return view.asleep && thread != ProcessState::kRuns;
}

// Fills in all that one look at the rank tells. Of a rank elsewhere that is little.
void FillLook(uint32_t rank, bool details, uint64_t now_ns, QuietLog* quiet, WhySteps* steps,
              control::RankWait* wait) {
  const WhySteps::Known& known = steps->Look(rank);
  const Session* session = steps->SessionOf(rank);
  wait->set_job_id(steps->job().spec.id);
  wait->set_rank(rank);
  wait->set_node(steps->job().spec.node_of_rank[rank]);
  wait->set_state(ConditionText(known.condition.kind));
  wait->set_detail(known.condition.phrase);
  wait->set_unfinished(known.view.unfinished);
  if (session != nullptr) {
    wait->set_pid(static_cast<uint32_t>(session->pid));
    wait->set_quiet_ms(quiet->Note(steps->job().serial, rank, known.view.fingerprint, now_ns) /
                       kNsPerMs);
    wait->set_mark(known.view.mark);
    wait->set_asleep(IsAsleep(known.view));
  }
  const bool waits = known.condition.kind == Kind::kWaits;
  if (waits) {
    AddCalls(known.view, now_ns, wait);
  }
  AddKernelCalls(known.kernels, wait);
  if (waits || !known.kernels.empty()) {
    wait->set_waits_ms(wait->calls().empty() ? WaitMs(known.view, now_ns).value_or(wait->quiet_ms())
                                             : wait->calls(0).for_ms());
    AddEdges(rank, steps, wait);
  }
  AddTroubles(rank, steps, wait);
  if (details) {
    AddReasons(rank, now_ns, steps, wait);
    AddUnexpected(steps->Look(rank).view, wait);
  }
}

// Adds what the rank has for another one that waits for it.
void FillPair(uint32_t rank, uint32_t waiter, WhySteps* steps, control::RankWait* wait) {
  const RankView& view = steps->Look(rank).view;
  // Another thread may be about to send; but what streams have to do first stands in their queues.
  const std::optional<StreamWait> stream = FindStreamWait(waiter, steps);
  const PairsTo pairs = FindPairsTo(rank, waiter, steps);
  const bool is_by_stream =
      pairs.is_held || (stream && stream->is_peer_held && stream->peer == rank);
  wait->set_asleep(wait->asleep() && (is_by_stream || !steps->HasRunningThread(rank)));
  AddUnexpected(view, wait);
  wait->set_queued_to_waiter(
      pairs.may_send ||
      std::any_of(view.requests.begin(), view.requests.end(), [&](const RequestView& request) {
        return request.send && request.state == shm::RequestState::kQueued &&
               request.peer == static_cast<int32_t>(waiter);
      }));
  if (const Session* session = steps->SessionOf(rank)) {
    wait->set_sent_to_waiter(ReadPeerCounts(*session, waiter).sent +
                             static_cast<uint32_t>(pairs.sent));
  }
}

StatusOr<const JobRecord*> FindJob(const JobRegistry& registry, const std::string& job_id,
                                   std::optional<uid_t> uid = {}) {
  const auto found = registry.jobs().find(job_id);
  if (found == registry.jobs().end() || (uid.has_value() && found->second->spec.owner != *uid)) {
    return Status(ErrorCode::kNotFound, "there is no job " + job_id +
                                            " on this daemon (`ferryctl status` lists its jobs)");
  }
  return found->second.get();
}

Status CheckIsHere(const JobRecord& job, uint32_t rank) {
  if (rank >= job.size()) {
    return {ErrorCode::kNotFound, "job " + job.spec.id + " has no rank " + std::to_string(rank) +
                                      ": its ranks are 0 to " + std::to_string(job.size() - 1)};
  }
  if (!job.IsLocal(rank)) {
    const uint32_t node = job.spec.node_of_rank[rank];
    return {ErrorCode::kNotFound, "rank " + std::to_string(rank) + " of job " + job.spec.id +
                                      " is not on this node: ask the ferryd of node " +
                                      std::to_string(node) + " at " + job.nodes[node].address};
  }
  return {};
}

// Its ranks here that wait for others.
void ReportWaiting(const JobRecord& job, const DataPlane& data_plane, uint64_t now_ns,
                   QuietLog* quiet, control::WhyReply* reply) {
  WhySteps steps(job, data_plane);
  for (uint32_t rank = 0; rank < job.size(); ++rank) {
    const WhySteps::Known& known = steps.Look(rank);
    if (job.IsLocal(rank) && (known.condition.kind == Kind::kWaits || !known.kernels.empty() ||
                              known.condition.kind == Kind::kJoins)) {
      FillLook(rank, false, now_ns, quiet, &steps, reply->add_ranks());
    }
  }
}

}  // namespace

control::RankWait KnownOf(const JobRecord& job, const DataPlane& data_plane, uint32_t rank,
                          uint64_t now_ns, QuietLog* quiet) {
  WhySteps steps(job, data_plane);
  control::RankWait wait;
  FillLook(rank, false, now_ns, quiet, &steps, &wait);
  return wait;
}

Status LookAround(const JobRegistry& registry, const DataPlane& data_plane,
                  const std::string& job_id, uint32_t rank, uint64_t now_ns, QuietLog* quiet,
                  control::WhyReply* reply) {
  quiet->Sweep(registry);
  const StatusOr<const JobRecord*> job = FindJob(registry, job_id);
  FERRY_RETURN_IF_ERROR(job.status());
  FERRY_RETURN_IF_ERROR(CheckIsHere(**job, rank));
  WhySteps steps(**job, data_plane);
  std::set<uint32_t> met = {rank};
  std::deque<uint32_t> next = {rank};
  for (; !next.empty(); next.pop_front()) {
    control::RankWait* const wait = reply->add_ranks();
    FillLook(next.front(), false, now_ns, quiet, &steps, wait);
    for (const control::WaitEdge& edge : wait->edges()) {
      if ((*job)->IsLocal(edge.peer()) && met.size() < kMostAround &&
          met.insert(edge.peer()).second) {
        next.push_back(edge.peer());
      }
    }
  }
  return {};
}

Status LookAtPairs(const JobRegistry& registry, const DataPlane& data_plane,
                   const std::string& job_id, const WaitPairs& pairs, uint64_t now_ns,
                   QuietLog* quiet, control::WhyReply* reply) {
  const StatusOr<const JobRecord*> job = FindJob(registry, job_id);
  FERRY_RETURN_IF_ERROR(job.status());
  if (static_cast<uint32_t>(pairs.size()) > kMostPairs) {
    return {ErrorCode::kLimitExceeded, "too many ranks in one question"};
  }
  WhySteps steps(**job, data_plane);
  for (const control::WaitPair& pair : pairs) {
    FERRY_RETURN_IF_ERROR(CheckIsHere(**job, pair.rank()));
    control::RankWait* const wait = reply->add_ranks();
    FillLook(pair.rank(), false, now_ns, quiet, &steps, wait);
    FillPair(pair.rank(), pair.waiter(), &steps, wait);
  }
  return {};
}

Status ReportWhy(const JobRegistry& registry, std::optional<uid_t> uid, const DataPlane& data_plane,
                 const control::WhyRequest& request, uint64_t now_ns, QuietLog* quiet,
                 control::WhyReply* reply) {
  quiet->Sweep(registry);
  if (request.job_id().empty() && request.all_ranks()) {
    for (const auto& [id, job] : registry.jobs()) {
      if (!uid.has_value() || job->spec.owner == *uid) {
        ReportWaiting(*job, data_plane, now_ns, quiet, reply);
      }
    }
    return {};
  }
  const StatusOr<const JobRecord*> found = FindJob(registry, request.job_id(), uid);
  FERRY_RETURN_IF_ERROR(found.status());
  const JobRecord& job = **found;
  WhySteps steps(job, data_plane);
  if (request.all_ranks()) {
    for (const uint32_t rank : job.own_ranks) {
      control::RankWait look;
      FillLook(rank, false, now_ns, quiet, &steps, &look);
      if (!request.deadlocks_only() || (look.asleep() && look.waits_ms() >= kLongMs)) {
        *reply->add_ranks() = std::move(look);
      }
    }
    return {};
  }
  FERRY_RETURN_IF_ERROR(CheckIsHere(job, request.rank()));
  FillLook(request.rank(), true, now_ns, quiet, &steps, reply->add_ranks());
  return {};
}

}  // namespace ferry::daemon
