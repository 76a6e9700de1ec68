#include "daemon/admin/why_steps.h"

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <iterator>

#include "common/clock.h"
#include "common/counted.h"
#include "daemon/admin/why_streams.h"
#include "daemon/device_rings/ring_report.h"
#include "daemon/jobs/pair_book.h"
#include "engine/engine_options.h"
#include "shm/atomic.h"

namespace ferry::daemon {
namespace {

using Kind = Condition::Kind;
using shm::RequestState;

constexpr size_t kMaxOthersNamed = 3;
constexpr uint64_t kSilenceNs = 1'000'000'000;  // worth a word

std::string OfBytes(uint64_t done, uint64_t size) {
  return std::to_string(done) + " of " + std::to_string(size) + " bytes";
}

// Messages that came but were not asked for: ": rank 0 sent others: tag 5 (2 messages)".
std::string OthersText(const RankView& view, const RequestView& receive) {
  std::string text;
  size_t named = 0;
  size_t groups = 0;
  for (const UnexpectedView& message : view.unexpected) {
    if (receive.peer >= 0 && message.source != static_cast<uint32_t>(receive.peer)) {
      continue;
    }
    if (++groups > kMaxOthersNamed) {
      continue;
    }
    text += named++ == 0 ? "" : ", ";
    text += (receive.peer < 0 ? RankName(message.source) + " " : "") + "tag " +
            std::to_string(message.tag) +
            (message.context != receive.context ? " in context " + std::to_string(message.context)
                                                : "") +
            " (" + Counted(message.count, "message") + ")";
  }
  if (groups > kMaxOthersNamed) {
    text += " and " + std::to_string(groups - kMaxOthersNamed) + " more";
  }
  return text;
}

// The receiver's posted receives that name the sender, for a send that none of them wants.
std::string WantedInstead(const RankView& receiver, uint32_t sender, const RequestView& send) {
  for (const RequestView& request : receiver.requests) {
    if (!request.send && request.state == RequestState::kPosted &&
        request.peer == static_cast<int32_t>(sender)) {
      return request.context != send.context
                 ? "; it waits for context " + std::to_string(request.context) + " instead"
                 : "; it waits for tag " + std::to_string(request.tag) + " instead";
    }
  }
  return "";
}

// Returns the reason for which messages wait while their direction is switched; null: it is not.
const char* SwitchText(shm::PeerPath path) {
  switch (path) {
    case shm::PeerPath::kToLink:
      return "waits for the switch to the direct link to ";
    case shm::PeerPath::kToDaemon:
      return "waits for the switch back from the direct link to ";
    case shm::PeerPath::kBroken:
      return "waits until it has begun anew after a broken direct link with ";
    case shm::PeerPath::kDaemon:
    case shm::PeerPath::kLink:
      break;
  }
  return nullptr;
}

// Asking the progress thread about rings costs a turn of it: most ranks have none.
bool HasRings(const Session& session) {
  const auto& rings = session.layout()->rings;
  return std::any_of(std::begin(rings), std::end(rings), [](const shm::RingWords& words) {
    return shm::LoadRelaxed(words.life_seen) % 2 != 0;  // ferryd serves one there
  });
}

std::optional<StartedPair> PairAt(const std::vector<PairBook::EndView>& ends,
                                  const shm::Location& done) {
  for (const PairBook::EndView& end : ends) {
    if (end.end.region->id == done.region &&
        end.end.offset + offsetof(shm::PairLayout, done) == done.address) {
      return StartedPair{end.peer, end.tag, end.is_send};
    }
  }
  return std::nullopt;
}

}  // namespace

void FillCall(const shm::CallView& call, uint64_t now_ns, control::RankCall* told) {
  told->set_name(shm::CallText(call.name));
  told->set_phrase(shm::CallPhrase(call));
  // A call that is shown from its beginning on has no time before it waits.
  const bool has_waited = call.begin_ns != 0 && call.begin_ns < now_ns;
  told->set_for_ms(has_waited ? (now_ns - call.begin_ns) / 1'000'000 : 0);
}

std::string Seconds(uint64_t ns) {
  const uint64_t tenths = ns / 100'000'000;
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " s";
}

std::string RankName(uint32_t rank) { return "rank " + std::to_string(rank); }

const char* ConditionText(Condition::Kind kind) {
  switch (kind) {
    case Kind::kWaits:
      return "waits";
    case Kind::kJoins:
      return "joins";
    case Kind::kComputes:
      return "computes";
    case Kind::kElsewhere:
      return "elsewhere";
    case Kind::kStopped:
      return "stopped";
    case Kind::kAbsent:
      return "absent";
    case Kind::kUnreachable:
      return "unreachable";
    case Kind::kDied:
      return "died";
    case Kind::kLeft:
      return "left";
  }
  return "";
}

// ---- Ranks ----

const Session* WhySteps::SessionOf(uint32_t rank) const {
  const Session* session = rank < job_.size() ? job_.ranks[rank].session.get() : nullptr;
  return session != nullptr && session->session_map.valid() && session->inbox_map.valid() ? session
                                                                                          : nullptr;
}

const WhySteps::Known& WhySteps::Look(uint32_t rank) {
  const auto [found, is_new] = known_.try_emplace(rank);
  Known& known = found->second;
  if (is_new) {
    if (const Session* session = SessionOf(rank)) {
      known.view = ReadRank(*session);
      known.report = data_plane_.Inspect(job_.spec.id, rank);
    }
    known.condition = ConditionOf(rank, known.view);
    LookAtKernels(rank, &known);
  }
  return known;
}

// A rank that sleeps outside Ferry while its kernels wait sleeps for them, as far as Ferry can
// tell.
void WhySteps::LookAtKernels(uint32_t rank, Known* known) const {
  Kind& kind = known->condition.kind;
  const Session* const session = SessionOf(rank);
  // A data plane of tests serves no rings.
  const auto* const rings = dynamic_cast<const RingInspector*>(&data_plane_);
  const bool may_tell = kind == Kind::kComputes || !known->view.calls.calls.empty();
  if (session == nullptr || rings == nullptr || !may_tell ||
      (kind != Kind::kComputes && kind != Kind::kWaits) || !HasRings(*session)) {
    return;
  }
  const std::vector<PairBook::EndView> ends =
      job_.matches == nullptr ? std::vector<PairBook::EndView>() : job_.matches->EndsOf(rank);
  const KernelContext context{
      [&](const shm::Location& done) { return PairAt(ends, done); },
      [&](uint32_t other) { return job_.IsLocal(other); },
  };
  known->kernels = FindKernelWaits(rings->InspectRings(job_.spec.id, rank), context, MonotonicNs());
  if (!known->kernels.empty() && known->view.process == ProcessState::kSleeps) {
    kind = Kind::kWaits;
  }
}

bool WhySteps::HasRunningThread(uint32_t rank) {
  const auto [found, is_new] = runs_.try_emplace(rank, false);
  const Session* const session = SessionOf(rank);
  // Ranks that a test has made are this process, of which one thread runs here.
  if (is_new && session != nullptr && session->pid != getpid()) {
    found->second = daemon::HasRunningThread(session->pid);
  }
  return found->second;
}

Condition WhySteps::RemoteCondition(uint32_t rank) const {
  const uint32_t index = job_.spec.node_of_rank[rank];
  const Node& node = job_.nodes[index];
  const std::string place = "node " + std::to_string(index) + " (" + node.address + ")";
  if (node.state == NodeState::kFailed) {
    return {Kind::kUnreachable, "is on " + place + ", which is lost: " + node.trouble.message()};
  }
  if (job_.ranks[rank].state != RankState::kJoined) {
    return {Kind::kAbsent, "has not joined on " + place +
                               (node.trouble.ok() ? "" : ": " + node.trouble.message())};
  }
  return {Kind::kElsewhere, "is on " + place + ": `ferryctl why " + job_.spec.id + "." +
                                std::to_string(rank) + "` there tells more"};
}

Condition WhySteps::ConditionOf(uint32_t rank, const RankView& view) const {
  const Rank& known = job_.ranks[rank];
  if (known.state == RankState::kEnded) {
    return known.end.ok() ? Condition{Kind::kLeft, "has left the job"}
                          : Condition{Kind::kDied, "is gone: " + known.end.message()};
  }
  if (!job_.IsLocal(rank)) {
    return RemoteCondition(rank);
  }
  const Session* session = SessionOf(rank);
  if (session == nullptr) {
    return {Kind::kAbsent, "has not attached"};
  }
  const std::string pid = std::to_string(session->pid);
  switch (view.process) {
    case ProcessState::kEnded:
      return {Kind::kDied, "has ended (pid " + pid + ")"};
    case ProcessState::kStopped:
      return {Kind::kStopped,
              "is stopped by a signal (state T): `kill -CONT " + pid + "` lets it go on"};
    case ProcessState::kTraced:
      return {Kind::kStopped, "is held by a debugger (state t, pid " + pid + ")"};
    case ProcessState::kRuns:
    case ProcessState::kSleeps:
    case ProcessState::kUninterruptible:
      break;
  }
  if (known.is_joining) {
    return {Kind::kJoins, "waits for all ranks to join; missing: " + job_.MissingRanks()};
  }
  if (!view.calls.calls.empty()) {
    std::string phrase;
    for (const shm::CallView& call : view.calls.calls) {
      phrase += (phrase.empty() ? "is in " : ", and in ") + shm::CallPhrase(call);
    }
    return {Kind::kWaits, phrase};
  }
  if (view.inside) {
    return {Kind::kWaits, view.asleep ? "waits inside Ferry, asleep" : "is inside Ferry, polling"};
  }
  switch (view.process) {
    case ProcessState::kSleeps:
      return {Kind::kComputes, "is outside Ferry, asleep in a call of its own (pid " + pid + ")"};
    case ProcessState::kUninterruptible:
      return {Kind::kComputes,
              "is outside Ferry, in a system call that cannot be interrupted "
              "(a disk or a driver; pid " +
                  pid + ")"};
    default:
      return {Kind::kComputes, "computes outside Ferry (pid " + pid + ")"};
  }
}

// ---- Requests ----

Step WhySteps::StepOf(uint32_t rank, const RequestView& request) {
  // "Any rank" is for receives that are posted, or were; a match has no peer at all.
  const bool may_be_any = !request.send && request.state != RequestState::kQueued;
  if (request.peer < 0 ? !may_be_any && request.state != RequestState::kMatched
                       : static_cast<uint32_t>(request.peer) >= job_.size()) {
    return {"names a rank that the job does not have"};
  }
  switch (request.state) {
    case RequestState::kQueued:
      return Queued(rank, request);
    case RequestState::kPosted:
      return Posted(rank, request);
    case RequestState::kLanded:
      return {"matched; the rank takes the data out of its lane at its next call"};
    case RequestState::kTransferring:
      return Transferring(rank, request);
    case RequestState::kRemoteWait:
      return BetweenNodes(rank, request);
    case RequestState::kMatched:
      return Matched(request);
    case RequestState::kFree:
    case RequestState::kInactive:
    case RequestState::kComplete:
      break;
  }
  return {"finished meanwhile"};
}

Step WhySteps::Queued(uint32_t rank, const RequestView& request) {
  const auto peer = static_cast<uint32_t>(request.peer);
  const Session& own = *SessionOf(rank);
  Step step;
  step.partner = peer;
  if (const Session* receiver = SessionOf(peer); receiver != nullptr) {
    const uint64_t backlog = LaneBacklog(*receiver, own.local_index);
    step.text = backlog >= shm::kLaneSlots
                    ? "queued: the lane to " + RankName(peer) + " is full (" +
                          std::to_string(backlog) + " messages): " + RankName(peer) + " " +
                          Look(peer).condition.phrase
                    : "queued behind earlier sends to " + RankName(peer);
    return step;
  }
  if (const char* wait = SwitchText(ReadPath(own, peer).out); wait != nullptr) {
    step.text = std::string("queued: ") + wait + RankName(peer);
  } else if (const uint32_t out = CreditsOut(own, peer); out >= engine::kRemoteWindow) {
    step.text = "queued: no credit: " + RankName(peer) + " has not drained the last " +
                Counted(out, "message") + " sent to it";
  } else if (CommandBacklog(own) >= shm::kLaneSlots) {
    step.text = "queued: the lane to ferryd is full";
    step.partner.reset();
  } else {
    step.text = "queued behind earlier sends to " + RankName(peer);
  }
  if (const RankReport& report = Look(rank).report; report.held_ns > kSilenceNs) {
    step.text += std::string("; ferryd has waited for ") + report.held_for + " for " +
                 Seconds(report.held_ns);
  }
  return step;
}

Step WhySteps::Posted(uint32_t rank, const RequestView& request) {
  Step step;
  step.text = "posted, unmatched";
  step.stuck = !request.served;
  const Session& own = *SessionOf(rank);
  if (request.peer >= 0) {
    const auto peer = static_cast<uint32_t>(request.peer);
    step.partner = peer;
    const Session* sender = SessionOf(peer);
    const bool is_by_link = ReadPath(own, peer).in == shm::PeerPath::kLink;
    const uint32_t lane = sender != nullptr ? sender->local_index
                          : is_by_link      ? shm::LinkLane(own.local_size)
                                            : shm::DaemonLane(own.local_size);
    const bool is_remote = !job_.IsLocal(peer);
    if (is_remote) {
      step.drained = ReadPeerCounts(own, peer).drained +
                     static_cast<uint32_t>(PairsReceived(rank, peer, *this));
    }
    if (const uint64_t backlog = sender != nullptr || is_remote ? LaneBacklog(own, lane) : 0;
        backlog != 0) {
      step.stuck = false;
      step.text += "; " + Counted(backlog, "message") + " in the lane from " +
                   (!is_remote   ? RankName(peer)
                    : is_by_link ? "its direct links"
                                 : "ferryd") +
                   " not looked at yet";
    }
  }
  const std::string others = OthersText(Look(rank).view, request);
  const std::string from =
      request.peer < 0 ? "" : " from " + RankName(static_cast<uint32_t>(request.peer));
  step.text += others.empty() ? "; nothing else" + from + " has come"
                              : "; what has come" + from + " is " + others;
  return step;
}

Step WhySteps::Transferring(uint32_t rank, const RequestView& request) {
  Step step;
  const uint32_t owner = request.transfer_rank;
  const Session* session = SessionOf(owner);
  if (session == nullptr) {
    step.text = "matched; " + RankName(owner) + ", which has the data, is gone";
    return step;
  }
  step.partner = request.send ? static_cast<uint32_t>(request.peer) : owner;
  const TransferView transfer = ReadTransfer(*session, request.transfer_index);
  if (transfer.generation != request.transfer_generation) {
    return {"copied; the rank notices it at its next call", request.size_bytes};
  }
  switch (transfer.state) {
    case shm::TransferState::kMatched: {
      const uint64_t done = transfer.size_bytes / transfer.chunks * transfer.chunks_done;
      step.done_bytes = done;
      step.text = "matched; " + std::to_string(transfer.chunks_done) + " of " +
                  Counted(transfer.chunks, "chunk") + " copied";
      if (const uint32_t claimed = std::min(transfer.chunks_claimed, transfer.chunks);
          claimed > transfer.chunks_done) {
        step.text += ", " + std::to_string(claimed - transfer.chunks_done) + " being copied";
      }
      return step;
    }
    case shm::TransferState::kDone:
    case shm::TransferState::kReleased:
      return {transfer.error == ErrorCode::kOk
                  ? "copied; the rank notices it at its next call"
                  : std::string("failed: ") + ErrorCodeText(transfer.error),
              request.size_bytes};
    case shm::TransferState::kIdle:
    case shm::TransferState::kAnnounced:
      break;
  }
  return Announced(rank, request, std::move(step));
}

// Announced, and not matched.
Step WhySteps::Announced(uint32_t rank, const RequestView& request, Step step) {
  const auto peer = static_cast<uint32_t>(request.peer);
  const Session* receiver = SessionOf(peer);
  if (!request.send || receiver == nullptr) {
    step.text = "announced, not matched";
    return step;
  }
  const RankView& view = Look(peer).view;
  const bool seen = std::any_of(
      view.unexpected.begin(), view.unexpected.end(), [&](const UnexpectedView& message) {
        return message.announced && message.source == rank && message.tag == request.tag &&
               message.context == request.context;
      });
  step.stuck = seen;
  step.text = seen ? "announced; " + RankName(peer) + " has posted no receive that matches" +
                         WantedInstead(view, rank, request)
                   : "announced; " + RankName(peer) + " has not looked at its lane (" +
                         Counted(LaneBacklog(*receiver, SessionOf(rank)->local_index), "message") +
                         " there): it " + Look(peer).condition.phrase;
  return step;
}

Step WhySteps::BetweenNodes(uint32_t rank, const RequestView& request) {
  const RankReport& report = Look(rank).report;
  const auto found = std::find_if(
      report.transfers.begin(), report.transfers.end(), [&](const TransferReport& transfer) {
        return transfer.request == request.index && transfer.receiving != request.send;
      });
  Step step;
  if (request.peer >= 0) {
    step.partner = static_cast<uint32_t>(request.peer);
  }
  if (found == report.transfers.end()) {
    const uint64_t backlog = CommandBacklog(*SessionOf(rank));
    if (request.lost && step.partner) {
      step.text = "lost with the direct link; waits until the daemons know whether " +
                  RankName(*step.partner) + " is dead";
    } else if (backlog != 0) {
      step.text = std::string(request.send ? "announced" : "matched") + "; waits with " +
                  Counted(backlog, "command") + " in the lane to ferryd";
    } else if (request.send) {
      step.text = "announced to " + RankName(*step.partner) +
                  "; it has posted no receive that matches, or fetches the data now";
      step.stuck = true;
      step.announced = true;
    } else if (request.peer >= 0 &&
               ReadPath(*SessionOf(rank), *step.partner).in == shm::PeerPath::kLink) {
      step.text = "matched; the rank fetches the data itself, by its direct link to " +
                  RankName(*step.partner);
    } else {
      step.text = "matched; ferryd begins or ends the transfer";
    }
    return step;
  }
  step.partner = found->peer;
  step.done_bytes = found->done_bytes;
  step.text = (request.send ? "matched; fetched by the node of " : "matched; being fetched from ") +
              RankName(found->peer) + ": " + OfBytes(found->done_bytes, found->size_bytes);
  if (found->wants != nullptr) {
    step.text += std::string("; waits for ") + found->wants;
  }
  if (!found->way.empty()) {
    step.text += "; " + found->way;
  }
  if (found->silent_ns > kSilenceNs) {
    step.text += "; nothing has moved for " + Seconds(found->silent_ns);
  }
  return step;
}

// Explains a request of a pair, or one to make pairs, which has no peer of its own.
Step WhySteps::Matched(const RequestView& request) const {
  Step step;
  if (request.peer < 0) {
    step.text = "waits until the persistent requests of a match have partners";
    if (request.awaited != 0 && request.awaited <= job_.size()) {
      step.partner = request.awaited - 1;
      step.text += "; " + RankName(*step.partner) + " has still to make one";
    }
    return step;
  }
  step.partner = static_cast<uint32_t>(request.peer);
  step.text = "its matched partner at " + RankName(*step.partner) +
              " was not started as often, or the message is on its way";
  return step;
}

}  // namespace ferry::daemon
