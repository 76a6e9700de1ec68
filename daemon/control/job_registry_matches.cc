// JobRegistry and matched pairs of persistent requests: between ranks here and the job's book, and
// between the books of two nodes.
#include <algorithm>
#include <utility>

#include "daemon/control/job_registry.h"
#include "daemon/control/secrets.h"

namespace ferry::daemon {
namespace {

constexpr size_t kNewsAtATime = 4096;  // gRPC takes no message of more than 4 MiB

}  // namespace

MatchBook& JobRegistry::MatchesOf(JobRecord& job) {
  if (job.matches == nullptr) {
    job.matches = std::make_unique<MatchBook>(
        job.plan, data_plane_, last_pair_,
        [this, id = job.spec.id](uint32_t node, const control::MatchNews& news) {
          TellMatch(id, node, news);
        });
    for (uint32_t rank = 0; rank < job.size(); ++rank) {
      if (const Rank& known = job.ranks[rank]; known.state == RankState::kEnded) {
        job.matches->OnRankEnded(
            rank, known.end.ok() ? ErrorCode::kNotFound : PeerError(known.end.code()));
      }
    }
  }
  return *job.matches;
}

Status JobRegistry::OfferMatches(const std::shared_ptr<Session>& session,
                                 const control::OfferMatchesRequest& request) {
  JobRecord* job = nullptr;
  if (FindRank(*session, &job) == nullptr) {
    return {ErrorCode::kNotInitialized, RankText(session->rank, session->job_id) + " has ended"};
  }
  if (job->aborted) {
    return job->failure;
  }
  return MatchesOf(*job).Offer(session, request);
}

void JobRegistry::WithdrawMatch(const Session& session,
                                const control::WithdrawMatchRequest& request) {
  JobRecord* job = nullptr;
  if (FindRank(session, &job) != nullptr) {
    MatchesOf(*job).Withdraw(session, request);
  }
}

Status JobRegistry::NodeMatches(const control::MatchNewsRequest& request) {
  StatusOr<JobRecord*> job =
      CheckPeerRequest(request.job_id(), request.job_proof(), request.incarnation());
  FERRY_RETURN_IF_ERROR(job.status());
  const bool is_other =
      request.node() < (*job)->nodes.size() && request.node() != (*job)->spec.node;
  if (is_other && (*job)->nodes[request.node()].incarnation == 0) {  // no route leads there yet
    return {ErrorCode::kNodeUnreachable,
            "node " + std::to_string(request.node()) + " is not connected yet"};
  }
  if (!is_other || (*job)->nodes[request.node()].incarnation != request.incarnation()) {
    return {ErrorCode::kInvalidArgument,
            "node " + std::to_string(request.node()) + " is not who says so"};
  }
  for (const control::MatchNews& news : request.news()) {
    FERRY_RETURN_IF_ERROR(MatchesOf(**job).OnNews(request.node(), news));
  }
  return {};
}

void JobRegistry::TellMatch(const std::string& job_id, uint32_t index,
                            const control::MatchNews& news) {
  JobRecord* job = FindJob(job_id);
  if (job == nullptr || job->nodes[index].state == NodeState::kFailed) {
    return;  // the ranks there are known to be gone
  }
  job->nodes[index].match_news.push_back(news);
  DeliverMatches(*job, index);
}

// One message at a time to a node, so that news come in order.
void JobRegistry::DeliverMatches(JobRecord& job, uint32_t index) {
  Node& node = job.nodes[index];
  if (node.state == NodeState::kFailed) {
    return node.match_news.clear();
  }
  if (node.state != NodeState::kUp || node.match_news_under_way != 0 || node.match_news.empty()) {
    return;
  }
  control::MatchNewsRequest request;
  request.set_incarnation(links_->Incarnation());
  request.set_job_id(job.spec.id);
  request.set_job_proof(JobProof(job.spec.secret, job.spec.id, links_->Incarnation()));
  request.set_node(job.spec.node);
  for (size_t i = 0; i < std::min(node.match_news.size(), kNewsAtATime); ++i) {
    *request.add_news() = node.match_news[i];
  }
  node.match_news_under_way = request.news_size();
  links_->SendMatches(
      node.address, request,
      [this, alive = alive_, id = job.spec.id, serial = job.serial, index](const Status& status) {
        if (*alive) {
          OnMatchesDelivered(id, serial, index, status);
        }
      });
}

void JobRegistry::OnMatchesDelivered(const std::string& job_id, uint64_t serial, uint32_t index,
                                     const Status& status) {
  JobRecord* job = FindJob(job_id);
  if (job == nullptr || job->serial != serial) {
    return;
  }
  Node& node = job->nodes[index];
  const int count = std::exchange(node.match_news_under_way, 0);
  if (!status.ok() && IsWorthAnotherTry(status)) {
    return;  // until the next OnTick
  }
  for (int i = 0; i < count && !node.match_news.empty(); ++i) {
    const control::MatchNews news = std::move(node.match_news.front());
    node.match_news.pop_front();
    job->matches->OnTold(index, news, status);
  }
  DeliverMatches(*job, index);
}

}  // namespace ferry::daemon
