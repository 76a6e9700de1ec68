// JobRegistry and the news between the books of two nodes of a job: of matched pairs, and of direct
// links. Each kind has a queue for each node; one request at a time is on its way.
#include <utility>
#include <vector>

#include "common/log.h"
#include "daemon/jobs/job_registry.h"
#include "daemon/tls/secrets.h"

namespace ferry::daemon {

namespace {

constexpr size_t kMostNews = NewsQueue<control::LinkNews>::kMostAtATime;

// Once for each refusal: the node that refuses one of many logs it, the other one that of all.
void LogRefusal(const char* about, const std::string& job_id, uint32_t node, const char* direction,
                const Status& why) {
  static RateLimiter limiter(10, 1'000'000'000);
  LogLimited(limiter, spdlog::level::warn, "job {}: news of {} {} node {} were refused: {}", job_id,
             about, direction, node, why.message());
}

}  // namespace

template <>
struct JobRegistry::NewsRoute<control::PairNews> {
  using Request = control::PairNewsRequest;
  static constexpr const char* kAbout = "matched pairs";
  static constexpr auto kTake = &JobRegistry::TakePairNews;
  static constexpr auto kQueue = &Node::pair_news;
  static constexpr auto kSend = &NodeLinks::SendPairs;
  static constexpr auto kOnTold = &JobRegistry::OnPairTold;
};

template <>
struct JobRegistry::NewsRoute<control::LinkNews> {
  using Request = control::LinkNewsRequest;
  static constexpr const char* kAbout = "direct links";
  static constexpr auto kTake = &JobRegistry::TakeLinkNews;
  static constexpr auto kQueue = &Node::link_news;
  static constexpr auto kSend = &NodeLinks::SendLinkNews;
  static constexpr auto kOnTold = &JobRegistry::OnLinkTold;
};

// ---- From another node ----

template <typename Request>
StatusOr<JobRecord*> JobRegistry::CheckNews(const Request& request,
                                            const std::string& caller) const {
  if (static_cast<size_t>(request.news_size()) > kMostNews) {
    return Status(ErrorCode::kInvalidArgument, std::to_string(request.news_size()) +
                                                   " news in one call, where at most " +
                                                   std::to_string(kMostNews) + " are told");
  }
  StatusOr<JobRecord*> job =
      CheckPeerRequest(request.job_id(), request.job_proof(), request.incarnation());
  FERRY_RETURN_IF_ERROR(job.status());
  FERRY_RETURN_IF_ERROR(CheckNode(**job, request.node(), caller));
  if ((*job)->nodes[request.node()].incarnation == 0) {  // no route leads there yet
    return Status(ErrorCode::kNodeUnreachable,
                  "node " + std::to_string(request.node()) + " is not connected yet");
  }
  if ((*job)->nodes[request.node()].incarnation != request.incarnation()) {
    return Status(ErrorCode::kInvalidArgument,
                  "node " + std::to_string(request.node()) + " is not who says so");
  }
  return job;
}

// News that are refused cost the others nothing.
template <typename News, typename Request>
Status JobRegistry::TakeNews(const Request& request, const std::string& caller,
                             control::NewsReply* reply) {
  StatusOr<JobRecord*> job = CheckNews(request, caller);
  FERRY_RETURN_IF_ERROR(job.status());
  for (int index = 0; index < request.news_size(); ++index) {
    const Status status =
        (this->*NewsRoute<News>::kTake)(**job, request.node(), request.news(index));
    if (!status.ok()) {
      LogRefusal(NewsRoute<News>::kAbout, request.job_id(), request.node(), "from", status);
      control::RefusedNews* const refused = reply->add_refused();
      refused->set_index(static_cast<uint32_t>(index));
      refused->set_error(static_cast<int32_t>(status.code()));
      refused->set_text(status.message());
    }
  }
  return {};
}

template Status JobRegistry::TakeNews<control::PairNews>(const control::PairNewsRequest&,
                                                         const std::string&, control::NewsReply*);
template Status JobRegistry::TakeNews<control::LinkNews>(const control::LinkNewsRequest&,
                                                         const std::string&, control::NewsReply*);

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
                           batch = *batch](const Status& status, const control::NewsReply& reply) {
                            if (*alive) {
                              OnNewsDelivered<News>(id, serial, index, batch, status, reply);
                            }
                          });
}

template <typename News>
void JobRegistry::OnNewsDelivered(const std::string& job_id, uint64_t serial, uint32_t index,
                                  typename NewsQueue<News>::Batch batch, const Status& status,
                                  const control::NewsReply& reply) {
  JobRecord* job = FindJob(job_id);
  if (job == nullptr || job->serial != serial) {
    return;
  }
  NewsQueue<News>& queue = job->nodes[index].*NewsRoute<News>::kQueue;
  if (!status.ok() && IsWorthAnotherTry(status)) {
    return queue.Retry(batch);  // until the next OnTick
  }
  const std::vector<News> told = queue.Finish(batch);
  if (!status.ok() && !told.empty()) {
    LogRefusal(NewsRoute<News>::kAbout, job_id, index, "to", status);
  }
  std::vector<Status> fates(told.size(), status);
  for (const control::RefusedNews& refused : reply.refused()) {
    if (refused.index() < fates.size()) {
      fates[refused.index()] = {static_cast<ErrorCode>(refused.error()), refused.text()};
    }
  }
  for (size_t i = 0; i < told.size(); ++i) {
    (this->*NewsRoute<News>::kOnTold)(*job, index, told[i], fates[i]);
  }
  DeliverNews<News>(*job, index);
}

template void JobRegistry::TellNews(const std::string&, uint32_t, const control::PairNews&);
template void JobRegistry::TellNews(const std::string&, uint32_t, const control::LinkNews&);
template void JobRegistry::DeliverNews<control::PairNews>(JobRecord&, uint32_t);
template void JobRegistry::DeliverNews<control::LinkNews>(JobRecord&, uint32_t);

}  // namespace ferry::daemon
