#include "daemon/jobs/job_relay.h"

#include <algorithm>
#include <utility>

#include "common/log.h"
#include "daemon/jobs/peer_requests.h"
#include "daemon/tls/secrets.h"

namespace ferry::daemon {
namespace {

using control::RelayedNews;

// Of one request, as in news_queue.h.
constexpr int kMostNews = 1024;
constexpr size_t kMostBytes = 256 << 10;

RelayedNews NewsOf(const JobRecord& job, const JobFact& fact, uint64_t own_incarnation) {
  RelayedNews news;
  const auto set_why = [&news](const Status& why) {
    news.set_error(static_cast<int32_t>(why.code()));
    news.set_text(why.message());
  };
  switch (fact.kind) {
    case JobFact::Kind::kJoined: {
      const uint32_t node = job.spec.node_of_rank[fact.index];
      news.set_kind(RelayedNews::JOINED);
      news.set_rank(fact.index);
      news.set_count(fact.count);
      news.set_node(node);
      news.set_incarnation(node == job.spec.node ? own_incarnation
                                                 : job.nodes[node].known_incarnation);
      news.set_private_memory_reachable(job.ranks[fact.index].private_memory_reachable);
      break;
    }
    case JobFact::Kind::kEnded: {
      const Status& end = job.ranks[fact.index].end;
      news.set_kind(RelayedNews::ENDED);
      news.set_rank(fact.index);
      news.set_count(fact.count);
      if (!end.ok()) {
        // To ranks of other nodes the death of this daemon means that its node is unreachable.
        const ErrorCode error = PeerError(end.code());
        set_why(
            {error == ErrorCode::kDaemonDied ? ErrorCode::kNodeUnreachable : error, end.message()});
      }
      break;
    }
    case JobFact::Kind::kLost:
      news.set_kind(RelayedNews::LOST);
      news.set_node(fact.index);
      news.set_incarnation(
          std::max(job.nodes[fact.index].incarnation, job.nodes[fact.index].known_incarnation));
      set_why(job.nodes[fact.index].trouble);
      break;
    case JobFact::Kind::kFailed:
      news.set_kind(RelayedNews::FAILED);
      set_why(job.failure);
      break;
    case JobFact::Kind::kAborted:
      news.set_kind(RelayedNews::ABORTED);
      news.set_text(job.failure.message());
      break;
  }
  return news;
}

// Adds the news to the last ones, if those say the same of the ranks before.
bool Extend(const JobRecord& job, const RelayedNews& news, RelayedNews* last) {
  const bool is_of_ranks = news.kind() == RelayedNews::JOINED || news.kind() == RelayedNews::ENDED;
  if (!is_of_ranks || last->kind() != news.kind() || news.rank() != last->rank() + last->count() ||
      job.spec.node_of_rank[news.rank()] != job.spec.node_of_rank[last->rank()] ||
      news.private_memory_reachable() != last->private_memory_reachable() ||
      news.error() != last->error() || news.text() != last->text()) {
    return false;
  }
  last->set_count(last->count() + news.count());
  return true;
}

// True if the same as this fact is true of the rank `index`, the next one of the same node.
bool IsNextOf(const JobRecord& job, const JobFact& fact, JobFact::Kind kind, uint32_t index,
              uint32_t from) {
  const bool is_of_ranks = kind == JobFact::Kind::kJoined || kind == JobFact::Kind::kEnded;
  if (!is_of_ranks || fact.kind != kind || fact.from != from || index != fact.index + fact.count ||
      job.spec.node_of_rank[index] != job.spec.node_of_rank[fact.index]) {
    return false;
  }
  const Rank& first = job.ranks[fact.index];
  const Rank& rank = job.ranks[index];
  return kind == JobFact::Kind::kJoined
             ? rank.private_memory_reachable == first.private_memory_reachable
             : rank.end.code() == first.end.code() && rank.end.message() == first.end.message();
}

}  // namespace

// ---- Neighbours ----

bool JobRelay::IsOut(const JobRecord& job, uint32_t node) {
  const auto neighbour = job.news->neighbours.find(node);
  return job.nodes[node].state == NodeState::kFailed ||
         (neighbour != job.news->neighbours.end() && neighbour->second.is_over);
}

void JobRelay::FindNeighbours(JobRecord& job) {
  const JobTree& tree = job.news->tree;
  const auto is_out = [&job](uint32_t node) { return IsOut(job, node); };
  const auto is_away = [&](uint32_t node) {
    return is_out(node) || job.nodes[node].state == NodeState::kCut;
  };
  const auto is_slow = [&](uint32_t node) {
    return is_away(node) || (job.nodes[node].state == NodeState::kUp &&
                             jobs_.links().IsSilent(job.nodes[node].address));
  };
  for (const std::optional<uint32_t> above : {tree.Upward(is_away), tree.Upward(is_slow)}) {
    if (above) {
      AddNeighbour(job, *above);
    }
  }
  for (const uint32_t node : tree.Downward(is_out)) {
    AddNeighbour(job, node);
  }
}

void JobRelay::AddNeighbour(JobRecord& job, uint32_t node) {
  if (job.nodes[node].state == NodeState::kFailed ||
      !job.news->neighbours.try_emplace(node).second) {
    return;
  }
  jobs_.WantWay(job, node);
  Deliver(job, node);
}

void JobRelay::OnWayChanged(JobRecord& job) {
  FindNeighbours(job);
  DeliverAll(job);
}

void JobRelay::OnTick(JobRecord& job) {
  TellOwn(job);
  OnWayChanged(job);
}

// ---- Facts ----

// Most facts are about all ranks of a node at once: these are one.
void JobRelay::Add(JobRecord& job, JobFact::Kind kind, uint32_t index, uint32_t from) {
  JobNews& news = *job.news;
  ++news.learned;
  if (news.facts.size() > news.sealed && IsNextOf(job, news.facts.back(), kind, index, from)) {
    ++news.facts.back().count;
  } else {
    news.facts.push_back({kind, index, from});
  }
}

void JobRelay::TellOwn(JobRecord& job) {
  JobNews& news = *job.news;
  const uint32_t self = job.spec.node;
  for (const uint32_t index : job.own_ranks) {
    Rank& rank = job.ranks[index];
    if (rank.has_joined && !std::exchange(rank.is_join_told, true)) {
      Add(job, JobFact::Kind::kJoined, index, self);
    }
  }
  for (const uint32_t index : job.own_ranks) {
    Rank& rank = job.ranks[index];
    if (rank.announced && !std::exchange(rank.is_end_told, true)) {
      Add(job, JobFact::Kind::kEnded, index, self);
    }
  }
  if (job.aborted && !std::exchange(news.has_told_abort, true)) {
    Add(job, JobFact::Kind::kAborted, 0, self);
  }
  if (!job.failure.ok() && !job.complete && !job.aborted &&
      !std::exchange(news.has_told_failure, true)) {
    Add(job, JobFact::Kind::kFailed, 0, self);
  }
  DeliverAll(job);
}

void JobRelay::TellLost(JobRecord& job, uint32_t node) {
  Add(job, JobFact::Kind::kLost, node, job.spec.node);
  OnWayChanged(job);
}

// ---- From a neighbour ----

StatusOr<JobRecord*> JobRelay::Check(const control::RelayRequest& request,
                                     const std::string& caller) {
  if (request.news_size() > kMostNews) {
    return Status(ErrorCode::kInvalidArgument, std::to_string(request.news_size()) +
                                                   " news in one call, where at most " +
                                                   std::to_string(kMostNews) + " are told");
  }
  StatusOr<JobRecord*> job =
      owner_.FindOrBegin(request.job_id(), request.job_proof(), request.incarnation());
  FERRY_RETURN_IF_ERROR(job.status());
  FERRY_RETURN_IF_ERROR(CheckNode(**job, request.node(), caller));
  if ((*job)->news == nullptr) {
    return Status(ErrorCode::kUnsupported, "the nodes of job " + request.job_id() + " are no tree");
  }
  const Node& node = (*job)->nodes[request.node()];
  if (node.state == NodeState::kFailed) {
    return node.trouble;
  }
  const uint64_t known = node.state == NodeState::kUp ? node.incarnation : node.known_incarnation;
  if (known != 0 && known != request.incarnation()) {
    return Status(ErrorCode::kNodeUnreachable,
                  "node " + std::to_string(request.node()) + " of job " + request.job_id() +
                      " has another incarnation: its daemon was restarted");
  }
  const JobTree& tree = (*job)->news->tree;
  const auto is_out = [&](uint32_t index) { return IsOut(**job, index); };
  const std::optional<uint32_t> above = tree.Upward(is_out);
  const bool is_in_line = tree.IsBelow(request.node(), (*job)->spec.node) ||
                          tree.IsBelow((*job)->spec.node, request.node());
  // Without a node above, this one or the caller takes the place of the root.
  if (!is_in_line && above.has_value() && above != request.node()) {
    return Status(ErrorCode::kNodeUnreachable, "node " + std::to_string(request.node()) +
                                                   " is no neighbour of node " +
                                                   std::to_string((*job)->spec.node) +
                                                   " in the tree of job " + request.job_id());
  }
  return job;
}

Status JobRelay::Take(const control::RelayRequest& request, const std::string& caller) {
  const StatusOr<JobRecord*> found = Check(request, caller);
  FERRY_RETURN_IF_ERROR(found.status());
  JobRecord& job = **found;
  job.nodes[request.node()].known_incarnation = request.incarnation();
  AddNeighbour(job, request.node());
  const uint64_t before = job.news->learned;
  {
    const HeldEnds ends(jobs_, job);
    for (const RelayedNews& news : request.news()) {
      Apply(job, request.node(), news);
    }
  }
  if (job.news->learned != before) {
    owner_.OnJoinedElsewhere(job);
    DeliverAll(job);
    jobs_.SweepSoon();
    jobs_.Changed();
  }
  return {};
}

void JobRelay::Apply(JobRecord& job, uint32_t from, const RelayedNews& news) {
  const Status why(static_cast<ErrorCode>(news.error()), news.text());
  switch (news.kind()) {
    case RelayedNews::JOINED:
    case RelayedNews::ENDED:
      if (news.rank() >= job.size() || news.count() > job.size() - news.rank()) {
        return;
      }
      for (uint32_t rank = news.rank(); rank < news.rank() + news.count(); ++rank) {
        if (job.news->tree.IsTheWayOf(job.spec.node_of_rank[rank], from)) {
          ApplyToRank(job, from, rank, news);
        }
      }
      return;
    case RelayedNews::LOST:
      return ApplyLoss(job, from, news);
    case RelayedNews::FAILED:
      if (!job.complete && !why.ok() && !std::exchange(job.news->has_told_failure, true)) {
        Add(job, JobFact::Kind::kFailed, 0, from);
        jobs_.FailJob(job, why);
      }
      return;
    case RelayedNews::ABORTED:
      if (!std::exchange(job.news->has_told_abort, true)) {
        Add(job, JobFact::Kind::kAborted, 0, from);
        jobs_.AbortJob(job, {ErrorCode::kAborted, news.text()});
      }
      return;
    default:
      return;
  }
}

void JobRelay::ApplyToRank(JobRecord& job, uint32_t from, uint32_t index, const RelayedNews& news) {
  Rank& rank = job.ranks[index];
  if (news.kind() == RelayedNews::JOINED) {
    uint64_t& known = job.nodes[job.spec.node_of_rank[index]].known_incarnation;
    known = known == 0 ? news.incarnation() : known;
    if (rank.state == RankState::kAbsent && !std::exchange(rank.is_join_told, true)) {
      job.SetState(index, RankState::kJoined);
      rank.private_memory_reachable = news.private_memory_reachable();
      Add(job, JobFact::Kind::kJoined, index, from);
    }
  } else if (!std::exchange(rank.is_end_told, true)) {
    const auto error = static_cast<ErrorCode>(news.error());
    jobs_.EndRank(job, index,
                  error == ErrorCode::kOk ? Status() : Status(PeerError(error), news.text()));
    Add(job, JobFact::Kind::kEnded, index, from);
  }
}

void JobRelay::ApplyLoss(JobRecord& job, uint32_t from, const RelayedNews& news) {
  if (news.node() >= job.nodes.size() || !job.news->tree.IsTheWayOf(news.node(), from) ||
      news.node() == from) {  // which has just said so
    return;
  }
  Node& node = job.nodes[news.node()];
  const uint64_t known = std::max(node.incarnation, node.known_incarnation);
  if (node.state == NodeState::kFailed ||
      (known != 0 && news.incarnation() != 0 && known != news.incarnation())) {
    return;
  }
  if (node.state == NodeState::kUp) {
    return jobs_.links().Check(node.address);  // its end is told once it is seen
  }
  Add(job, JobFact::Kind::kLost, news.node(), from);
  owner_.LoseNode(job, news.node(),
                  {news.error() == 0 ? ErrorCode::kNodeUnreachable
                                     : PeerError(static_cast<ErrorCode>(news.error())),
                   news.text()});
  FindNeighbours(job);
}

// ---- To neighbours ----

void JobRelay::DeliverAll(JobRecord& job) {
  for (const auto& [node, neighbour] : job.news->neighbours) {
    Deliver(job, node);
  }
}

void JobRelay::Deliver(JobRecord& job, uint32_t node) {
  const std::vector<JobFact>& facts = job.news->facts;
  JobNeighbour& neighbour = job.news->neighbours.at(node);
  if (neighbour.in_flight || neighbour.is_over || job.nodes[node].state != NodeState::kUp) {
    return;
  }
  const uint64_t incarnation = jobs_.links().Incarnation();
  control::RelayRequest request;
  size_t told = neighbour.told;
  size_t bytes = 0;
  for (; told < facts.size(); ++told) {
    if (facts[told].from == node) {
      continue;
    }
    const RelayedNews news = NewsOf(job, facts[told], incarnation);
    const int last = request.news_size() - 1;
    if (last >= 0 && Extend(job, news, request.mutable_news(last))) {
      continue;
    }
    bytes += news.ByteSizeLong();
    if (last >= 0 && (last + 1 == kMostNews || bytes > kMostBytes)) {
      break;
    }
    *request.add_news() = news;
  }
  if (request.news_size() == 0 && neighbour.has_answered) {
    neighbour.told = told;  // it has told these itself
    job.news->sealed = std::max(job.news->sealed, told);
    return;
  }
  neighbour.in_flight = true;
  job.news->sealed = std::max(job.news->sealed, told);
  request.set_incarnation(incarnation);
  request.set_job_id(job.spec.id);
  request.set_job_proof(JobProof(job.spec.secret, job.spec.id, incarnation));
  request.set_node(job.spec.node);
  jobs_.links().SendRelay(job.nodes[node].address, request,
                          [this, alive = jobs_.alive(), id = job.spec.id, serial = job.serial, node,
                           told](const Status& status) {
                            if (*alive) {
                              OnDelivered(id, serial, node, told, status);
                            }
                          });
}

void JobRelay::OnDelivered(const std::string& job_id, uint64_t serial, uint32_t node, size_t told,
                           const Status& status) {
  JobRecord* const job = jobs_.FindJob(job_id);
  if (job == nullptr || job->serial != serial) {
    return;
  }
  JobNeighbour& neighbour = job->news->neighbours.at(node);
  neighbour.in_flight = false;
  job->nodes[node].trouble =
      job->nodes[node].state == NodeState::kUp ? status : job->nodes[node].trouble;
  if (status.ok()) {
    neighbour.told = told;
    neighbour.has_answered = true;
    Deliver(*job, node);
  } else if (status.code() == ErrorCode::kNotFound && (job->complete || job->AllEnded())) {
    // There was such a job, since all of its ranks had joined.
    job->nodes[node].trouble = {};
    neighbour.is_over = true;
    FindNeighbours(*job);
  } else if (!IsWorthAnotherTry(status)) {
    LogLimited(refusals_, spdlog::level::warn, "job {}: news to node {} were refused: {}", job_id,
               node, status.message());
    jobs_.FailJob(
        *job, {status.code(), "node " + std::to_string(node) + " at " + job->nodes[node].address +
                                  " refused: " + status.message()});
  }  // else until the next OnTick
  jobs_.SweepSoon();
}

}  // namespace ferry::daemon
