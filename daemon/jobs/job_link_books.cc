#include "daemon/jobs/job_link_books.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/clock.h"
#include "daemon/session/rank_view.h"

namespace ferry::daemon {
namespace {

// A node for which so many news wait has its own news refused: it tells, and does not take. All
// nodes of a job share kMostUntold; a correct node never has a thousand waiting.
constexpr size_t kMostUntold = 1 << 16;
constexpr size_t kLeastUntold = 1 << 10;

}  // namespace

// The calls of one job's book.
class JobLinkBooks::BookCalls final : public LinkCalls {
 public:
  // Both outlive it.
  BookCalls(JobLinkBooks& books, JobRecord& job) : books_(books), job_(job) {}

  void Tell(uint32_t node, const control::LinkNews& news) override {
    books_.news_.Tell(job_.spec.id, node, news);
  }
  void Order(uint32_t rank, const attach::LinkOrder& order) override {
    if (const auto connection = job_.ranks[rank].connection.lock(); connection != nullptr) {
      connection->Order(order);
    }
  }
  Status MayLink(uint32_t node) const override { return books_.MayLink(job_, node); }
  StatusOr<QuotaHold> TakeQuota() override {
    return books_.quotas_.Take(job_.spec.owner, {.links = 1});
  }

  uint64_t Traffic(uint32_t rank, uint32_t peer) const override {
    const Session* const session = job_.ranks[rank].session.get();
    return session != nullptr && session->session_map.valid() ? ReadTraffic(*session, peer) : 0;
  }
  bool HasTransfers(uint32_t rank, uint32_t peer) const override {
    const Session* const session = job_.ranks[rank].session.get();
    return session != nullptr && session->session_map.valid() && HasLinkTransfers(*session, peer);
  }

  void Part(uint32_t rank, uint32_t peer) override {
    books_.data_plane_.PartRanks(job_.spec.id, rank, peer);
  }
  bool IsParted(uint32_t rank, uint32_t peer) override {
    return books_.data_plane_.AreParted(job_.spec.id, rank, peer);
  }
  bool AreRejoined(uint32_t rank, uint32_t peer) override {
    return books_.data_plane_.AreRejoined(job_.spec.id, rank, peer);
  }

 private:
  JobLinkBooks& books_;
  JobRecord& job_;
};

JobLinkBooks::JobLinkBooks(Jobs& jobs, DataPlane& data_plane, QuotaLedger& quotas,
                           const LinkPolicy& policy)
    : jobs_(jobs), data_plane_(data_plane), quotas_(quotas), policy_(policy), news_(jobs, *this) {}

LinkBook& JobLinkBooks::BookOf(JobRecord& job) {
  if (job.links == nullptr) {
    auto calls = std::make_unique<BookCalls>(*this, job);
    LinkCalls* const handed = calls.get();
    job.links.reset(new JobLinks{std::move(calls), LinkBook(job.plan, handed, policy_.limits)});
    for (uint32_t rank = 0; rank < job.size(); ++rank) {
      if (job.ranks[rank].state == RankState::kEnded) {
        job.links->book.OnRankEnded(rank, ErrorCode::kPeerDied, MonotonicNs());
      }
    }
  }
  return job.links->book;
}

Status JobLinkBooks::MayHaveLinks(const JobRecord& job) const {
  return daemon::MayHaveLinks(policy_, job.LocalSize());
}

Status JobLinkBooks::MayLink(const JobRecord& job, uint32_t index) const {
  FERRY_RETURN_IF_ERROR(MayHaveLinks(job));
  const Node& node = job.nodes[index];
  if (node.state != NodeState::kUp) {
    return {ErrorCode::kNodeUnreachable, "node " + std::to_string(index) + " is not connected"};
  }
  if (!node.direct_links) {
    return {ErrorCode::kUnsupported,
            "the daemon of node " + std::to_string(index) + " allows no direct links"};
  }
  return {};
}

// Finds the NIC nearest to the rank.
const LinkPolicy::Nic& JobLinkBooks::NicOf(const Session& session) const {
  const std::vector<LinkPolicy::Nic>& nics = policy_.nics;
  if (nics.size() > 1) {
    const std::string nearest = data_plane_.PlaceOf(session).nic;
    const std::vector<NicStatistics> known = data_plane_.Nics();
    for (size_t nic = 0; nic < std::min(nics.size(), known.size()); ++nic) {
      if (known[nic].domain == nearest) {
        return nics[nic];
      }
    }
  }
  return nics.front();
}

std::optional<attach::LinkRules> JobLinkBooks::RulesOf(const Session& session) const {
  if (!daemon::MayHaveLinks(policy_, session.local_size).ok() ||
      session.local_size == session.job_size) {
    return std::nullopt;
  }
  const LinkPolicy::Nic& nic = NicOf(session);
  if (policy_.provider.size() >= attach::kMaxNic || nic.domain.size() >= attach::kMaxNic ||
      nic.source_address.size() >= attach::kMaxHost) {
    return std::nullopt;
  }
  attach::LinkRules rules{};
  rules.min_bytes = policy_.min_bytes;
  rules.min_messages = static_cast<uint32_t>(policy_.min_messages);
  rules.idle_ms = static_cast<uint32_t>(policy_.idle_ms);
  rules.operation_timeout_ms = policy_.operation_timeout_ms;
  rules.peer_timeout_ms = policy_.peer_timeout_ms;
  std::copy(policy_.provider.begin(), policy_.provider.end(), rules.provider);
  std::copy(nic.domain.begin(), nic.domain.end(), rules.domain);
  std::copy(nic.source_address.begin(), nic.source_address.end(), rules.source_address);
  return rules;
}

void JobLinkBooks::Want(const std::string& job_id, uint32_t rank, uint32_t peer) {
  JobRecord* job = jobs_.FindJob(job_id);
  if (job != nullptr && !job->aborted && rank < job->size() &&
      job->ranks[rank].session != nullptr) {
    BookOf(*job).Ask(rank, peer, MonotonicNs());
    jobs_.Changed();
  }
}

Status JobLinkBooks::OnReply(const Session& session, const attach::LinkReply& reply) {
  JobRecord* job = nullptr;
  if (jobs_.FindRank(session, &job) == nullptr || job->aborted) {
    return {};
  }
  Status status = BookOf(*job).OnReply(session.rank, reply, MonotonicNs());
  jobs_.Changed();
  return status;
}

Status JobLinkBooks::TakeNews(const control::LinkNewsRequest& request, const std::string& caller,
                              control::NewsReply* reply) {
  Status status = news_.Take(request, caller, reply);
  jobs_.Changed();
  return status;
}

Status JobLinkBooks::OnNews(JobRecord& job, uint32_t index, const control::LinkNews& news) {
  if (job.aborted) {
    return {};  // the other node is told of the abort
  }
  // Nearly each of the node's news may cause an answer, also news of links that never existed.
  const size_t most = std::max(kLeastUntold, kMostUntold / job.nodes.size());
  if (job.nodes[index].link_news.size() >= most) {
    return {ErrorCode::kLimitExceeded, "node " + std::to_string(index) +
                                           " tells, and does not take the " + std::to_string(most) +
                                           " news that wait for it"};
  }
  return BookOf(job).OnNews(index, news, MonotonicNs());
}

void JobLinkBooks::OnTold(JobRecord& job, uint32_t /*index*/, const control::LinkNews& news,
                          const Status& status) {
  if (!status.ok()) {
    BookOf(job).OnRefused(news, status, MonotonicNs());
  }
}

void JobLinkBooks::OnNodeCut(JobRecord& job, uint32_t index) {
  job.nodes[index].link_news.Clear();
  if (job.links != nullptr) {
    job.links->book.OnNodeCut(index, MonotonicNs());
  }
}

StatusOr<uint32_t> JobLinkBooks::TakeBack(const std::string& job_id, uint32_t rank, uint32_t peer,
                                          bool may_ask_again) {
  JobRecord* job = jobs_.FindJob(job_id);
  if (job == nullptr) {
    return Status(ErrorCode::kNotFound, "there is no job " + job_id + " on this daemon");
  }
  if (rank != kAnyRank && (rank >= job->size() || !job->IsLocal(rank))) {
    return Status(ErrorCode::kInvalidRank, RankText(rank, job_id) + " is not of this node");
  }
  if (peer != kAnyRank && (peer >= job->size() || job->IsLocal(peer))) {
    return Status(ErrorCode::kInvalidRank, RankText(peer, job_id) + " is of no other node");
  }
  const uint32_t count = BookOf(*job).TakeBack(rank, peer, may_ask_again, MonotonicNs());
  jobs_.Changed();
  return count;
}

}  // namespace ferry::daemon
