#include "daemon/jobs/news_exchange.h"

#include <utility>
#include <vector>

#include "common/log.h"
#include "daemon/jobs/peer_requests.h"
#include "daemon/tls/secrets.h"

namespace ferry::daemon {
namespace {

constexpr size_t kMostNews = NewsQueue<control::LinkNews>::kMostAtATime;

// Logs a refusal once: the node that refuses one of many news logs that, the other node a refusal
// of all.
void LogRefusal(const char* about, const std::string& job_id, uint32_t node, const char* direction,
                const Status& why) {
  static RateLimiter limiter(10, 1'000'000'000);
  LogLimited(limiter, spdlog::level::warn, "job {}: news of {} {} node {} were refused: {}", job_id,
             about, direction, node, why.message());
}

}  // namespace

// ---- From another node ----

template <typename News>
StatusOr<JobRecord*> NewsExchange<News>::Check(const Request& request,
                                               const std::string& caller) const {
  if (static_cast<size_t>(request.news_size()) > kMostNews) {
    return Status(ErrorCode::kInvalidArgument, std::to_string(request.news_size()) +
                                                   " news in one call, where at most " +
                                                   std::to_string(kMostNews) + " are told");
  }
  StatusOr<JobRecord*> job =
      FindJobOfPeer(jobs_, request.job_id(), request.job_proof(), request.incarnation());
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

// Takes the other news of a request, although some of it are refused.
template <typename News>
Status NewsExchange<News>::Take(const Request& request, const std::string& caller,
                                control::NewsReply* reply) {
  StatusOr<JobRecord*> job = Check(request, caller);
  FERRY_RETURN_IF_ERROR(job.status());
  for (int index = 0; index < request.news_size(); ++index) {
    const Status status = reader_.OnNews(**job, request.node(), request.news(index));
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

// ---- To another node ----

template <typename News>
void NewsExchange<News>::Tell(const std::string& job_id, uint32_t index, const News& news) {
  JobRecord* job = jobs_.FindJob(job_id);
  if (job == nullptr || job->nodes[index].state == NodeState::kFailed) {
    return;  // the ranks there are known to be gone
  }
  (job->nodes[index].*NewsRoute<News>::kQueue).Push(news);
  jobs_.WantWay(*job, index);
  Deliver(*job, index);
}

template <typename News>
void NewsExchange<News>::Deliver(JobRecord& job, uint32_t index) {
  using Route = NewsRoute<News>;
  Node& node = job.nodes[index];
  if (node.state == NodeState::kFailed) {
    return (node.*Route::kQueue).Clear();
  }
  if (node.state != NodeState::kUp) {
    return;
  }
  Request request;
  const auto batch =
      (node.*Route::kQueue).Begin([&](const News& news) { *request.add_news() = news; });
  if (!batch) {
    return;
  }
  request.set_incarnation(jobs_.links().Incarnation());
  request.set_job_id(job.spec.id);
  request.set_job_proof(JobProof(job.spec.secret, job.spec.id, jobs_.links().Incarnation()));
  request.set_node(job.spec.node);
  (jobs_.links().*Route::kSend)(
      node.address, request,
      [this, alive = jobs_.alive(), id = job.spec.id, serial = job.serial, index, batch = *batch](
          const Status& status, const control::NewsReply& reply) {
        if (*alive) {
          OnDelivered(id, serial, index, batch, status, reply);
        }
      });
}

template <typename News>
void NewsExchange<News>::OnDelivered(const std::string& job_id, uint64_t serial, uint32_t index,
                                     typename NewsQueue<News>::Batch batch, const Status& status,
                                     const control::NewsReply& reply) {
  JobRecord* job = jobs_.FindJob(job_id);
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
    reader_.OnTold(*job, index, told[i], fates[i]);
  }
  Deliver(*job, index);
}

template class NewsExchange<control::PairNews>;
template class NewsExchange<control::LinkNews>;

}  // namespace ferry::daemon
