#include "daemon/jobs/job_nodes.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "common/clock.h"
#include "daemon/tls/secrets.h"

namespace ferry::daemon {
namespace {

constexpr uint64_t kNsPerMs = 1'000'000;

Status OtherIncarnation(const JobRecord& job, uint32_t node) {
  return {ErrorCode::kNodeUnreachable, "node " + std::to_string(node) + " of job " + job.spec.id +
                                           " has another incarnation: its daemon was restarted"};
}

Status Restarted() {
  return {ErrorCode::kNodeUnreachable, "its daemon was restarted, the one of this job is gone"};
}

std::vector<std::byte> Bytes(const std::string& text) {
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  return {first, first + text.size()};
}

}  // namespace

// ---- Which there are ----

Status JobNodes::Add(JobRecord& job) {
  std::vector<bool> is_named(job.nodes.size(), job.news != nullptr);
  if (job.news != nullptr) {
    const auto none_is_out = [](uint32_t) { return false; };
    for (const uint32_t node : job.news->tree.Downward(none_is_out)) {
      is_named[node] = false;
    }
    if (const std::optional<uint32_t> above = job.news->tree.Upward(none_is_out)) {
      is_named[*above] = false;
    }
  }
  for (uint32_t index = 0; index < job.nodes.size(); ++index) {
    Node& node = job.nodes[index];
    if (node.state == NodeState::kSelf) {
      continue;
    }
    const Status status = is_named[index] ? jobs_.links().Name(node.address, job.spec.owner)
                                          : jobs_.links().Acquire(node.address, job.spec.owner);
    if (!status.ok()) {
      Drop(job);
      return status;
    }
    node.state = is_named[index] ? NodeState::kDormant : node.state;
    nodes_.emplace(node.address, NodeOfJob{&job, index});
  }
  return {};
}

void JobNodes::Drop(const JobRecord& job) {
  for (uint32_t index = 0; index < job.nodes.size(); ++index) {
    const Node& node = job.nodes[index];
    const auto [first, last] = nodes_.equal_range(node.address);
    const auto own = std::find_if(first, last, [&](const auto& entry) {
      return entry.second.job == &job && entry.second.index == index;
    });
    if (own == last) {
      continue;  // our own node, or one that Add did not reach
    }
    nodes_.erase(own);
    if (node.state != NodeState::kFailed) {
      jobs_.links().Release(node.address, job.spec.owner);
    }
  }
}

std::vector<JobNodes::NodeOfJob> JobNodes::NodesAt(const std::string& address) const {
  std::vector<NodeOfJob> found;
  const auto [first, last] = nodes_.equal_range(address);
  std::transform(first, last, std::back_inserter(found),
                 [](const auto& entry) { return entry.second; });
  return found;
}

// ---- To other nodes ----

void JobNodes::Tell(JobRecord& job, bool Node::*pending) {
  if (job.news != nullptr) {
    return relay_.TellOwn(job);
  }
  for (uint32_t node = 0; node < job.nodes.size(); ++node) {
    if (job.nodes[node].state != NodeState::kSelf && job.nodes[node].state != NodeState::kFailed) {
      job.nodes[node].*pending = true;
      Deliver(job, node);
    }
  }
}

// Sends one message at a time to a node, so that "joined" never overtakes "left".
void JobNodes::Deliver(JobRecord& job, uint32_t index) {
  Node& node = job.nodes[index];
  if (node.state != NodeState::kUp || node.in_flight) {
    return;
  }
  const auto done = [this, alive = jobs_.alive(), id = job.spec.id, serial = job.serial, index](
                        bool Node::*pending, const Status& status) {
    if (*alive) {
      OnDelivered(id, serial, index, pending, status);
    }
  };
  if (node.joined_pending) {
    node.joined_pending = false;
    node.in_flight = true;
    jobs_.links().SendJoined(node.address, JoinedNews(job, node.life),
                             [done](const Status& status) { done(&Node::joined_pending, status); });
  } else if (node.left_pending) {
    node.left_pending = false;
    node.in_flight = true;
    jobs_.links().SendLeft(node.address, LeftNews(job),
                           [done](const Status& status) { done(&Node::left_pending, status); });
  }
}

void JobNodes::OnDelivered(const std::string& job_id, uint64_t serial, uint32_t index,
                           bool Node::*pending, const Status& status) {
  JobRecord* job = jobs_.FindJob(job_id);
  if (job == nullptr || job->serial != serial) {
    return;
  }
  Node& node = job->nodes[index];
  node.in_flight = false;
  node.trouble = status;
  // A node that does not know the job need not hear of it once all ranks have ended.
  const bool moot = job->AllEnded() && status.code() == ErrorCode::kNotFound;
  if (status.ok() || moot) {
    node.trouble = {};
    Deliver(*job, index);
  } else if (IsWorthAnotherTry(status)) {
    node.*pending = true;  // until the next OnTick
  } else {
    jobs_.FailJob(*job, {status.code(), "node " + std::to_string(index) + " at " + node.address +
                                            " refused: " + status.message()});
  }
  jobs_.SweepSoon();
}

control::JoinedRequest JobNodes::JoinedNews(const JobRecord& job, uint64_t life) const {
  control::JoinedRequest request;
  request.set_incarnation(jobs_.links().Incarnation());
  request.set_job_id(job.spec.id);
  request.set_job_proof(JobProof(job.spec.secret, job.spec.id, jobs_.links().Incarnation()));
  request.set_node(job.spec.node);
  request.set_life(life);
  // Nodes of a tree hear it from neighbours: then only the life counts.
  for (const uint32_t rank : job.own_ranks) {
    // Ranks that have ended since stay in: a node that hears late must know that they had joined.
    if (job.news == nullptr && job.ranks[rank].has_joined) {
      control::JobRank* joined = request.add_ranks();
      joined->set_rank(rank);
      joined->set_private_memory_reachable(job.ranks[rank].private_memory_reachable);
    }
  }
  return request;
}

control::LeftRequest JobNodes::LeftNews(const JobRecord& job) const {
  control::LeftRequest request;
  request.set_incarnation(jobs_.links().Incarnation());
  request.set_job_id(job.spec.id);
  request.set_job_proof(JobProof(job.spec.secret, job.spec.id, jobs_.links().Incarnation()));
  for (const uint32_t rank : job.own_ranks) {
    if (!job.ranks[rank].announced) {
      continue;  // a rank that has ended may still have messages under way
    }
    const Status& end = job.ranks[rank].end;
    control::RankEnd* left = request.add_ranks();
    left->set_rank(rank);
    left->set_orderly(end.ok());
    // To ranks of other nodes the death of this daemon means that its node is unreachable.
    const ErrorCode error = PeerError(end.code());
    left->set_error(static_cast<int32_t>(
        error == ErrorCode::kDaemonDied ? ErrorCode::kNodeUnreachable : error));
    left->set_reason(end.message());
  }
  request.set_job_aborted(job.aborted);
  request.set_abort_reason(job.aborted ? job.failure.message() : "");
  return request;
}

bool JobNodes::quiet() const {
  return std::all_of(jobs_.jobs().begin(), jobs_.jobs().end(),
                     [](const auto& entry) { return entry.second->NewsDelivered(); });
}

// Ranks that join wait for others as long as these and their daemons live. A daemon that has been
// away, or has not taken the job's news, for peer_timeout_ms counts as unreachable.
void JobNodes::GiveUpUnreachableNodes(JobRecord& job, uint64_t now_ns) {
  for (uint32_t index = 0; index < job.nodes.size(); ++index) {
    Node& node = job.nodes[index];
    const bool is_elsewhere =  // in the tree: its neighbours there give it up
        job.news != nullptr && !job.news->neighbours.contains(index);
    if (node.state == NodeState::kSelf || is_elsewhere ||
        (node.state == NodeState::kUp && node.trouble.ok())) {
      node.unreachable_since_ns = 0;
      continue;
    }
    if (node.unreachable_since_ns == 0) {
      node.unreachable_since_ns = now_ns;
    }
    const uint64_t limit_ns = peer_timeout_ms_ * kNsPerMs;
    if (!job.complete && job.failure.ok() && job.joining_since_ns != 0 &&
        now_ns - std::max(node.unreachable_since_ns, job.joining_since_ns) > limit_ns) {
      jobs_.FailJob(job, {ErrorCode::kNodeUnreachable,
                          "job " + job.spec.id + " cannot become complete: for " +
                              std::to_string(peer_timeout_ms_) +
                              " ms (peer_timeout_ms) there has been no way to its node " +
                              std::to_string(index) + "; missing " + job.MissingRanks()});
    }
  }
}

// A node to which no way opens is no more reached by ranks here. Others may reach it: they are not
// told.
void JobNodes::GiveUpWays(JobRecord& job, uint64_t now_ns) {
  for (uint32_t index = 0; index < job.nodes.size(); ++index) {
    const Node& node = job.nodes[index];
    if (job.complete && node.state == NodeState::kConnecting && node.wanted_since_ns != 0 &&
        now_ns - node.wanted_since_ns > peer_timeout_ms_ * kNsPerMs) {
      LoseNode(
          job, index,
          {ErrorCode::kNodeUnreachable,
           "no way to it has opened for " + std::to_string(peer_timeout_ms_) +
               " ms (peer_timeout_ms)" + (node.trouble.ok() ? "" : ": " + node.trouble.message())});
    }
  }
}

// Time for which this daemon was late itself counts for none of its waits (late_ticks.h).
void JobNodes::Forgive(JobRecord& job, uint64_t lost_ns, uint64_t now_ns) const {
  LateTicks::Forgive(lost_ns, now_ns, &job.joining_since_ns);
  for (Node& node : job.nodes) {
    LateTicks::Forgive(lost_ns, now_ns, &node.unreachable_since_ns);
    LateTicks::Forgive(lost_ns, now_ns, &node.wanted_since_ns);
  }
}

void JobNodes::WantWay(JobRecord& job, uint32_t index) {
  Node& node = job.nodes[index];
  if (node.state == NodeState::kDormant) {
    node.state = NodeState::kConnecting;
    node.wanted_since_ns = MonotonicNs();
    jobs_.links().Open(node.address, node.known_incarnation);
  }
}

void JobNodes::WantWay(const std::string& job_id, uint32_t node) {
  if (JobRecord* const job = jobs_.FindJob(job_id); job != nullptr && node < job->nodes.size()) {
    WantWay(*job, node);
  }
}

void JobNodes::OnTick() {
  const uint64_t now_ns = MonotonicNs();
  const uint64_t lost_ns = late_.Tick(now_ns);
  for (const auto& [id, job] : jobs_.jobs()) {
    if (lost_ns != 0) {
      Forgive(*job, lost_ns, now_ns);
    }
    GiveUpUnreachableNodes(*job, now_ns);
    if (job->news != nullptr) {
      GiveUpWays(*job, now_ns);
      relay_.OnTick(*job);
    }
    for (uint32_t node = 0; node < job->nodes.size(); ++node) {
      if (job->nodes[node].returning) {
        BringUp(*job, node, NodeContact(*job->nodes[node].returning));
      }
      Deliver(*job, node);
      parts_.pair_books.DeliverNews(*job, node);
      parts_.link_books.DeliverNews(*job, node);
    }
    if (job->links != nullptr) {
      job->links->book.OnTick(MonotonicNs());
    }
    for (const uint32_t rank : job->own_ranks) {
      parts_.members.CheckJoined(*job, rank);  // OnReach may have come too early
    }
    parts_.members.CheckComplete(*job);
  }
}

// ---- From other nodes ----

Status JobNodes::OnJoined(const control::JoinedRequest& request, const std::string& caller) {
  StatusOr<JobRecord*> found =
      parts_.programs.FindOrBegin(request.job_id(), request.job_proof(), request.incarnation());
  FERRY_RETURN_IF_ERROR(found.status());
  JobRecord& job = **found;
  FERRY_RETURN_IF_ERROR(CheckNode(job, request.node(), caller));
  Node& node = job.nodes[request.node()];
  if (node.state == NodeState::kFailed) {
    return node.trouble;
  }
  if (node.state == NodeState::kUp && node.incarnation != request.incarnation()) {
    return OtherIncarnation(job, request.node());
  }
  node.their_life = std::max(node.their_life, request.life());
  node.has_told_life = true;
  ResumeIfBothReady(job, request.node());
  for (const control::JobRank& joined : request.ranks()) {
    if (joined.rank() >= job.size() || job.spec.node_of_rank[joined.rank()] != request.node()) {
      return {ErrorCode::kInvalidArgument, "rank " + std::to_string(joined.rank()) + " of job " +
                                               job.spec.id + " is not of node " +
                                               std::to_string(request.node())};
    }
    Rank& rank = job.ranks[joined.rank()];
    if (rank.state == RankState::kAbsent) {
      job.SetState(joined.rank(), RankState::kJoined);
      rank.private_memory_reachable = joined.private_memory_reachable();
    }
  }
  parts_.members.CheckComplete(job);
  jobs_.Changed();
  return {};
}

Status JobNodes::OnLeft(const control::LeftRequest& request, const std::string& caller) {
  StatusOr<JobRecord*> found =
      parts_.programs.FindOrBegin(request.job_id(), request.job_proof(), request.incarnation());
  FERRY_RETURN_IF_ERROR(found.status());
  JobRecord& job = **found;
  if (std::none_of(job.nodes.begin(), job.nodes.end(),
                   [&](const Node& node) { return node.address == caller; })) {
    return {ErrorCode::kPermissionDenied,
            "the daemon at " + caller + " is no node of job " + job.spec.id};
  }
  const HeldEnds ends(jobs_, job);
  for (const control::RankEnd& left : request.ranks()) {
    if (left.rank() >= job.size() || job.IsLocal(left.rank())) {
      return {ErrorCode::kInvalidArgument, "rank " + std::to_string(left.rank()) + " of job " +
                                               job.spec.id + " is not of the caller's node"};
    }
    FERRY_RETURN_IF_ERROR(CheckNode(job, job.spec.node_of_rank[left.rank()], caller));
    if (const Node& node = job.nodes[job.spec.node_of_rank[left.rank()]];
        node.state == NodeState::kUp && node.incarnation != request.incarnation()) {
      return OtherIncarnation(job, job.spec.node_of_rank[left.rank()]);
    }
    jobs_.EndRank(job, left.rank(),
                  left.orderly()
                      ? Status()
                      : Status(PeerError(static_cast<ErrorCode>(left.error())), left.reason()));
  }
  if (request.job_aborted()) {
    jobs_.AbortJob(job, {ErrorCode::kAborted, request.abort_reason()});
  }
  return {};
}

// ---- Nodes come and go ----

void JobNodes::OnNodeUp(const NodeContact& contact) {
  for (const auto& [job, index] : NodesAt(contact.address)) {
    const NodeState state = job->nodes[index].state;
    if (state == NodeState::kDormant || state == NodeState::kConnecting ||
        state == NodeState::kCut) {
      BringUp(*job, index, contact);
    }
    parts_.members.CheckComplete(*job);
  }
  jobs_.Changed();
}

void JobNodes::BringUp(JobRecord& job, uint32_t index, const NodeContact& contact) {
  Node& node = job.nodes[index];
  if (node.known_incarnation != 0 && node.known_incarnation != contact.incarnation) {
    LoseNode(job, index, Restarted());
    return relay_.TellLost(job, index);
  }
  NodeRoute route;
  route.fabric_address = Bytes(contact.fabric_address);
  route.send_key = contact.send_key;
  route.receive_key = contact.receive_key;
  route.link = contact.link;
  route.life = contact.life;
  route.guest = contact.link;
  route.awaits_answer = job.news != nullptr;
  const Status status = data_plane_.AddNode(job.spec.id, index, route);
  if (status.code() == ErrorCode::kWouldBlock) {
    node.returning = contact;  // until the next OnTick
    return;
  }
  node.returning.reset();
  node.trouble = status;
  if (!status.ok()) {
    return jobs_.FailJob(job, status);
  }
  // The node may hear only now that ranks have joined here, because its packets have a route. After
  // a cut it is told everything again: the last messages may be lost.
  if (node.state == NodeState::kCut || job.news != nullptr) {
    node.joined_pending = true;
    node.left_pending = job.news == nullptr;
  }
  node.state = NodeState::kUp;
  node.incarnation = contact.incarnation;
  node.life = contact.life;
  node.direct_links = contact.direct_links;
  ResumeIfBothReady(job, index);
  Deliver(job, index);
  if (job.news != nullptr) {
    relay_.OnWayChanged(job);
  }
}

// Lets messages flow again once both nodes take packets on the new life of the link.
void JobNodes::ResumeIfBothReady(JobRecord& job, uint32_t index) {
  const Node& node = job.nodes[index];
  // The first life needs no answer in a job whose nodes all meet before it begins.
  const bool awaits_answer = node.life != 0 || job.news != nullptr;
  if (node.state == NodeState::kUp && awaits_answer && node.has_told_life &&
      node.their_life == node.life) {
    data_plane_.NodeReturned(job.spec.id, index);
  }
}

void JobNodes::OnNodeDown(const std::string& address, uint64_t link, const Status& why) {
  if (link != 0) {
    data_plane_.NodeFailed(link, ErrorCode::kNodeUnreachable);
  }
  parts_.programs.OnNodeDown(address, why);
  for (const auto& [job, index] : NodesAt(address)) {
    Node& node = job->nodes[index];
    if (node.state == NodeState::kFailed) {
      continue;
    }
    node.is_failure_known = job->news == nullptr || (link != 0 && node.incarnation != 0);
    EndRanksOf(*job, index, why);
    if (job->news != nullptr) {
      relay_.TellLost(*job, index);
    }
  }
  jobs_.SweepSoon();
  jobs_.Changed();
}

void JobNodes::EndRanksOf(JobRecord& job, uint32_t index, const Status& why) {
  Node& node = job.nodes[index];
  node.state = NodeState::kFailed;
  node.trouble = why;
  node.link_news.Clear();
  const Status failure(
      why.code(), "node " + std::to_string(index) + " at " + node.address + ": " + why.message());
  if (!job.complete) {
    jobs_.FailJob(job, failure);
  }
  const HeldEnds ends(jobs_, job);
  for (uint32_t rank = 0; rank < job.size(); ++rank) {
    if (job.spec.node_of_rank[rank] == index) {
      jobs_.EndRank(job, rank, failure);
    }
  }
}

// For this job only. The link may go on for others.
void JobNodes::LoseNode(JobRecord& job, uint32_t index, const Status& why) {
  if (job.nodes[index].state != NodeState::kFailed) {
    EndRanksOf(job, index, why);
    jobs_.links().Release(job.nodes[index].address, job.spec.owner);
    jobs_.SweepSoon();
    jobs_.Changed();
  }
}

void JobNodes::OnNodeRefused(const std::string& address, const Status& why) {
  for (const auto& [job, index] : NodesAt(address)) {
    if (job->nodes[index].state == NodeState::kConnecting &&
        job->nodes[index].known_incarnation != 0) {
      LoseNode(*job, index, why);
      relay_.TellLost(*job, index);
    }
  }
}

void JobNodes::OnNodeCut(const std::string& address, uint64_t link, const Status& why) {
  data_plane_.NodeFailed(link, ErrorCode::kLinkDown);
  for (const auto& [job, index] : NodesAt(address)) {
    Node& node = job->nodes[index];
    node.returning.reset();
    if (node.state == NodeState::kUp) {
      node.state = NodeState::kCut;
      node.trouble = why;
      JobLinkBooks::OnNodeCut(*job, index);
      if (job->news != nullptr) {
        relay_.OnWayChanged(*job);
      }
    }
  }
  jobs_.Changed();
}

void JobNodes::OnNodeTrouble(const std::string& address, const Status& why) {
  for (const auto& [job, index] : NodesAt(address)) {
    if (Node& node = job->nodes[index]; node.state == NodeState::kConnecting) {
      node.trouble = why;
    }
  }
}

}  // namespace ferry::daemon
