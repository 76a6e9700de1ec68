// Direct links (link_book.h): between ranks here, other nodes, the administrator and each job's
// LinkBook.
//
// Thread: the control thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/status.h"
#include "daemon/jobs/jobs.h"
#include "daemon/jobs/news_exchange.h"
#include "daemon/links/link_policy.h"
#include "daemon/plane/data_plane.h"
#include "daemon/session/session.h"

namespace ferry::daemon {

class JobLinkBooks final : private NewsReader<control::LinkNews> {
 public:
  // All must outlive it.
  JobLinkBooks(Jobs& jobs, DataPlane& data_plane, QuotaLedger& quotas, const LinkPolicy& policy);

  // Ok, or why this node allows no direct links.
  const Status& allowed() const { return policy_.allowed; }
  uint64_t min_messages() const { return policy_.min_messages; }
  // Ok, or why the job's ranks here may have none.
  Status MayHaveLinks(const JobRecord& job) const;
  // When ranks of the session's job may ask for links; nothing if they may not.
  std::optional<attach::LinkRules> RulesOf(const Session& session) const;

  // A rank here wants one to a rank of another node. Unknown ones are ignored.
  void Want(const std::string& job_id, uint32_t rank, uint32_t peer);
  // A rank here answers an order, or says that a link broke. kCorrupt: no correct rank says so.
  Status OnReply(const Session& session, const attach::LinkReply& reply);
  // The administrator takes links of a job back: all, those of a rank here, or one
  // (kAnyRank for `rank` and `peer`), as LinkBook::TakeBack. Returns how many. kNotFound:
  // the job; kInvalidRank: it has no such rank here, or no such peer elsewhere.
  StatusOr<uint32_t> TakeBack(const std::string& job_id, uint32_t rank, uint32_t peer,
                              bool may_ask_again);

  // As NewsExchange::Take and Deliver.
  Status TakeNews(const control::LinkNewsRequest& request, const std::string& caller,
                  control::NewsReply* reply);
  void DeliverNews(JobRecord& job, uint32_t node) { news_.Deliver(job, node); }
  // The connection to a node of the job is cut: the links to its ranks end.
  static void OnNodeCut(JobRecord& job, uint32_t node);

 private:
  class BookCalls;

  Status OnNews(JobRecord& job, uint32_t node, const control::LinkNews& news) override;
  void OnTold(JobRecord& job, uint32_t node, const control::LinkNews& news,
              const Status& status) override;

  LinkBook& BookOf(JobRecord& job);
  Status MayLink(const JobRecord& job, uint32_t node) const;
  const LinkPolicy::Nic& NicOf(const Session& session) const;

  Jobs& jobs_;
  DataPlane& data_plane_;
  QuotaLedger& quotas_;
  const LinkPolicy& policy_;
  NewsExchange<control::LinkNews> news_;
};

}  // namespace ferry::daemon
