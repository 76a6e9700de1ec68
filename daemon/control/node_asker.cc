#include "daemon/control/node_asker.h"

#include <chrono>
#include <future>

#include "common/clock.h"
#include "daemon/control/secrets.h"

namespace ferry::daemon {
namespace {

// Well below the time that ferryctl gives its own daemon: a node that stands still is the usual
// reason to ask.
constexpr std::chrono::seconds kPatience(1);

}  // namespace

struct NodeAsker::Answer {
  std::promise<void> came;  // then the others change no more
  Status status;
  control::WhyReply reply;
};

StatusOr<control::RankWait> NodeAsker::Ask(const std::string& job_id, uint32_t rank) {
  const auto answer = std::make_shared<Answer>();
  const std::future<void> came = answer->came.get_future();
  loop_.Run([&] { Begin(job_id, rank, answer); });
  if (came.wait_for(kPatience) != std::future_status::ready) {
    return Status(ErrorCode::kTimeout, "it did not answer");
  }
  FERRY_RETURN_IF_ERROR(answer->status);
  if (answer->reply.ranks_size() != 1) {
    return Status(ErrorCode::kCorrupt, "its answer does not have the rank");
  }
  return answer->reply.ranks(0);
}

// On the control thread.
void NodeAsker::Begin(const std::string& job_id, uint32_t rank,
                      const std::shared_ptr<Answer>& answer) {
  const auto done = [answer](const Status& status, const control::WhyReply& reply) {
    answer->status = status;
    answer->reply = reply;
    answer->came.set_value();
  };
  const auto found = registry_.jobs().find(job_id);
  if (found == registry_.jobs().end() || rank >= found->second->size()) {
    return done({ErrorCode::kNotFound, "the job has ended"}, {});
  }
  const JobRecord& job = *found->second;
  if (job.IsLocal(rank)) {
    control::WhyReply reply;
    const Status status =
        SummarizeRank(registry_, data_plane_, job_id, rank, MonotonicNs(), quiet_, &reply);
    return done(status, reply);
  }
  control::PeerWhyRequest request;
  request.set_incarnation(links_.Incarnation());
  request.set_job_id(job_id);
  request.set_job_proof(JobProof(job.spec.secret, job_id, links_.Incarnation()));
  request.set_rank(rank);
  links_.SendWhy(job.nodes[job.spec.node_of_rank[rank]].address, request, done);
}

}  // namespace ferry::daemon
