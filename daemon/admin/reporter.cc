#include "daemon/admin/reporter.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <memory>

#include "common/clock.h"
#include "daemon/admin/admin_report.h"
#include "daemon/admin/link_report.h"
#include "daemon/tls/secrets.h"

namespace ferry::daemon {
namespace {

constexpr uint32_t kMaxQuestions =
    64;  // for one answer: all ranks of a job may have been asked for

std::string ChainText(const control::RankWait& wait) {
  std::string text;
  for (int i = 0; i < wait.chain_size(); ++i) {
    text += (i == 0   ? "rank "
             : i == 1 ? " waits for rank "
                      : ", which waits for rank ") +
            std::to_string(wait.chain(i));
  }
  return text;
}

// Adds the ranks that `next`, of the chain's last one, knows of. True: a circle closes.
bool Append(const control::RankWait& next, control::RankWait* wait) {
  for (int i = 1; i < next.chain_size(); ++i) {
    const uint32_t rank = next.chain(i);
    const bool known =
        std::find(wait->chain().begin(), wait->chain().end(), rank) != wait->chain().end();
    wait->add_chain(rank);
    if (known) {
      return true;
    }
  }
  return false;
}

// Well below the time that ferryctl gives its own daemon: a node that stands still is the usual
// reason to ask.
constexpr std::chrono::seconds kPatience(1);

// Asks what a rank waits for: here, or the daemon of its node over the link to it.
//
// Calling thread: any but the control thread; blocks as WhyFollower says.
class NodeAsker final : public WhyAsker {
 public:
  // Both outlive it. `quiet` is the control thread's.
  NodeAsker(const ReporterContext& context, QuietLog* quiet) : context_(context), quiet_(quiet) {}

  // kNotFound, kNodeUnreachable, kTimeout, and what the other daemon says.
  StatusOr<control::RankWait> Ask(const std::string& job_id, uint32_t rank) override {
    const auto answer = std::make_shared<Answer>();
    const std::future<void> came = answer->came.get_future();
    context_.loop.Run([&] { Begin(job_id, rank, answer); });
    if (came.wait_for(kPatience) != std::future_status::ready) {
      return Status(ErrorCode::kTimeout, "it did not answer");
    }
    FERRY_RETURN_IF_ERROR(answer->status);
    if (answer->reply.ranks_size() != 1) {
      return Status(ErrorCode::kCorrupt, "its answer does not have the rank");
    }
    return answer->reply.ranks(0);
  }

 private:
  struct Answer {
    std::promise<void> came;  // then the others change no more
    Status status;
    control::WhyReply reply;
  };

  // On the control thread.
  void Begin(const std::string& job_id, uint32_t rank, const std::shared_ptr<Answer>& answer) {
    const auto done = [answer](const Status& status, const control::WhyReply& reply) {
      answer->status = status;
      answer->reply = reply;
      answer->came.set_value();
    };
    const auto& jobs = context_.registry.jobs();
    const auto found = jobs.find(job_id);
    if (found == jobs.end() || rank >= found->second->size()) {
      return done({ErrorCode::kNotFound, "the job has ended"}, {});
    }
    const JobRecord& job = *found->second;
    if (job.IsLocal(rank)) {
      control::WhyReply reply;
      const Status status = SummarizeRank(context_.registry, context_.data_plane, job_id, rank,
                                          MonotonicNs(), quiet_, &reply);
      return done(status, reply);
    }
    control::PeerWhyRequest request;
    request.set_incarnation(context_.links.Incarnation());
    request.set_job_id(job_id);
    request.set_job_proof(JobProof(job.spec.secret, job_id, context_.links.Incarnation()));
    request.set_rank(rank);
    context_.links.SendWhy(job.nodes[job.spec.node_of_rank[rank]].address, request, done);
  }

  const ReporterContext& context_;
  QuietLog* const quiet_;
};

}  // namespace

// ---- WhyFollower ----

const StatusOr<control::RankWait>& WhyFollower::Ask(const std::string& job_id, uint32_t rank) {
  const auto found = answers_.find({job_id, rank});
  if (found != answers_.end()) {
    return found->second;
  }
  StatusOr<control::RankWait> answer =
      Status(ErrorCode::kLimitExceeded, "too many nodes were asked already");
  if (is_one_silent_) {
    answer = Status(ErrorCode::kTimeout, "it was not asked, since another one did not answer");
  } else if (asked_ < kMaxQuestions) {
    ++asked_;
    answer = asker_.Ask(job_id, rank);
    is_one_silent_ = answer.status().code() == ErrorCode::kTimeout;
  }
  return answers_.emplace(std::pair(job_id, rank), std::move(answer)).first->second;
}

void WhyFollower::Follow(const std::string& job_id, control::RankWait* wait) {
  while (wait->leaves_node() && wait->chain_size() != 0) {
    const uint32_t last = wait->chain(wait->chain_size() - 1);
    const StatusOr<control::RankWait>& next = Ask(job_id, last);
    if (!next.ok()) {
      wait->add_troubles("the ferryd of rank " + std::to_string(last) +
                         "'s node was asked what it waits for: " + next.status().message());
      return;
    }
    if (next->chain_size() == 0 || next->chain(0) != last) {
      return;  // no correct daemon answers so
    }
    const bool circle = Append(*next, wait);
    wait->set_leaves_node(next->leaves_node() && !circle);
    wait->set_end(next->end());
    wait->set_verdict(ChainText(*wait) +
                      (circle ? ": a circle over several nodes. If it is there still when asked "
                                "again, it is a deadlock"
                              : ", which " + next->end()));
    if (next->chain_size() == 1 && next->leaves_node()) {
      return;  // nor so: that rank is its own
    }
  }
}

// ---- Reporter ----

Reporter::Reporter(ReporterContext context)
    : context_(std::move(context)), started_ns_(MonotonicNs()) {}

void Reporter::FillStatus(Viewer viewer, control::StatusReply* reply) {
  reply->set_pid(static_cast<uint32_t>(getpid()));
  reply->set_uptime_ms((MonotonicNs() - started_ns_) / 1'000'000);
  reply->set_run_directory(context_.run_directory);
  reply->set_metrics_address(context_.metrics_address);
  ReportProcess(reply);
  if (!viewer.has_value()) {
    ReportRegistrations(context_.data_plane.Registered(), reply->mutable_registrations());
  }
  context_.loop.Run([&] {
    *reply->mutable_node() = context_.links.self();
    if (const std::string alone = context_.registry.WhyAlone(); !alone.empty()) {
      reply->mutable_node()->set_provider("none (" + alone + ")");
    }
    if (!viewer.has_value()) {
      for (control::PeerStatus& peer : context_.links.Report()) {
        *reply->add_peers() = std::move(peer);
      }
    }
    ReportStatus(context_.registry, viewer, reply);
  });
}

void Reporter::FillSessions(Viewer viewer, control::SessionsReply* reply) {
  context_.loop.Run([&] { ReportSessions(context_.registry, viewer, context_.data_plane, reply); });
}

Status Reporter::FillCounters(Viewer viewer, const control::CountersRequest& request,
                              control::CountersReply* reply) {
  return context_.loop.Run(
      [&] { return ReportCounters(context_.registry, viewer, request, reply); });
}

void Reporter::FillLinks(Viewer viewer, control::LinksReply* reply) {
  context_.loop.Run([&] { ReportLinks(context_.registry, viewer, MonotonicNs(), reply); });
}

Status Reporter::FillWhy(Viewer viewer, const control::WhyRequest& request,
                         control::WhyReply* reply) {
  const Status outcome = context_.loop.Run([&] {
    return ReportWhy(context_.registry, viewer, context_.data_plane, request, MonotonicNs(),
                     &quiet_, reply);
  });
  NodeAsker asker(context_, &quiet_);
  WhyFollower follower(&asker);
  for (control::RankWait& wait : *reply->mutable_ranks()) {
    follower.Follow(wait.job_id(), &wait);
  }
  return outcome;
}

void Reporter::FillNics(control::NicsReply* reply) {
  for (const NicStatistics& nic : context_.data_plane.Nics()) {
    ReportNic(nic, reply->add_nics());
  }
}

void Reporter::FillGpus(control::GpusReply* reply) {
  if (context_.gpus != nullptr) {
    *reply = context_.gpus();
  }
}

}  // namespace ferry::daemon
