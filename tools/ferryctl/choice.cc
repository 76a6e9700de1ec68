#include "tools/ferryctl/choice.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "common/job_name.h"
#include "config/environment.h"
#include "tools/ferryctl/rank_name.h"
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

constexpr char kFirstProgram[] = "#1";

// Returns true if a user may mean that job by the name: see NewestProgram.
bool IsMeant(const std::string& job_id, const std::string& name) {
  return job_id == name || ReadJobName(job_id).launch == name || job_id + kFirstProgram == name;
}

bool HasJob(const Observer& observer, const std::string& name) {
  const auto& jobs = observer.daemon().jobs();
  return std::any_of(jobs.begin(), jobs.end(),
                     [&](const control::JobStatus& job) { return IsMeant(job.job_id(), name); });
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

StatusOr<std::vector<Observer>> ChooseDaemonsOf(const CtlArguments& arguments,
                                                const std::string& name) {
  StatusOr<std::vector<MetDaemon>> met = MeetDaemons(arguments);
  FERRY_RETURN_IF_ERROR(met.status());
  const StatusOr<RankName> rank = ParseRankName(name);
  StatusOr<std::vector<Observer>> answering =
      Answering(std::move(*met), [](const Observer&) { return true; });
  FERRY_RETURN_IF_ERROR(answering.status());
  std::vector<Observer> chosen;
  for (Observer& observer : *answering) {
    if (HasJob(observer, name) || (rank.ok() && HasJob(observer, rank->job_id))) {
      chosen.push_back(std::move(observer));
    }
  }
  return chosen.empty() ? ChooseDaemons(arguments) : std::move(chosen);
}

std::string NewestProgram(std::span<const Observer> daemons, const std::string& name) {
  std::string newest = name;
  uint32_t program = 0;
  for (const Observer& daemon : daemons) {
    for (const control::JobStatus& job : daemon.daemon().jobs()) {
      const JobName read = ReadJobName(job.job_id());
      if (IsMeant(job.job_id(), name) && read.program > program) {
        newest = job.job_id();
        program = read.program;
      }
    }
  }
  return newest;
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
