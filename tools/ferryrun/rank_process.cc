#include "tools/ferryrun/rank_process.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <utility>

#include "common/topology/discover.h"
#include "tools/ferryrun/binary_interface.h"
#include "tools/ferryrun/process.h"
#include "tools/ferryrun/rank_servers.h"

namespace ferry::tools {
namespace {

constexpr std::string_view kPythonUnbuffered = "PYTHONUNBUFFERED";

std::string_view NameOf(std::string_view entry) { return entry.substr(0, entry.find('=')); }

Status PreloadMalloc(std::vector<std::string>* environment) {
  const StatusOr<std::string> library = FindMallocLibrary();
  FERRY_RETURN_IF_ERROR(library.status());
  const std::string users = ValueOf("LD_PRELOAD", *environment);
  SetVariables({"LD_PRELOAD=" + (users.empty() ? *library : users + ":" + *library)}, environment);
  return {};
}

// Makes the way of the rank's standard output to ferryrun.
StatusOr<Pipe> MakeOutput(const RankCommand& command, std::vector<std::string>* environment) {
  if (command.terminal) {
    StatusOr<Pipe> terminal = MakeTerminal(*command.terminal);
    if (terminal.ok()) {
      // Python ends lines at once on a terminal, and shows no part of a line before.
      const bool is_said =
          std::any_of(environment->begin(), environment->end(),
                      [](const std::string& entry) { return NameOf(entry) == kPythonUnbuffered; });
      if (!is_said) {
        environment->push_back(std::string(kPythonUnbuffered) + "=1");
      }
      return terminal;
    }
  }
  return MakePipe();
}

}  // namespace

StatusOr<RankProcess> StartRank(const RankCommand& command, Slots* slots, RankServers* servers) {
  StatusOr<std::string> path =
      FindProgram(command.program[0], ValueOf("PATH", command.environment), command.directory);
  FERRY_RETURN_IF_ERROR(path.status());
  StatusOr<Pipe> in = MakePipe();
  FERRY_RETURN_IF_ERROR(in.status());
  StatusOr<Pipe> err = MakePipe();
  FERRY_RETURN_IF_ERROR(err.status());
  std::vector<std::string> environment = command.environment;
  StatusOr<Pipe> out = MakeOutput(command, &environment);
  FERRY_RETURN_IF_ERROR(out.status());
  if (!command.directory.empty()) {
    SetVariables({"PWD=" + command.directory}, &environment);
  }
  // ferryrun's own (main.cc): what the program makes of hwloc is not its business.
  std::erase(environment,
             std::string(topology::kPluginsVariable) + "=" + topology::kPluginsLeftOut);
  if (ValueOf("FERRY_MALLOC", environment) == "ferry") {
    FERRY_RETURN_IF_ERROR(PreloadMalloc(&environment));
  }
  const StatusOr<UniqueFd> pmi = servers->Open(command.rank, &environment);
  FERRY_RETURN_IF_ERROR(pmi.status());
  FERRY_RETURN_IF_ERROR(ChooseInterface(*path, &environment));
  SetVariables({"FERRY_ABORT_FD=" + std::to_string(slots->fd_of_ranks())}, &environment);
  const StatusOr<pid_t> pid = slots->Start({.path = *path,
                                            .arguments = command.program,
                                            .environment = std::move(environment),
                                            .stdin_fd = in->read.get(),
                                            .stdout_fd = out->write.get(),
                                            .stderr_fd = err->write.get(),
                                            .inherited_fd = slots->fd_of_ranks(),
                                            .pmi_fd = pmi->get(),
                                            .parent_death_signal = SIGKILL,
                                            .directory = command.directory,
                                            .cpus = command.cpus,
                                            .is_held = command.is_held});
  FERRY_RETURN_IF_ERROR(pid.status());
  servers->Started(command.rank, *pid);
  fcntl(out->read.get(), F_SETFL, O_NONBLOCK);
  fcntl(err->read.get(), F_SETFL, O_NONBLOCK);
  return RankProcess{*pid, std::move(in->write), std::move(out->read), std::move(err->read)};
}

void SetVariables(const std::vector<std::string>& more, std::vector<std::string>* environment) {
  for (const std::string& entry : more) {
    const auto same =
        std::find_if(environment->begin(), environment->end(),
                     [&entry](const std::string& other) { return NameOf(other) == NameOf(entry); });
    if (same == environment->end()) {
      environment->push_back(entry);
    } else {
      *same = entry;
    }
  }
}

std::string ValueOf(const std::string& name, const std::vector<std::string>& environment) {
  for (const std::string& entry : environment) {
    if (NameOf(entry) == name && entry.size() > name.size()) {
      return entry.substr(name.size() + 1);
    }
  }
  return "";
}

void StdinForwarder::Start(UniqueFd pipe) {
  pipe_ = std::move(pipe);
  fcntl(pipe_.get(), F_SETFL, O_NONBLOCK);  // this end is ferryrun's alone
}

pollfd StdinForwarder::Interest() const {
  if (!pipe_.valid()) {
    return {-1, 0, 0};
  }
  return waiting_.empty() ? pollfd{STDIN_FILENO, POLLIN, 0} : pollfd{pipe_.get(), POLLOUT, 0};
}

void StdinForwarder::Advance() {
  if (waiting_.empty()) {
    char bytes[16 * 1024];
    const ssize_t size = read(STDIN_FILENO, bytes, sizeof(bytes));
    if (size > 0) {
      waiting_.assign(bytes, static_cast<size_t>(size));
    } else if (size == 0 || (errno != EINTR && errno != EAGAIN)) {
      pipe_.Reset();  // the end, or a terminal that we may not read in the background
      return;
    }
  }
  const ssize_t size = write(pipe_.get(), waiting_.data(), waiting_.size());
  if (size >= 0) {
    waiting_.erase(0, static_cast<size_t>(size));
  } else if (errno != EINTR && errno != EAGAIN) {
    pipe_.Reset();  // the rank has closed its input
  }
}

}  // namespace ferry::tools
