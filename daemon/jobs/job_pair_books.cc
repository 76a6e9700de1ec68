#include "daemon/jobs/job_pair_books.h"

#include <boost/asio/post.hpp>
#include <utility>
#include <vector>

namespace ferry::daemon {

JobPairBooks::JobPairBooks(boost::asio::io_context& context, Jobs& jobs, DataPlane& data_plane)
    : context_(context), jobs_(jobs), data_plane_(data_plane), news_(jobs, *this) {}

PairBook& JobPairBooks::BookOf(JobRecord& job) {
  if (job.matches == nullptr) {
    job.matches = std::make_unique<PairBook>(
        job.plan, data_plane_, last_pair_,
        [this, id = job.spec.id](uint32_t node, const control::PairNews& news) {
          news_.Tell(id, node, news);
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

void JobPairBooks::Offer(const std::shared_ptr<Session>& session, bool sends,
                         std::span<const attach::PairOffer> offers,
                         std::function<void(const Status&)> done) {
  StatusOr<PairBook*> book = BookFor(*session);
  if (!book.ok()) {
    return done(book.status());
  }
  std::vector<NicWindow> windows = (*book)->NicWindows(*session, sends, offers);
  if (windows.empty()) {
    return done((*book)->Offer(session, sends, offers));
  }
  data_plane_.ReachWindows(
      session->job_id, session->rank, std::move(windows),
      [this, session = session, sends,
       kept = std::vector<attach::PairOffer>(offers.begin(), offers.end()),
       done = std::move(done)](const Status& status) mutable {
        boost::asio::post(context_, [this, session = std::move(session), sends,
                                     kept = std::move(kept), done = std::move(done), status] {
          if (!status.ok()) {
            return done(status);
          }
          StatusOr<PairBook*> still = BookFor(*session);
          done(still.ok() ? (*still)->Offer(session, sends, kept) : still.status());
        });
      });
}

// The book in which the session may offer. The error says why it may not: the session has ended, or
// its job was aborted.
StatusOr<PairBook*> JobPairBooks::BookFor(const Session& session) {
  FERRY_RETURN_IF_ERROR(jobs_.CheckServed(session));
  JobRecord* job = nullptr;
  (void)jobs_.FindRank(session, &job);
  if (job->aborted) {
    return job->failure;
  }
  return &BookOf(*job);
}

void JobPairBooks::Withdraw(const Session& session, const attach::WithdrawRequest& request) {
  JobRecord* job = nullptr;
  if (jobs_.FindRank(session, &job) != nullptr) {
    BookOf(*job).Withdraw(session, request);
  }
}

Status JobPairBooks::OnNews(JobRecord& job, uint32_t index, const control::PairNews& news) {
  return BookOf(job).OnNews(index, news);
}

void JobPairBooks::OnTold(JobRecord& job, uint32_t index, const control::PairNews& news,
                          const Status& status) {
  job.matches->OnTold(index, news, status);
}

}  // namespace ferry::daemon
