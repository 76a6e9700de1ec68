// The matched pairs of persistent requests: between ranks here, other nodes and each job's
// PairBook.
//
// Thread: the control thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "common/status.h"
#include "daemon/jobs/jobs.h"
#include "daemon/jobs/news_exchange.h"
#include "daemon/plane/data_plane.h"
#include "daemon/session/session.h"

namespace ferry::daemon {

class JobPairBooks final : private NewsReader<control::PairNews> {
 public:
  // All must outlive it.
  JobPairBooks(boost::asio::io_context& context, Jobs& jobs, DataPlane& data_plane);

  // Persistent requests to be matched. Calls `done` once, now, or later if the NIC has to have some
  // of their memory first. Errors as PairBook::Offer; kUnsupported: the NIC does not take a window
  // in device memory, and none is offered.
  void Offer(const std::shared_ptr<Session>& session, bool sends,
             std::span<const attach::PairOffer> offers, std::function<void(const Status&)> done);
  void Withdraw(const Session& session, const attach::WithdrawRequest& request);

  // As NewsExchange::Take and Deliver.
  Status TakeNews(const control::PairNewsRequest& request, const std::string& caller,
                  control::NewsReply* reply) {
    return news_.Take(request, caller, reply);
  }
  void DeliverNews(JobRecord& job, uint32_t node) { news_.Deliver(job, node); }

 private:
  Status OnNews(JobRecord& job, uint32_t node, const control::PairNews& news) override;
  void OnTold(JobRecord& job, uint32_t node, const control::PairNews& news,
              const Status& status) override;

  PairBook& BookOf(JobRecord& job);
  StatusOr<PairBook*> BookFor(const Session& session);

  boost::asio::io_context& context_;
  Jobs& jobs_;
  DataPlane& data_plane_;
  NewsExchange<control::PairNews> news_;
  uint64_t last_pair_ = 0;  // the number of the last matched pair
};

}  // namespace ferry::daemon
