#include "daemon/admin/reporter.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <iterator>
#include <map>
#include <memory>
#include <span>
#include <thread>

#include "common/clock.h"
#include "daemon/admin/admin_report.h"
#include "daemon/admin/link_report.h"
#include "daemon/admin/profile_report.h"
#include "daemon/admin/why_graph.h"
#include "daemon/admin/why_steps.h"
#include "daemon/tls/secrets.h"

namespace ferry::daemon {
namespace {

// Well below the time that ferryctl gives its own daemon: a node that stands still is the usual
// reason to ask.
constexpr std::chrono::seconds kPatience(1);

// Looks at ranks here, or asks the daemon of their node over the link to it.
//
// Calling thread: any but the control thread; blocks as WaitGraph says.
class NodeLooker final : public RankLooker {
 public:
  // Both outlive it. `quiet` is the control thread's.
  NodeLooker(const ReporterContext& context, QuietLog* quiet) : context_(context), quiet_(quiet) {}

  Answer Look(const std::string& job_id, uint32_t rank, bool may_ask) override {
    Answer answer;
    const auto question = std::make_shared<Question>();
    context_.loop.Run([&] { Begin(job_id, rank, may_ask, question, &answer); });
    answer.trouble = Await(*question);
    if (answer.trouble.ok()) {
      Take(job_id, rank, *question, &answer);
    }
    if (answer.ranks.empty()) {
      answer.ranks.emplace_back();
      answer.ranks.back().set_rank(rank);
    }
    return answer;
  }

  std::vector<control::RankWait> LookAgain(const std::string& job_id,
                                           std::span<const WaitPairName> pairs) override {
    std::map<uint32_t, NodeQuestion> questions;
    context_.loop.Run([&] { BeginAgain(job_id, pairs, &questions); });
    std::vector<control::RankWait> looks(pairs.size());
    size_t seen = 0;
    for (auto& [node, asked] : questions) {
      control::WhyReply& reply = asked.question->reply;
      if (!Await(*asked.question).ok() ||
          static_cast<size_t>(reply.ranks_size()) != asked.places.size()) {
        return {};
      }
      for (int i = 0; i < reply.ranks_size(); ++i, ++seen) {
        looks[asked.places[static_cast<size_t>(i)]] = std::move(*reply.mutable_ranks(i));
      }
    }
    return seen == pairs.size() ? looks : std::vector<control::RankWait>();
  }

  void Pause(std::chrono::milliseconds time) override { std::this_thread::sleep_for(time); }

 private:
  struct Question {
    std::promise<void> came;  // then the others change no more
    std::future<void> is_there = came.get_future();
    Status status;
    control::WhyReply reply;
  };

  // About several ranks of a node.
  struct NodeQuestion {
    control::PeerWhyRequest request;
    std::vector<size_t> places;  // by pair of the request: its place among all pairs
    std::shared_ptr<Question> question = std::make_shared<Question>();
  };

  static Status Await(Question& question) {
    if (question.is_there.wait_for(kPatience) != std::future_status::ready) {
      return {ErrorCode::kTimeout, "it did not answer"};
    }
    return question.status;
  }

  // On the control thread.
  const JobRecord* Job(const std::string& job_id) const {
    const auto& jobs = context_.registry.jobs();
    const auto found = jobs.find(job_id);
    return found == jobs.end() ? nullptr : found->second.get();
  }

  control::PeerWhyRequest RequestFor(const JobRecord& job) const {
    control::PeerWhyRequest request;
    request.set_incarnation(context_.links.Incarnation());
    request.set_job_id(job.spec.id);
    request.set_job_proof(JobProof(job.spec.secret, job.spec.id, context_.links.Incarnation()));
    return request;
  }

  static void End(const Status& status, const control::WhyReply& reply, Question* question) {
    question->status = status;
    question->reply = reply;
    question->came.set_value();
  }

  void Send(const JobRecord& job, uint32_t node, const control::PeerWhyRequest& request,
            const std::shared_ptr<Question>& question) {
    context_.links.SendWhy(job.nodes[node].address, request,
                           [question](const Status& status, const control::WhyReply& reply) {
                             End(status, reply, question.get());
                           });
  }

  // On the control thread.
  void Begin(const std::string& job_id, uint32_t rank, bool may_ask,
             const std::shared_ptr<Question>& question, Answer* answer) {
    const JobRecord* const job = Job(job_id);
    if (job == nullptr || rank >= job->size()) {
      return End({ErrorCode::kNotFound, "the job has ended"}, {}, question.get());
    }
    if (job->IsLocal(rank)) {
      control::WhyReply reply;
      const Status status = LookAround(context_.registry, context_.data_plane, job_id, rank,
                                       MonotonicNs(), quiet_, &reply);
      return End(status, reply, question.get());
    }
    answer->ranks.push_back(KnownOf(*job, context_.data_plane, rank, MonotonicNs(), quiet_));
    const bool is_there =
        answer->ranks.back().state() == ConditionText(Condition::Kind::kElsewhere);
    if (!may_ask || !is_there) {
      return End({}, {}, question.get());
    }
    answer->asked = true;
    control::PeerWhyRequest request = RequestFor(*job);
    request.set_rank(rank);
    Send(*job, job->spec.node_of_rank[rank], request, question);
  }

  // Takes the ranks of the node that was asked out of its answer. A daemon that answers with
  // others is not believed.
  void Take(const std::string& job_id, uint32_t rank, Question& question, Answer* answer) {
    if (!answer->asked && !answer->ranks.empty()) {
      return;
    }
    const bool is_right = context_.loop.Run([&] {
      const JobRecord* const job = Job(job_id);
      if (job == nullptr || rank >= job->size() || question.reply.ranks_size() == 0 ||
          question.reply.ranks(0).rank() != rank ||
          question.reply.ranks(0).state() == ConditionText(Condition::Kind::kElsewhere)) {
        return false;
      }
      const std::vector<uint32_t>& nodes = job->spec.node_of_rank;
      return std::all_of(question.reply.ranks().begin(), question.reply.ranks().end(),
                         [&](const control::RankWait& look) {
                           return look.rank() < nodes.size() && nodes[look.rank()] == nodes[rank];
                         });
    });
    if (!is_right) {
      answer->trouble = {ErrorCode::kCorrupt, "its answer does not have the rank"};
      return;
    }
    answer->ranks.assign(std::make_move_iterator(question.reply.mutable_ranks()->begin()),
                         std::make_move_iterator(question.reply.mutable_ranks()->end()));
  }

  // On the control thread.
  void BeginAgain(const std::string& job_id, std::span<const WaitPairName> pairs,
                  std::map<uint32_t, NodeQuestion>* questions) {
    const JobRecord* const job = Job(job_id);
    if (job == nullptr) {
      return;
    }
    for (size_t i = 0; i < pairs.size(); ++i) {
      if (pairs[i].rank < job->size()) {
        NodeQuestion& asked = (*questions)[job->spec.node_of_rank[pairs[i].rank]];
        control::WaitPair* const pair = asked.request.add_pairs();
        pair->set_rank(pairs[i].rank);
        pair->set_waiter(pairs[i].waiter);
        asked.places.push_back(i);
      }
    }
    for (auto& [node, asked] : *questions) {
      if (node == job->spec.node) {
        control::WhyReply reply;
        const Status status = LookAtPairs(context_.registry, context_.data_plane, job_id,
                                          asked.request.pairs(), MonotonicNs(), quiet_, &reply);
        End(status, reply, asked.question.get());
      } else {
        control::PeerWhyRequest request = RequestFor(*job);
        *request.mutable_pairs() = asked.request.pairs();
        request.set_rank(asked.request.pairs(0).rank());
        Send(*job, node, request, asked.question);
      }
    }
  }

  const ReporterContext& context_;
  QuietLog* const quiet_;
};

// Keeps of each circle the rank with the smallest number, if it is here: the chains of the others
// end in the same circle.
void KeepCircles(google::protobuf::RepeatedPtrField<control::RankWait>* ranks) {
  const auto is_to_go = [](const control::RankWait& wait) {
    const auto& chain = wait.chain();
    return !wait.deadlock() || wait.rank() != chain[chain.size() - 1] ||
           wait.rank() != *std::min_element(chain.begin(), chain.end());
  };
  ranks->erase(std::remove_if(ranks->begin(), ranks->end(), is_to_go), ranks->end());
}

}  // namespace

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
  NodeLooker looker(context_, &quiet_);
  WaitGraph(&looker).Explain(reply->mutable_ranks());
  if (request.deadlocks_only()) {
    KeepCircles(reply->mutable_ranks());
  }
  return outcome;
}

Status Reporter::SendProfile(Viewer viewer, const control::JobProfileRequest& request,
                             const std::function<bool(const control::JobProfilePart&)>& write) {
  const std::string node = context_.loop.Run([&] { return context_.links.self().name(); });
  return SendJobProfile(context_.loop, context_.registry, node, viewer, request, write);
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
