#include "daemon/admin/why.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/counted.h"
#include "daemon/admin/why_steps.h"

namespace ferry::daemon {
namespace {

using Kind = Condition::Kind;

constexpr uint64_t kNsPerMs = 1'000'000;
constexpr uint64_t kTroublingNs = 1'000'000'000;

// Contexts of the application are those of its communicators; this one is Ferry's (barriers).
constexpr uint32_t kInternalContext = 1;

// ---- The chain ----

// How much the end of a chain explains.
int Weight(Kind kind) {
  switch (kind) {
    case Kind::kDied:
    case Kind::kLeft:
    case Kind::kUnreachable:
      return 5;
    case Kind::kStopped:
    case Kind::kAbsent:
      return 4;
    case Kind::kComputes:
    case Kind::kElsewhere:
      return 2;
    case Kind::kWaits:
    case Kind::kJoins:
      return 1;
  }
  return 0;
}
constexpr int kCircleWeight = 3;

struct Chain {
  std::vector<uint32_t> ranks;
  bool circle = false;  // the last rank stands in it twice, and all between wait for each other
  int weight = 0;
};

// Follows all ranks that a rank waits for, depth first, and keeps the chain whose end explains
// most. A rank that waits for several may need all or one of them: Ferry cannot know.
class ChainFinder {
 public:
  explicit ChainFinder(WhySteps* steps) : steps_(*steps) {}

  Chain Find(uint32_t rank) {
    Follow(rank);
    return best_;
  }

 private:
  void Keep(int weight, bool circle) {
    if (weight > best_.weight) {
      best_ = {path_, circle, weight};
    }
  }

  void Follow(uint32_t rank) {
    path_.push_back(rank);
    const WhySteps::Known& known = steps_.Look(rank);
    const Kind kind = known.condition.kind;
    Keep(Weight(kind), false);
    // Only a rank inside a blocking call waits; what others have begun goes on without them.
    if (visited_.insert(rank).second && kind == Kind::kWaits) {
      std::set<uint32_t> followed;
      for (const RequestView& request : known.view.requests) {
        const Step step = steps_.StepOf(rank, request);
        if (step.partner && *step.partner != rank && followed.insert(*step.partner).second) {
          Meet(*step.partner);
        }
      }
    }
    path_.pop_back();
  }

  void Meet(uint32_t partner) {
    const auto before = std::find(path_.begin(), path_.end(), partner);
    if (before != path_.end()) {
      if (IsStuck({before, path_.end()})) {
        path_.push_back(partner);
        Keep(kCircleWeight, true);
        path_.pop_back();
      }
      return;
    }
    if (!visited_.contains(partner)) {
      Follow(partner);
    }
  }

  // Returns true if all ranks of the circle sleep, and wait for what only the next one's program
  // can do.
  bool IsStuck(const std::vector<uint32_t>& circle) {
    for (size_t i = 0; i < circle.size(); ++i) {
      const uint32_t next = circle[(i + 1) % circle.size()];
      const RankView& view = steps_.Look(circle[i]).view;
      const bool waits =
          std::any_of(view.requests.begin(), view.requests.end(), [&](const RequestView& request) {
            const Step step = steps_.StepOf(circle[i], request);
            return step.stuck && step.partner == next;
          });
      if (!view.asleep || !waits) {
        return false;
      }
    }
    return true;
  }

  WhySteps& steps_;
  std::vector<uint32_t> path_;
  std::set<uint32_t> visited_;
  Chain best_;
};

// The ranks of a circle were looked at one after the other: what was true of each need not have
// been true of all at once. It was, if nothing has moved when all are looked at again.
Chain FindChain(uint32_t rank, WhySteps* steps) {
  Chain chain = ChainFinder(steps).Find(rank);
  if (!chain.circle) {
    return chain;
  }
  std::vector<uint64_t> before;
  for (const uint32_t each : chain.ranks) {
    before.push_back(steps->Look(each).view.fingerprint);
  }
  steps->Forget();
  Chain again = ChainFinder(steps).Find(rank);
  again.circle = again.circle && again.ranks == chain.ranks;
  for (size_t i = 0; i < before.size() && again.circle; ++i) {
    again.circle = steps->Look(again.ranks[i]).view.fingerprint == before[i];
  }
  return again;
}

std::string Verdict(const Chain& chain, WhySteps* steps) {
  const uint32_t first = chain.ranks.front();
  const WhySteps::Known& known = steps->Look(first);
  std::string text = chain.circle ? "deadlock: " + RankName(first) : RankName(first);
  for (size_t i = 1; i < chain.ranks.size(); ++i) {
    text += (i == 1 ? " waits for " : ", which waits for ") + RankName(chain.ranks[i]);
  }
  if (chain.circle) {
    return text + ": each of them waits for what the next one has not sent or asked for";
  }
  if (chain.ranks.size() > 1) {
    const Condition& end = steps->Look(chain.ranks.back()).condition;
    return text + ", which " + end.phrase;
  }
  text += " " + known.condition.phrase;
  if (known.condition.kind == Kind::kWaits) {
    text += known.view.unfinished == 0
                ? ", without a request: in a probe, for memory that others change, or just done"
                : ": for any rank, or for a copy that is under way";
  } else if (known.view.unfinished != 0) {
    text += "; " + std::to_string(known.view.unfinished) + " of its requests are unfinished";
  }
  return text;
}

// ---- One rank ----

void AddReasons(uint32_t rank, uint64_t now_ns, WhySteps* steps, control::RankWait* wait) {
  // A copy: steps of peers may forget and look anew.
  const std::vector<RequestView> requests = steps->Look(rank).view.requests;
  for (const RequestView& request : requests) {
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

void ReportRank(uint32_t rank, bool details, uint64_t now_ns, QuietLog* quiet, WhySteps* steps,
                control::RankWait* wait) {
  const Chain chain = FindChain(rank, steps);
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
  }
  if (known.condition.kind == Kind::kWaits) {
    wait->set_waits_ms(WaitMs(known.view, now_ns).value_or(wait->quiet_ms()));
  }
  wait->mutable_chain()->Add(chain.ranks.begin(), chain.ranks.end());
  wait->set_deadlock(chain.circle);
  const Condition& end = steps->Look(chain.ranks.back()).condition;
  wait->set_leaves_node(!chain.circle && end.kind == Kind::kElsewhere);
  wait->set_end(end.phrase);
  wait->set_verdict(Verdict(chain, steps));
  AddTroubles(rank, steps, wait);
  if (details) {
    AddReasons(rank, now_ns, steps, wait);
    AddUnexpected(steps->Look(rank).view, wait);
  }
}

}  // namespace

uint64_t QuietLog::Note(uint64_t job_serial, uint32_t rank, uint64_t fingerprint, uint64_t now_ns) {
  const auto [entry, is_new] = entries_.try_emplace({job_serial, rank}, Entry{fingerprint, now_ns});
  if (!is_new && entry->second.fingerprint != fingerprint) {
    entry->second = {fingerprint, now_ns};
  }
  return now_ns - entry->second.since_ns;
}

void QuietLog::Sweep(const JobRegistry& registry) {
  std::set<uint64_t> serials;
  for (const auto& [id, job] : registry.jobs()) {
    serials.insert(job->serial);
  }
  std::erase_if(entries_, [&](const auto& entry) { return !serials.contains(entry.first.first); });
}

namespace {

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
    const bool waits = job.IsLocal(rank) && (steps.Look(rank).condition.kind == Kind::kWaits ||
                                             steps.Look(rank).condition.kind == Kind::kJoins);
    if (waits) {
      ReportRank(rank, false, now_ns, quiet, &steps, reply->add_ranks());
    }
  }
}

}  // namespace

Status SummarizeRank(const JobRegistry& registry, const DataPlane& data_plane,
                     const std::string& job_id, uint32_t rank, uint64_t now_ns, QuietLog* quiet,
                     control::WhyReply* reply) {
  quiet->Sweep(registry);
  const StatusOr<const JobRecord*> job = FindJob(registry, job_id);
  FERRY_RETURN_IF_ERROR(job.status());
  FERRY_RETURN_IF_ERROR(CheckIsHere(**job, rank));
  WhySteps steps(**job, data_plane);
  ReportRank(rank, false, now_ns, quiet, &steps, reply->add_ranks());
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
    for (uint32_t rank = 0; rank < job.size(); ++rank) {
      if (job.IsLocal(rank)) {
        ReportRank(rank, false, now_ns, quiet, &steps, reply->add_ranks());
      }
    }
    return {};
  }
  FERRY_RETURN_IF_ERROR(CheckIsHere(job, request.rank()));
  ReportRank(request.rank(), true, now_ns, quiet, &steps, reply->add_ranks());
  return {};
}

}  // namespace ferry::daemon
