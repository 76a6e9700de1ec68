#include "tools/ferryctl/choice.h"

#include <unistd.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "config/environment.h"
#include "tools/ferryctl/job_names.h"
#include "tools/flags/option_flags.h"

namespace ferry::tools {
namespace {

constexpr char kFlag[] = "--run_directory=";
constexpr char kVariable[] = "FERRY_RUN_DIRECTORY";

// The run directory that a flag, a variable or a file names; empty if none does.
std::string NamedDirectory(const CtlArguments& arguments, const config::Options& options) {
  const auto environment = config::ProcessEnvironment();
  const bool by_flag = std::any_of(arguments.options.begin(), arguments.options.end(),
                                   [](const std::string& flag) { return flag.starts_with(kFlag); });
  const bool by_variable = !config::FindVariable(environment, kVariable).value_or("").empty();
  const bool is_usual = config::IsDefaultRunDirectory(options.run_directory, environment);
  return by_flag || by_variable || !is_usual ? options.run_directory : "";
}

// Returns true if no daemon serves there, or none that serves this user.
bool IsForOthers(const Status& status) {
  return status.code() == ErrorCode::kNoDaemon || status.code() == ErrorCode::kPermissionDenied;
}

std::vector<MetDaemon> MeetAll(const config::Options& options) {
  std::vector<MetDaemon> met;
  for (DaemonDirectory& place : SearchDaemons(PlacesOf(config::ProcessEnvironment()))) {
    StatusOr<Observer> observer =
        Observer::Connect(place.run_directory, kAnswerTimeoutMs, options.daemon_user);
    if (observer.ok() || !IsForOthers(observer.status())) {
      met.push_back({std::move(place), std::move(observer)});
    }
  }
  return met;
}

// The first is the one that ferryrun would ask.
Status NoDaemonFor(const CtlArguments& arguments, const config::Options& options) {
  const std::string usual = options.run_directory;
  const Status status = Observer::Connect(usual, kAnswerTimeoutMs, options.daemon_user).status();
  if (!IsForOthers(status)) {
    return status;  // it has come meanwhile, or cannot be reached
  }
  const std::string job =
      arguments.job.empty() ? "" : ", and none of yours has job " + arguments.job;
  return {status.code(), status.message() + job + "; there is no private one of yours, either"};
}

bool HasJob(const Observer& observer, const std::string& name) {
  const auto& jobs = observer.daemon().jobs();
  return std::any_of(jobs.begin(), jobs.end(),
                     [&](const control::JobStatus& job) { return IsMeant(job, name); });
}

// The daemons that answer; if none does, why the first does not.
StatusOr<std::vector<Observer>> Answering(std::vector<MetDaemon> met,
                                          const std::function<bool(const Observer&)>& wanted) {
  std::vector<Observer> chosen;
  Status trouble;
  for (MetDaemon& daemon : met) {
    if (!daemon.observer.ok()) {
      trouble = trouble.ok() ? daemon.observer.status() : trouble;
    } else if (wanted(*daemon.observer)) {
      chosen.push_back(std::move(*daemon.observer));
    }
  }
  if (chosen.empty() && !trouble.ok()) {
    return trouble;
  }
  return chosen;
}

Status NoSuchJob(const std::string& job) {
  return {ErrorCode::kNotFound,
          "no ferryd here has a job " + job + " of yours (`ferryctl` lists what there is)"};
}

// The user's own and the node's before private ones: as ferryrun chooses.
std::vector<MetDaemon> FirstChoice(std::vector<MetDaemon> met) {
  const auto is_private = [](const MetDaemon& daemon) {
    return daemon.place.kind == DaemonKind::kPrivate || daemon.place.kind == DaemonKind::kJob;
  };
  if (!met.empty() && !is_private(met.front())) {
    met.erase(met.begin() + 1, met.end());
  }
  return met;
}

}  // namespace

StatusOr<std::vector<MetDaemon>> MeetDaemons(const CtlArguments& arguments) {
  const StatusOr<config::Options> options = LoadOptions(arguments.options);
  FERRY_RETURN_IF_ERROR(options.status());
  const std::string named = NamedDirectory(arguments, *options);
  if (named.empty()) {
    return MeetAll(*options);
  }
  StatusOr<Observer> observer = Observer::Connect(named, kAnswerTimeoutMs, options->daemon_user);
  FERRY_RETURN_IF_ERROR(observer.status());
  std::vector<MetDaemon> met;
  met.push_back({{named, DaemonKind::kOwn}, std::move(observer)});
  return met;
}

StatusOr<std::vector<Observer>> ChooseDaemons(const CtlArguments& arguments) {
  StatusOr<std::vector<MetDaemon>> met = MeetDaemons(arguments);
  FERRY_RETURN_IF_ERROR(met.status());
  if (met->empty()) {
    const StatusOr<config::Options> options = LoadOptions(arguments.options);
    FERRY_RETURN_IF_ERROR(options.status());
    return NoDaemonFor(arguments, *options);
  }
  if (arguments.job.empty()) {
    return Answering(FirstChoice(std::move(*met)), [](const Observer&) { return true; });
  }
  StatusOr<std::vector<Observer>> chosen =
      Answering(std::move(*met), [&](const Observer& o) { return HasJob(o, arguments.job); });
  if (chosen.ok() && chosen->empty()) {
    return NoSuchJob(arguments.job);
  }
  return chosen;
}

StatusOr<std::vector<Observer>> AllAnswering(const CtlArguments& arguments) {
  StatusOr<std::vector<MetDaemon>> met = MeetDaemons(arguments);
  FERRY_RETURN_IF_ERROR(met.status());
  if (met->empty()) {
    return ChooseDaemons(arguments).status();  // says what is not there
  }
  return Answering(std::move(*met), [](const Observer&) { return true; });
}

JobList JobsOf(const std::vector<Observer>& daemons) {
  std::vector<const control::StatusReply*> statuses;
  for (const Observer& daemon : daemons) {
    statuses.push_back(&daemon.daemon());
  }
  return JobsOf(statuses);
}

StatusOr<MeantThere> FindMeant(const CtlArguments& arguments, const std::string& text) {
  StatusOr<std::vector<Observer>> daemons = AllAnswering(arguments);
  FERRY_RETURN_IF_ERROR(daemons.status());
  const JobList jobs = JobsOf(*daemons);
  const StatusOr<Meant> meant = ReadMeant(jobs, text, geteuid());
  FERRY_RETURN_IF_ERROR(meant.status());
  MeantThere there{*meant, LabelOf(jobs, meant->job_id), {}};
  for (Observer& daemon : *daemons) {
    const auto& its = daemon.daemon().jobs();
    if (std::any_of(its.begin(), its.end(),
                    [&](const auto& job) { return job.job_id() == meant->job_id; })) {
      there.daemons.push_back(std::move(daemon));
    }
  }
  return there;
}

StatusOr<ChosenPlace> ChooseOne(const CtlArguments& arguments) {
  const StatusOr<config::Options> options = LoadOptions(arguments.options);
  FERRY_RETURN_IF_ERROR(options.status());
  if (const std::string named = NamedDirectory(arguments, *options); !named.empty()) {
    return ChosenPlace{named, options->daemon_user};
  }
  const StatusOr<std::vector<Observer>> daemons = ChooseDaemons(arguments);
  FERRY_RETURN_IF_ERROR(daemons.status());
  if (daemons->size() == 1) {
    return ChosenPlace{daemons->front().run_directory(), options->daemon_user};
  }
  std::string all;
  for (const Observer& daemon : *daemons) {
    all += "\n  --run_directory=" + daemon.run_directory();
  }
  return Status(ErrorCode::kInvalidArgument, "there are " + std::to_string(daemons->size()) +
                                                 " ferryd of yours: choose by" + all);
}

}  // namespace ferry::tools
