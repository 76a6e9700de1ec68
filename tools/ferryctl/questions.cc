#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "tools/display/rank_groups.h"
#include "tools/display/top.h"
#include "tools/display/view.h"
#include "tools/ferryctl/choice.h"
#include "tools/ferryctl/commands.h"
#include "tools/ferryctl/job_names.h"
#include "tools/ferryctl/queues.h"
#include "tools/ferryctl/views.h"

namespace ferry::tools {
namespace {

using nlohmann::ordered_json;

constexpr char kClearScreen[] = "\033[H\033[2J";

void PrintView(const CtlArguments& arguments, const View& view) {
  arguments.json ? PrintJson(view.json) : Print(view.text);
}

// Shows several daemons' answers, each under a line of its own, and as a list in JSON.
void PrintViews(const CtlArguments& arguments, const std::vector<Observer>& daemons,
                std::vector<View> views) {
  if (views.size() == 1) {
    return PrintView(arguments, views.front());
  }
  View all = {{{"daemons", ordered_json::array()}}, ""};
  for (size_t i = 0; i < views.size(); ++i) {
    views[i].json["run_directory"] = daemons[i].run_directory();
    all.json["daemons"].push_back(std::move(views[i].json));
    all.text +=
        (i == 0 ? "" : "\n") + ("---- " + daemons[i].run_directory()) + "\n" + views[i].text;
  }
  PrintView(arguments, all);
}

// A question about one job shows nothing of other jobs.
template <typename Item>
void KeepJob(const std::string& job_id, google::protobuf::RepeatedPtrField<Item>* items) {
  if (!job_id.empty()) {
    items->erase(std::remove_if(items->begin(), items->end(),
                                [&](const Item& item) { return item.job_id() != job_id; }),
                 items->end());
  }
}
void Keep(const std::string& job_id, control::StatusReply* reply) {
  KeepJob(job_id, reply->mutable_jobs());
}
void Keep(const std::string& job_id, control::SessionsReply* reply) {
  KeepJob(job_id, reply->mutable_sessions());
}
void Keep(const std::string& job_id, control::LinksReply* reply) {
  KeepJob(job_id, reply->mutable_links());
  KeepJob(job_id, reply->mutable_totals());
}
void Keep(const std::string&, control::CountersReply*) {}
void Keep(const std::string&, control::NicsReply*) {}
void Keep(const std::string&, control::GpusReply*) {}

// Puts the jobs' names in the place of their ids, as the text has them.
void Relabel(const JobList& jobs, control::StatusReply* reply) {
  for (control::JobStatus& job : *reply->mutable_jobs()) {
    job.set_job_id(LabelOf(jobs, job.job_id()));
  }
}
void Relabel(const JobList& jobs, control::SessionsReply* reply) {
  for (control::SessionStatus& session : *reply->mutable_sessions()) {
    session.set_job_id(LabelOf(jobs, session.job_id()));
  }
}
void Relabel(const JobList& jobs, control::LinksReply* reply) {
  for (control::LinkStatus& link : *reply->mutable_links()) {
    link.set_job_id(LabelOf(jobs, link.job_id()));
  }
  for (control::LinkTotals& totals : *reply->mutable_totals()) {
    totals.set_job_id(LabelOf(jobs, totals.job_id()));
  }
}
void Relabel(const JobList& jobs, control::WhyReply* reply) {
  for (control::RankWait& rank : *reply->mutable_ranks()) {
    rank.set_job_id(LabelOf(jobs, rank.job_id()));
  }
}
void Relabel(const JobList& jobs, control::CountersReply* reply) {
  for (control::CounterValue& counter : *reply->mutable_counters()) {
    if (const CounterScope scope = ReadScope(counter.scope()); scope.rank.has_value()) {
      counter.set_scope("job " + LabelOf(jobs, scope.job) + " rank " + std::to_string(*scope.rank));
    }
  }
}
void Relabel(const JobList&, control::NicsReply*) {}
void Relabel(const JobList&, control::GpusReply*) {}

void Complete(control::StatusReply* reply) { FillUsers(reply); }
template <typename Reply>
void Complete(Reply*) {}

// The text for people. Many ranks are told of in groups, unless all are wanted.
template <typename Reply>
std::string TextOf(const Reply& reply, bool) {
  return MakeView(reply, StandardOutput()).text;
}
std::string TextOf(const control::SessionsReply& reply, bool all) {
  return all || static_cast<size_t>(reply.sessions_size()) <= kMostRanksListed
             ? MakeView(reply, StandardOutput()).text
             : SessionGroups(reply, StandardOutput());
}
std::string TextOf(const control::CountersReply& reply, bool all) {
  return all || !HasManyRanks(reply) ? MakeView(reply, StandardOutput()).text
                                     : CounterGroups(reply, StandardOutput());
}
std::string TextOf(const control::LinksReply& reply, bool all) {
  return all || static_cast<size_t>(reply.links_size()) <= kMostRanksListed
             ? MakeView(reply, StandardOutput()).text
             : LinkGroups(reply, StandardOutput());
}

// JSON with ids, text with names.
template <typename Reply>
View LabelledView(const JobList& jobs, Reply reply, bool all) {
  Complete(&reply);
  View view = MakeView(reply, StandardOutput());
  Relabel(jobs, &reply);
  view.text = TextOf(reply, all);
  return view;
}

// The id of the job that -j names; empty: none.
StatusOr<std::string> NamedJob(const CtlArguments& arguments,
                               const std::vector<Observer>& daemons) {
  return arguments.job.empty() ? std::string() : MeantJob(JobsOf(daemons), arguments.job);
}

// People are shown what has counted.
void Shorten(const CtlArguments& arguments, control::CountersReply* reply) {
  if (!arguments.json && !arguments.all) {
    auto* const counters = reply->mutable_counters();
    counters->erase(std::remove_if(counters->begin(), counters->end(),
                                   [](const auto& counter) { return counter.value() == 0; }),
                    counters->end());
  }
}
template <typename Reply>
void Shorten(const CtlArguments&, Reply*) {}

// Asks each daemon one question, and shows the answers.
template <typename Reply, typename Request>
Status Ask(const CtlArguments& arguments, const std::vector<Observer>& daemons,
           const Request& request) {
  const StatusOr<std::string> job = NamedJob(arguments, daemons);
  FERRY_RETURN_IF_ERROR(job.status());
  const JobList jobs = JobsOf(daemons);
  std::vector<View> views;
  for (const Observer& daemon : daemons) {
    Reply reply;
    FERRY_RETURN_IF_ERROR(daemon.Ask(request, &reply));
    Keep(*job, &reply);
    Shorten(arguments, &reply);
    views.push_back(LabelledView(jobs, std::move(reply), arguments.all));
  }
  PrintViews(arguments, daemons, std::move(views));
  return {};
}

template <typename Reply, typename Request>
Status Ask(const CtlArguments& arguments, const Request& request = {}) {
  const StatusOr<std::vector<Observer>> daemons = ChooseDaemons(arguments);
  FERRY_RETURN_IF_ERROR(daemons.status());
  return Ask<Reply>(arguments, *daemons, request);
}

// ---- Why ----

Ranks RanksShown(const CtlArguments& arguments) {
  return arguments.all ? Ranks::kEach : Ranks::kMany;
}

// The answer of the first daemon that knows the rank: several nodes of a job may be daemons of one
// machine.
StatusOr<control::WhyReply> AskOfRank(const MeantThere& there) {
  control::WhyRequest request;
  request.set_job_id(there.meant.job_id);
  request.set_rank(*there.meant.rank);
  Status status;
  for (const Observer& daemon : there.daemons) {
    control::WhyReply reply;
    status = daemon.Ask(request, &reply);
    if (status.ok()) {
      return reply;
    }
    if (status.code() != ErrorCode::kNotFound) {
      break;
    }
  }
  return status;
}

Status WhyRank(const CtlArguments& arguments, const MeantThere& there) {
  const StatusOr<control::WhyReply> reply = AskOfRank(there);
  FERRY_RETURN_IF_ERROR(reply.status());
  PrintView(arguments,
            WhyView(there.meant.job_id, there.label, Ranks::kOne, *reply, StandardOutput()));
  return {};
}

// An empty id: all ranks that wait, of all jobs.
StatusOr<control::WhyReply> WhyRanks(const std::vector<Observer>& daemons,
                                     const std::string& job_id) {
  control::WhyRequest request;
  request.set_job_id(job_id);
  request.set_all_ranks(true);
  control::WhyReply all;
  for (const Observer& daemon : daemons) {
    control::WhyReply reply;
    FERRY_RETURN_IF_ERROR(daemon.Ask(request, &reply));
    for (control::RankWait& wait : *reply.mutable_ranks()) {
      *all.add_ranks() = std::move(wait);
    }
  }
  return all;
}

// Asks all daemons, not only the one that a job would use.
Status WhyAll(const CtlArguments& arguments) {
  StatusOr<std::vector<MetDaemon>> met = MeetDaemons(arguments);
  FERRY_RETURN_IF_ERROR(met.status());
  std::vector<Observer> daemons;
  for (MetDaemon& daemon : *met) {
    FERRY_RETURN_IF_ERROR(daemon.observer.status());
    daemons.push_back(std::move(*daemon.observer));
  }
  if (daemons.empty()) {
    return ChooseDaemons(arguments).status();  // says what is not there
  }
  const StatusOr<control::WhyReply> reply = WhyRanks(daemons, "");
  FERRY_RETURN_IF_ERROR(reply.status());
  View view = WaitingView(*reply, RanksShown(arguments), StandardOutput());
  control::WhyReply labelled = *reply;
  Relabel(JobsOf(daemons), &labelled);
  view.text = WaitingView(labelled, RanksShown(arguments), StandardOutput()).text;
  PrintView(arguments, view);
  return {};
}

// ---- Top ----

Status TakeSample(const Observer& daemon, const std::string& job_id, TopSample* sample) {
  control::CountersRequest counters;
  counters.set_job_id(job_id);
  counters.set_rank(-1);
  sample->time_ns = MonotonicNs();
  FERRY_RETURN_IF_ERROR(daemon.Ask(control::StatusRequest(), &sample->status));
  FERRY_RETURN_IF_ERROR(daemon.Ask(control::SessionsRequest(), &sample->sessions));
  Keep(job_id, &sample->sessions);
  const Status counted = daemon.Ask(counters, &sample->counters);
  if (!counted.ok() && counted.code() != ErrorCode::kNotFound) {  // none of its ranks is here
    return counted;
  }
  return daemon.Ask(control::NicsRequest(), &sample->nics);
}

}  // namespace

Status ListDaemons(const CtlArguments& arguments) {
  const StatusOr<std::vector<MetDaemon>> met = MeetDaemons(arguments);
  FERRY_RETURN_IF_ERROR(met.status());
  PrintView(arguments, ListView(*met, StandardOutput()));
  return {};
}

Status ShowStatus(const CtlArguments& arguments) {
  return Ask<control::StatusReply>(arguments, control::StatusRequest());
}

Status Sessions(const CtlArguments& arguments) {
  return Ask<control::SessionsReply>(arguments, control::SessionsRequest());
}

Status Counters(const CtlArguments& arguments) {
  control::CountersRequest request;
  request.set_rank(-1);
  if (arguments.rank.empty()) {
    const StatusOr<std::vector<Observer>> daemons = ChooseDaemons(arguments);
    FERRY_RETURN_IF_ERROR(daemons.status());
    const StatusOr<std::string> job = NamedJob(arguments, *daemons);
    FERRY_RETURN_IF_ERROR(job.status());
    request.set_job_id(*job);
    return Ask<control::CountersReply>(arguments, *daemons, request);
  }
  const StatusOr<MeantThere> there = FindMeant(arguments, arguments.rank);
  FERRY_RETURN_IF_ERROR(there.status());
  if (!there->meant.rank.has_value()) {
    return {ErrorCode::kInvalidArgument, "\"" + arguments.rank + "\" is a job: write " +
                                             there->label + ".RANK, or -j " + there->label +
                                             " for all its ranks here"};
  }
  request.set_job_id(there->meant.job_id);
  request.set_rank(static_cast<int32_t>(*there->meant.rank));
  Status status;
  for (const Observer& daemon : there->daemons) {
    control::CountersReply reply;
    status = daemon.Ask(request, &reply);
    if (status.ok()) {
      Shorten(arguments, &reply);
      PrintView(arguments, MakeView(reply, StandardOutput()));
      break;
    }
  }
  return status;
}

Status Nics(const CtlArguments& arguments) {
  return Ask<control::NicsReply>(arguments, control::NicsRequest());
}

Status Links(const CtlArguments& arguments) {
  return arguments.take_back ? TakeLinks(arguments)
                             : Ask<control::LinksReply>(arguments, control::LinksRequest());
}

Status Gpus(const CtlArguments& arguments) {
  return Ask<control::GpusReply>(arguments, control::GpusRequest());
}

// JOB.RANK, RANK of the only job, or JOB for all its ranks here. A job's name may look like a
// rank's.
Status Why(const CtlArguments& arguments) {
  const std::string& name = arguments.rank.empty() ? arguments.job : arguments.rank;
  if (name.empty()) {
    return WhyAll(arguments);
  }
  const StatusOr<MeantThere> there = FindMeant(arguments, name);
  FERRY_RETURN_IF_ERROR(there.status());
  if (there->meant.rank.has_value()) {
    return WhyRank(arguments, *there);
  }
  const StatusOr<control::WhyReply> reply = WhyRanks(there->daemons, there->meant.job_id);
  FERRY_RETURN_IF_ERROR(reply.status());
  PrintView(arguments, WhyView(there->meant.job_id, there->label, RanksShown(arguments), *reply,
                               StandardOutput()));
  return {};
}

Status ShowQueues(const CtlArguments& arguments) {
  if (arguments.rank.empty()) {
    return {ErrorCode::kInvalidArgument, "whose queues? Write JOB.RANK, or RANK of your only job"};
  }
  const StatusOr<MeantThere> there = FindMeant(arguments, arguments.rank);
  FERRY_RETURN_IF_ERROR(there.status());
  if (!there->meant.rank.has_value()) {
    return {ErrorCode::kInvalidArgument,
            "\"" + arguments.rank + "\" is a job: write " + there->label + ".RANK"};
  }
  const StatusOr<control::WhyReply> reply = AskOfRank(*there);
  FERRY_RETURN_IF_ERROR(reply.status());
  PrintView(arguments,
            QueuesView(there->meant.job_id, there->label, *reply, arguments.all, StandardOutput()));
  return {};
}

Status Top(const CtlArguments& arguments) {
  const StatusOr<ChosenPlace> place = ChooseOne(arguments);
  FERRY_RETURN_IF_ERROR(place.status());
  const StatusOr<Observer> daemon =
      Observer::Connect(place->run_directory, kAnswerTimeoutMs, place->daemon_user);
  FERRY_RETURN_IF_ERROR(daemon.status());
  const bool redraw = isatty(STDOUT_FILENO) == 1 && !arguments.json && arguments.pictures != 1;
  const JobList jobs(daemon->daemon().jobs().begin(), daemon->daemon().jobs().end());
  const StatusOr<std::string> job =
      arguments.job.empty() ? std::string() : MeantJob(jobs, arguments.job);
  FERRY_RETURN_IF_ERROR(job.status());
  TopSample before;
  FERRY_RETURN_IF_ERROR(TakeSample(*daemon, *job, &before));
  for (uint32_t n = 0; arguments.pictures == 0 || n < arguments.pictures; ++n) {
    std::this_thread::sleep_for(std::chrono::milliseconds(arguments.interval_ms));
    TopSample after;
    FERRY_RETURN_IF_ERROR(TakeSample(*daemon, *job, &after));
    TopRates rates = RatesBetween(before, after);
    View view = TopView(after.status, rates, arguments.all, StandardOutput());
    const JobList now(after.status.jobs().begin(), after.status.jobs().end());
    for (SessionRates& session : rates.sessions) {
      const size_t dot = session.name.rfind('.');
      session.name = LabelOf(now, session.name.substr(0, dot)) + session.name.substr(dot);
    }
    view.text = TopView(after.status, rates, arguments.all, StandardOutput()).text;
    if (arguments.json) {
      PrintJson(view.json, -1);
    } else {
      Print((redraw ? kClearScreen : n > 0 ? "\n" : "") + view.text);
    }
    before = std::move(after);
  }
  return {};
}

Status Watch(const CtlArguments& arguments) {
  const StatusOr<AdminClient> client = ConnectAsAdministrator(arguments);
  FERRY_RETURN_IF_ERROR(client.status());
  control::WatchRequest request;
  request.set_interval_ms(arguments.interval_ms);
  grpc::ClientContext context;
  const auto stream = client->stub().Watch(&context, request);
  control::StatusReply reply;
  while (stream->Read(&reply)) {
    const View view = LabelledView({reply.jobs().begin(), reply.jobs().end()}, reply, true);
    arguments.json ? PrintJson(view.json, -1) : Print(view.text + "\n");
  }
  return client->FromGrpc(stream->Finish());
}

}  // namespace ferry::tools
