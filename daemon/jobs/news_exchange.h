// The news that the books of a job on two nodes tell each other: of matched pairs, and of direct
// links. Each node of a job has a queue for each kind of news (Node); one request at a time is on
// its way.
//
// Thread: the control thread.
#pragma once

#include <cstdint>
#include <string>

#include "common/status.h"
#include "daemon/jobs/jobs.h"
#include "proto/control.pb.h"

namespace ferry::daemon {

// Where news of a kind wait, and how they are sent.
template <typename News>
struct NewsRoute;

template <>
struct NewsRoute<control::PairNews> {
  using Request = control::PairNewsRequest;
  static constexpr const char* kAbout = "matched pairs";
  static constexpr auto kQueue = &Node::pair_news;
  static constexpr auto kSend = &NodeLinks::SendPairs;
};

template <>
struct NewsRoute<control::LinkNews> {
  using Request = control::LinkNewsRequest;
  static constexpr const char* kAbout = "direct links";
  static constexpr auto kQueue = &Node::link_news;
  static constexpr auto kSend = &NodeLinks::SendLinkNews;
};

// The owner of the books.
template <typename News>
class NewsReader {
 public:
  // Another node of the job tells the news. An error refuses them.
  virtual Status OnNews(JobRecord& job, uint32_t node, const News& news) = 0;
  // The other node has taken the news, or has refused them, as `status` says.
  virtual void OnTold(JobRecord& job, uint32_t node, const News& news, const Status& status) = 0;

 protected:
  ~NewsReader() = default;
};

template <typename News>
class NewsExchange {
 public:
  using Request = typename NewsRoute<News>::Request;

  // Both must outlive it.
  NewsExchange(Jobs& jobs, NewsReader<News>& reader) : jobs_(jobs), reader_(reader) {}

  // Another daemon's request. News that make no sense are named in the reply; all others are taken.
  // kNotFound, kPermissionDenied (proof; or it speaks for a node that it is not), kInvalidArgument,
  // kNodeUnreachable (incarnation).
  Status Take(const Request& request, const std::string& caller, control::NewsReply* reply);
  // Queues the news for a node of the job, and sends them if none are on their way.
  void Tell(const std::string& job_id, uint32_t node, const News& news);
  // Sends queued news, if the node is up and none are on their way.
  void Deliver(JobRecord& job, uint32_t node);

 private:
  StatusOr<JobRecord*> Check(const Request& request, const std::string& caller) const;
  void OnDelivered(const std::string& job_id, uint64_t serial, uint32_t node,
                   typename NewsQueue<News>::Batch batch, const Status& status,
                   const control::NewsReply& reply);

  Jobs& jobs_;
  NewsReader<News>& reader_;
};

}  // namespace ferry::daemon
