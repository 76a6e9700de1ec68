#include "tools/ferryrun/launcher_process.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "common/own_program.h"
#include "config/environment.h"
#include "tools/ferryrun/agent_protocol.h"
#include "tools/ferryrun/process.h"

namespace ferry::tools {
namespace {

constexpr size_t kBlockBytes = 1 << 16;
constexpr int kEndPatienceMs = 2000;
constexpr int kLookMs = 50;  // between looks at what cannot be polled for

// Variables that srun takes as options, and that the job's batch script may have: they would keep
// an agent, which is one task and needs all of its node, to the cores of one rank, start it
// elsewhere, or change what it says.
bool IsOptionOfSrun(std::string_view entry) {
  constexpr std::string_view kNames[] = {
      "SLURM_CPUS_PER_TASK", "SRUN_CPUS_PER_TASK",     "SLURM_NTASKS_PER_NODE",
      "SLURM_EXACT",         "SLURM_EXCLUSIVE",        "SLURM_CPU_BIND",
      "SLURM_MEM_BIND",      "SLURM_NTASKS_PER_CORE",  "SLURM_NTASKS_PER_SOCKET",
      "SLURM_DISTRIBUTION",  "SLURM_THREADS_PER_CORE", "SLURM_HOSTFILE",
      "SLURM_LABELIO",       "SLURM_STDOUTMODE",       "SLURM_STDERRMODE",
      "SLURM_UNBUFFEREDIO"};
  const std::string_view name = entry.substr(0, entry.find('='));
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

// Reads what there is, at most `most` bytes; closes the descriptor at the end of the stream.
std::string ReadSome(UniqueFd* fd, size_t most) {
  std::string bytes(std::min(most, kBlockBytes), '\0');
  const ssize_t size = fd->valid() && most > 0 ? read(fd->get(), bytes.data(), bytes.size()) : -1;
  if (fd->valid() && most > 0 && (size == 0 || (size < 0 && errno != EAGAIN && errno != EINTR))) {
    fd->Reset();
  }
  bytes.resize(static_cast<size_t>(std::max<ssize_t>(size, 0)));
  return bytes;
}

}  // namespace

std::string Trimmed(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) {
    text.pop_back();
  }
  return text;
}

StatusOr<std::unique_ptr<LauncherProcess>> LauncherProcess::Start(
    const std::vector<std::string>& command, const std::vector<std::string>& variables) {
  return StartWith(command, variables, SIGKILL, /*has_own_errors=*/true);
}

StatusOr<std::unique_ptr<LauncherProcess>> LauncherProcess::StartAgent() {
  return StartWith({OwnProgram(), kAgentFlag}, {}, /*parent_death_signal=*/0,
                   /*has_own_errors=*/false);
}

StatusOr<std::unique_ptr<LauncherProcess>> LauncherProcess::StartWith(
    const std::vector<std::string>& command, std::vector<std::string> variables,
    int parent_death_signal, bool has_own_errors) {
  const char* const* environment = config::ProcessEnvironment();
  const StatusOr<std::string> path =
      FindProgram(command[0], config::FindVariable(environment, "PATH").value_or(""));
  FERRY_RETURN_IF_ERROR(path.status());
  StatusOr<Pipe> in = MakePipe();
  FERRY_RETURN_IF_ERROR(in.status());
  StatusOr<Pipe> out = MakePipe();
  FERRY_RETURN_IF_ERROR(out.status());
  StatusOr<Pipe> err = has_own_errors ? MakePipe() : Pipe{};
  FERRY_RETURN_IF_ERROR(err.status());
  for (; *environment != nullptr; ++environment) {
    if (!IsOptionOfSrun(*environment)) {
      variables.emplace_back(*environment);
    }
  }
  const StatusOr<pid_t> pid = Spawn({.path = *path,
                                     .arguments = command,
                                     .environment = std::move(variables),
                                     .stdin_fd = in->read.get(),
                                     .stdout_fd = out->write.get(),
                                     .stderr_fd = has_own_errors ? err->write.get() : STDERR_FILENO,
                                     .parent_death_signal = parent_death_signal});
  FERRY_RETURN_IF_ERROR(pid.status());
  std::unique_ptr<LauncherProcess> process(new LauncherProcess(command[0]));
  process->pid_ = *pid;
  for (const int fd : {in->write.get(), out->read.get(), err->read.get()}) {
    if (fd >= 0) {
      fcntl(fd, F_SETFL, O_NONBLOCK);
    }
  }
  process->in_ = std::move(in->write);
  process->out_ = std::move(out->read);
  process->errors_ = std::move(err->read);
  return process;
}

LauncherProcess::~LauncherProcess() {
  in_.Reset();
  if (pid_ > 0) {
    kill(-pid_, SIGKILL);
    Reap(pid_);
  }
}

void LauncherProcess::Write(std::string_view bytes) {
  to_send_.append(bytes);
  Transmit();
}

void LauncherProcess::Transmit() {
  size_t sent = 0;
  while (in_.valid() && sent < to_send_.size()) {
    const ssize_t size = write(in_.get(), to_send_.data() + sent, to_send_.size() - sent);
    if (size <= 0) {
      if (size < 0 && errno != EAGAIN && errno != EINTR) {
        in_.Reset();  // its words will end too, and then it counts as lost
      }
      break;
    }
    sent += static_cast<size_t>(size);
  }
  to_send_.erase(0, in_.valid() ? sent : to_send_.size());
}

void LauncherProcess::CloseInput() {
  to_send_.clear();
  in_.Reset();
}

void LauncherProcess::Receive(size_t most) { received_ += ReadSome(&out_, most); }

std::string LauncherProcess::ReadErrors(size_t most) { return ReadSome(&errors_, most); }

void LauncherProcess::Advance() {
  Transmit();
  Receive(kBlockBytes);
}

bool LauncherProcess::HasExited() const {
  ProcessEnd end;
  return HasEnded(pid_, &end);
}

std::string LauncherProcess::HowEnded(const std::string& name) const {
  ProcessEnd end;
  bool known = false;
  for (int waited_ms = 0; !known && waited_ms < kEndPatienceMs; waited_ms += kLookMs) {
    known = HasEnded(pid_, &end);
    if (!known) {
      poll(nullptr, 0, kLookMs);
    }
  }
  return name + " " + (known ? Describe(end) : "has closed its output");
}

}  // namespace ferry::tools
