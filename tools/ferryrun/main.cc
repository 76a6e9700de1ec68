// ferryrun: runs a program as the ranks of a job. The pieces are in this folder; here they meet.
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/environment.h"
#include "tools/ferryrun/arguments.h"
#include "tools/ferryrun/job.h"
#include "tools/ferryrun/placement.h"
#include "tools/ferryrun/private_daemon.h"
#include "tools/ferryrun/private_directory.h"
#include "tools/ferryrun/program.h"
#include "tools/ferryrun/supervisor.h"
#include "tools/flags/option_flags.h"

namespace ferry::tools {
namespace {

constexpr uint64_t kCallTimeoutMs = 5000;
constexpr uint64_t kStartTimeoutMs = 10000;
constexpr int kCannotStart = 1;
constexpr int kUsageError = 2;
constexpr int kNotExecutable = 126;  // as shells say it
constexpr int kNotFound = 127;

int Fail(int exit_code, const Status& status) {
  std::fprintf(stderr, "ferryrun: %s\n", status.message().c_str());
  return exit_code;
}

std::string Variable(const char* name) {
  return std::string(config::FindVariable(config::ProcessEnvironment(), name).value_or(""));
}

// The daemons of one run, private ones and their directory included, in the order of their lives.
struct Daemons {
  std::optional<PrivateDirectory> directory;
  std::vector<PrivateDaemon> processes;
  std::vector<JobNode> nodes;
};

Status UseDaemonOf(const std::string& run_directory, Daemons* daemons) {
  StatusOr<LauncherClient> client = LauncherClient::Connect(run_directory, kCallTimeoutMs);
  FERRY_RETURN_IF_ERROR(client.status());
  const std::string address = client->daemon().node().control_address();
  daemons->nodes.push_back({std::move(*client), run_directory, address});
  return {};
}

// The daemon of the run directory, or else the node's, if it is wanted and there is one.
Status UseRunningDaemon(const Arguments& arguments, const config::Options& options,
                        Daemons* daemons) {
  if (arguments.private_daemons || arguments.nodes > 1) {
    return {};
  }
  Status status = UseDaemonOf(options.run_directory, daemons);
  const std::string usual = config::DefaultRunDirectory(config::ProcessEnvironment());
  if (status.code() == ErrorCode::kNoDaemon && options.run_directory == usual) {
    status = UseDaemonOf(config::kSystemRunDirectory, daemons);
    if (status.code() == ErrorCode::kPermissionDenied) {
      return {};  // there is one, but not for this user
    }
  }
  if (status.ok() || (status.code() == ErrorCode::kNoDaemon && !arguments.names_run_directory)) {
    return {};
  }
  return {status.code(), status.message() + "; --private starts a daemon for this job alone"};
}

Status StartPrivateDaemons(const Arguments& arguments, const config::Options& options,
                           SignalSource* signals, Daemons* daemons) {
  std::string program = arguments.ferryd;
  if (program.empty()) {
    StatusOr<std::string> found = FindFerryd();
    FERRY_RETURN_IF_ERROR(found.status());
    program = *found;
  }
  StatusOr<PrivateDirectory> directory =
      PrivateDirectory::Create(PrivateBase(Variable("XDG_RUNTIME_DIR")));
  FERRY_RETURN_IF_ERROR(directory.status());
  daemons->directory.emplace(std::move(*directory));
  for (uint32_t node = 0; node < arguments.nodes; ++node) {
    StatusOr<PrivateDaemon> daemon =
        PrivateDaemon::Start(program, node, daemons->directory->path(), options);
    FERRY_RETURN_IF_ERROR(daemon.status());
    daemons->processes.push_back(std::move(*daemon));
  }
  for (PrivateDaemon& daemon : daemons->processes) {
    FERRY_RETURN_IF_ERROR(daemon.WaitUntilReady(kStartTimeoutMs, signals));
  }
  // Only now: gRPC starts threads, and the daemons were forked without them.
  for (const PrivateDaemon& daemon : daemons->processes) {
    StatusOr<LauncherClient> client =
        LauncherClient::Connect(daemon.run_directory(), kCallTimeoutMs);
    FERRY_RETURN_IF_ERROR(client.status());
    daemons->nodes.push_back(
        {std::move(*client), daemon.run_directory(), daemon.control_address()});
  }
  return {};
}

void StopPrivateDaemons(uint64_t grace_ms, Daemons* daemons) {
  daemons->nodes.clear();  // a gRPC server waits for idle clients to hang up
  for (PrivateDaemon& daemon : daemons->processes) {
    daemon.AskToStop();
  }
  for (PrivateDaemon& daemon : daemons->processes) {
    const std::string name = daemon.Name();
    const ProcessEnd end = daemon.WaitUntilStopped(grace_ms);
    if (!end.ok() && !daemon.end_was_reported()) {
      std::fprintf(stderr, "ferryrun: %s did not stop as it should: it %s%s\n", name.c_str(),
                   Describe(end).c_str(), daemon.LastWords().c_str());
    }
  }
}

int RunJob(const Arguments& arguments, const config::Options& options, const std::string& path,
           SignalSource* signals, Daemons* daemons) {
  const auto ranks = static_cast<uint32_t>(arguments.ranks);
  const StatusOr<Job> job = Job::Create(daemons->nodes, ranks);
  if (!job.ok()) {
    return Fail(kCannotStart, job.status());
  }
  Supervisor supervisor({.ranks = ranks,
                         .label = arguments.label,
                         .keep_going = arguments.keep_going,
                         .grace_ms = arguments.grace_ms},
                        signals, &daemons->processes);
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    std::vector<std::string> environment = config::ForeignEnvironment(config::ProcessEnvironment());
    for (std::string& entry : job->Environment(rank, options)) {
      environment.push_back(std::move(entry));
    }
    const Status started = supervisor.StartRank(path, arguments.program, std::move(environment));
    if (!started.ok()) {
      return Fail(started.code() == ErrorCode::kNotFound ? kNotFound : kNotExecutable, started);
    }
  }
  return supervisor.Run();
}

int Run(const Arguments& arguments) {
  const StatusOr<config::Options> options = LoadOptions(arguments.options);
  if (!options.ok()) {
    return Fail(kUsageError, options.status());
  }
  if (const Status status = CheckPlacement(arguments.ranks, arguments.nodes, *options);
      !status.ok()) {
    return Fail(kUsageError, status);
  }
  const StatusOr<std::string> path = FindProgram(arguments.program[0], Variable("PATH"));
  if (!path.ok()) {
    return Fail(path.status().code() == ErrorCode::kNotFound ? kNotFound : kNotExecutable,
                path.status());
  }
  StatusOr<SignalSource> signals = SignalSource::Create();
  if (!signals.ok()) {
    return Fail(kCannotStart, signals.status());
  }
  Daemons daemons;
  Status status = UseRunningDaemon(arguments, *options, &daemons);
  if (status.ok() && daemons.nodes.empty()) {
    status = StartPrivateDaemons(arguments, *options, &*signals, &daemons);
  }
  const int exit_code = status.ok() ? RunJob(arguments, *options, *path, &*signals, &daemons)
                                    : Fail(kCannotStart, status);
  StopPrivateDaemons(arguments.grace_ms, &daemons);
  return exit_code;
}

}  // namespace
}  // namespace ferry::tools

int main(int argc, char** argv) {
  // Pipes must not land on the numbers of the standard streams.
  int fd = 0;
  do {
    fd = open("/dev/null", O_RDWR | O_CLOEXEC);
  } while (fd >= 0 && fd <= STDERR_FILENO);
  close(fd);
  const auto arguments = ferry::tools::ParseArguments(argc, argv);
  if (const int* exit_code = std::get_if<int>(&arguments)) {
    return *exit_code;
  }
  return ferry::tools::Run(std::get<ferry::tools::Arguments>(arguments));
}
