// JobRegistry and matched pairs of persistent requests: between ranks here and the job's book.
#include <boost/asio/post.hpp>
#include <utility>
#include <vector>

#include "daemon/jobs/job_registry.h"

namespace ferry::daemon {
PairBook& JobRegistry::MatchesOf(JobRecord& job) {
  if (job.matches == nullptr) {
    job.matches = std::make_unique<PairBook>(
        job.plan, data_plane_, last_pair_,
        [this, id = job.spec.id](uint32_t node, const control::PairNews& news) {
          TellNews(id, node, news);
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

void JobRegistry::OfferPairs(const std::shared_ptr<Session>& session, bool sends,
                             std::span<const attach::PairOffer> offers,
                             std::function<void(const Status&)> done) {
  StatusOr<PairBook*> book = MatchesFor(*session);
  if (!book.ok()) {
    return done(book.status());
  }
  std::vector<NicWindow> windows = (*book)->NicWindows(*session, sends, offers);
  if (windows.empty()) {
    return done((*book)->Offer(session, sends, offers));
  }
  data_plane_.ReachWindows(
      session->job_id, session->rank, std::move(windows),
      [this, session, sends, kept = std::vector<attach::PairOffer>(offers.begin(), offers.end()),
       done = std::move(done)](const Status& status) mutable {
        boost::asio::post(context_, [this, session = std::move(session), sends,
                                     kept = std::move(kept), done = std::move(done), status] {
          if (!status.ok()) {
            return done(status);
          }
          StatusOr<PairBook*> still = MatchesFor(*session);
          done(still.ok() ? (*still)->Offer(session, sends, kept) : still.status());
        });
      });
}

// Why it may not offer: it has ended, or its job.
StatusOr<PairBook*> JobRegistry::MatchesFor(const Session& session) {
  FERRY_RETURN_IF_ERROR(CheckServed(session));
  JobRecord* job = nullptr;
  (void)FindRank(session, &job);
  if (job->aborted) {
    return job->failure;
  }
  return &MatchesOf(*job);
}

void JobRegistry::WithdrawPair(const Session& session, const attach::WithdrawRequest& request) {
  JobRecord* job = nullptr;
  if (FindRank(session, &job) != nullptr) {
    MatchesOf(*job).Withdraw(session, request);
  }
}

Status JobRegistry::NodePairs(const control::PairNewsRequest& request, const std::string& caller,
                              control::NewsReply* reply) {
  return TakeNews<control::PairNews>(request, caller, reply);
}

Status JobRegistry::TakePairNews(JobRecord& job, uint32_t index, const control::PairNews& news) {
  return MatchesOf(job).OnNews(index, news);
}

void JobRegistry::OnPairTold(JobRecord& job, uint32_t index, const control::PairNews& news,
                             const Status& status) {
  job.matches->OnTold(index, news, status);
}

}  // namespace ferry::daemon
