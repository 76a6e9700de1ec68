// JobRegistry and the news between the books of two nodes of a job: of matched pairs, and of direct
// links. Each kind has a queue for each node; one request at a time is on its way.
#include <utility>

#include "daemon/control/job_registry.h"
#include "daemon/control/secrets.h"

namespace ferry::daemon {

template <>
struct JobRegistry::NewsRoute<control::MatchNews> {
  using Request = control::MatchNewsRequest;
  static constexpr auto kQueue = &Node::match_news;
  static constexpr auto kSend = &NodeLinks::SendMatches;
  static constexpr auto kOnTold = &JobRegistry::OnMatchTold;
};

template <>
struct JobRegistry::NewsRoute<control::LinkNews> {
  using Request = control::LinkNewsRequest;
  static constexpr auto kQueue = &Node::link_news;
  static constexpr auto kSend = &NodeLinks::SendLinkNews;
  static constexpr auto kOnTold = &JobRegistry::OnLinkTold;
};

// ---- From another node ----

template <typename Request>
StatusOr<JobRecord*> JobRegistry::CheckNews(const Request& request) const {
  StatusOr<JobRecord*> job =
      CheckPeerRequest(request.job_id(), request.job_proof(), request.incarnation());
  FERRY_RETURN_IF_ERROR(job.status());
  const bool is_other =
      request.node() < (*job)->nodes.size() && request.node() != (*job)->spec.node;
  if (is_other && (*job)->nodes[request.node()].incarnation == 0) {  // no route leads there yet
    return Status(ErrorCode::kNodeUnreachable,
                  "node " + std::to_string(request.node()) + " is not connected yet");
  }
  if (!is_other || (*job)->nodes[request.node()].incarnation != request.incarnation()) {
    return Status(ErrorCode::kInvalidArgument,
                  "node " + std::to_string(request.node()) + " is not who says so");
  }
  return job;
}

template StatusOr<JobRecord*> JobRegistry::CheckNews(const control::MatchNewsRequest&) const;
template StatusOr<JobRecord*> JobRegistry::CheckNews(const control::LinkNewsRequest&) const;

// ---- To another node ----

template <typename News>
void JobRegistry::TellNews(const std::string& job_id, uint32_t index, const News& news) {
  JobRecord* job = FindJob(job_id);
  if (job == nullptr || job->nodes[index].state == NodeState::kFailed) {
    return;  // the ranks there are known to be gone
  }
  (job->nodes[index].*NewsRoute<News>::kQueue).Push(news);
  DeliverNews<News>(*job, index);
}

template <typename News>
void JobRegistry::DeliverNews(JobRecord& job, uint32_t index) {
  using Route = NewsRoute<News>;
  Node& node = job.nodes[index];
  if (node.state == NodeState::kFailed) {
    return (node.*Route::kQueue).Clear();
  }
  if (node.state != NodeState::kUp) {
    return;
  }
  typename Route::Request request;
  const auto batch =
      (node.*Route::kQueue).Begin([&](const News& news) { *request.add_news() = news; });
  if (!batch) {
    return;
  }
  request.set_incarnation(links_->Incarnation());
  request.set_job_id(job.spec.id);
  request.set_job_proof(JobProof(job.spec.secret, job.spec.id, links_->Incarnation()));
  request.set_node(job.spec.node);
  (links_->*Route::kSend)(node.address, request,
                          [this, alive = alive_, id = job.spec.id, serial = job.serial, index,
                           batch = *batch](const Status& status) {
                            if (*alive) {
                              OnNewsDelivered<News>(id, serial, index, batch, status);
                            }
                          });
}

template <typename News>
void JobRegistry::OnNewsDelivered(const std::string& job_id, uint64_t serial, uint32_t index,
                                  typename NewsQueue<News>::Batch batch, const Status& status) {
  JobRecord* job = FindJob(job_id);
  if (job == nullptr || job->serial != serial) {
    return;
  }
  NewsQueue<News>& queue = job->nodes[index].*NewsRoute<News>::kQueue;
  if (!status.ok() && IsWorthAnotherTry(status)) {
    return queue.Retry(batch);  // until the next OnTick
  }
  for (const News& news : queue.Finish(batch)) {
    (this->*NewsRoute<News>::kOnTold)(*job, index, news, status);
  }
  DeliverNews<News>(*job, index);
}

template void JobRegistry::TellNews(const std::string&, uint32_t, const control::MatchNews&);
template void JobRegistry::TellNews(const std::string&, uint32_t, const control::LinkNews&);
template void JobRegistry::DeliverNews<control::MatchNews>(JobRecord&, uint32_t);
template void JobRegistry::DeliverNews<control::LinkNews>(JobRecord&, uint32_t);

}  // namespace ferry::daemon
