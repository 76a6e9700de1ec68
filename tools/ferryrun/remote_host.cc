#include "tools/ferryrun/remote_host.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <sstream>
#include <utility>

#include "common/clock.h"
#include "config/environment.h"
#include "tools/ferryrun/process.h"

namespace ferry::tools {
namespace {

constexpr size_t kBlockBytes = 1 << 16;
constexpr int kEndPatienceMs = 2000;
constexpr int kLookMs = 50;  // between looks at what cannot be polled for

std::string Trimmed(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) {
    text.pop_back();
  }
  return text;
}

// Variables that srun takes as options, and that the job's batch script may have: they would keep
// an agent, which is one task and needs all of its node, to the cores of one rank.
bool IsOptionOfSrun(std::string_view entry) {
  constexpr std::string_view kNames[] = {
      "SLURM_CPUS_PER_TASK", "SRUN_CPUS_PER_TASK",    "SLURM_NTASKS_PER_NODE",
      "SLURM_EXACT",         "SLURM_EXCLUSIVE",       "SLURM_CPU_BIND",
      "SLURM_MEM_BIND",      "SLURM_NTASKS_PER_CORE", "SLURM_NTASKS_PER_SOCKET",
      "SLURM_DISTRIBUTION",  "SLURM_THREADS_PER_CORE"};
  const std::string_view name = entry.substr(0, entry.find('='));
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

std::string Quoted(const std::string& word) {
  const bool plain = !word.empty() && std::all_of(word.begin(), word.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("/._-=:,+@%").find(c) != std::string_view::npos;
  });
  if (plain) {
    return word;
  }
  std::string quoted = "'";
  for (const char c : word) {
    quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  }
  return quoted + "'";
}

}  // namespace

StatusOr<std::unique_ptr<RemoteHost>> RemoteHost::Start(const std::string& name,
                                                        const std::vector<std::string>& command) {
  const char* const* environment = config::ProcessEnvironment();
  const StatusOr<std::string> path =
      FindProgram(command[0], config::FindVariable(environment, "PATH").value_or(""));
  if (!path.ok()) {
    return Status(path.status().code(), "host " + name + ": " + path.status().message());
  }
  StatusOr<Pipe> in = MakePipe();
  FERRY_RETURN_IF_ERROR(in.status());
  StatusOr<Pipe> out = MakePipe();
  FERRY_RETURN_IF_ERROR(out.status());
  StatusOr<Pipe> err = MakePipe();
  FERRY_RETURN_IF_ERROR(err.status());
  std::vector<std::string> variables;
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
                                     .stderr_fd = err->write.get(),
                                     .parent_death_signal = SIGKILL});
  FERRY_RETURN_IF_ERROR(pid.status());
  std::unique_ptr<RemoteHost> host(new RemoteHost(name, command[0]));
  host->pid_ = *pid;
  for (const int fd : {in->write.get(), out->read.get(), err->read.get()}) {
    fcntl(fd, F_SETFL, O_NONBLOCK);
  }
  host->in_ = std::move(in->write);
  host->out_ = std::move(out->read);
  host->err_ = std::move(err->read);
  return host;
}

RemoteHost::~RemoteHost() {
  in_.Reset();
  if (pid_ > 0) {
    kill(-pid_, SIGKILL);
    Reap(pid_);
  }
}

void RemoteHost::Send(FrameKind kind, uint32_t rank, std::string_view payload) {
  AppendFrame(kind, rank, payload, &to_send_);
  Transmit();
}

void RemoteHost::Advance() {
  Transmit();
  Receive();
}

void RemoteHost::Transmit() {
  while (in_.valid() && !to_send_.empty()) {
    const ssize_t size = write(in_.get(), to_send_.data(), to_send_.size());
    if (size <= 0) {
      if (size < 0 && errno != EAGAIN && errno != EINTR) {
        in_.Reset();  // its words will end too, and then it counts as lost
        to_send_.clear();
      }
      break;
    }
    to_send_.erase(0, static_cast<size_t>(size));
  }
}

void RemoteHost::Receive() {
  char bytes[kBlockBytes];
  const ssize_t size = out_.valid() ? read(out_.get(), bytes, sizeof(bytes)) : -1;
  if (size > 0) {
    reader_.Feed({bytes, static_cast<size_t>(size)});
  } else if (out_.valid() && (size == 0 || (errno != EAGAIN && errno != EINTR))) {
    out_.Reset();
  }
}

StatusOr<std::optional<Frame>> RemoteHost::Next() {
  StatusOr<std::optional<Frame>> frame = reader_.Next();
  if (!frame.ok()) {
    return Status(frame.status().code(), Title() + ": " + frame.status().message());
  }
  return frame;
}

StatusOr<Frame> RemoteHost::Await(FrameKind kind, uint64_t timeout_ms, SignalSource* signals) {
  const uint64_t deadline_ns = MonotonicNs() + timeout_ms * 1'000'000;
  while (true) {
    StatusOr<std::optional<Frame>> frame = Next();
    FERRY_RETURN_IF_ERROR(frame.status());
    if (frame->has_value() && (*frame)->kind == kind) {
      return std::move(**frame);
    }
    if (frame->has_value() && (*frame)->kind == FrameKind::kFailed) {
      const Status failed = ReadFailed(**frame);
      return Status(failed.code(), Title() + ": " + failed.message());
    }
    if (frame->has_value()) {
      continue;  // an answer to a caller that gave up
    }
    if (ended()) {
      return Status(ErrorCode::kNodeUnreachable, "cannot reach " + Title() + ": " + LastWords());
    }
    if (MonotonicNs() >= deadline_ns) {
      return Status(ErrorCode::kTimeout,
                    Title() + " did not answer within " + std::to_string(timeout_ms) + " ms");
    }
    pollfd fds[] = {WordsInterest(), RoomInterest(), {signals->fd(), POLLIN, 0}};
    poll(fds, 3, kLookMs);
    FERRY_RETURN_IF_ERROR(signals->CheckInterrupt());
    Advance();
  }
}

void RemoteHost::AwaitEnd(uint64_t timeout_ms) {
  const uint64_t deadline_ns = MonotonicNs() + timeout_ms * 1'000'000;
  while (!ended() && MonotonicNs() < deadline_ns) {
    pollfd fds[] = {WordsInterest(), RoomInterest()};
    poll(fds, 2, kLookMs);
    Advance();
    StatusOr<std::optional<Frame>> frame = Next();
    while (frame.ok() && frame->has_value()) {
      frame = Next();
    }
  }
}

std::string RemoteHost::LastWords() {
  ProcessEnd end;
  bool known = false;
  for (int waited_ms = 0; pid_ > 0 && !known && waited_ms < kEndPatienceMs; waited_ms += kLookMs) {
    known = HasEnded(pid_, &end);
    if (!known) {
      poll(nullptr, 0, kLookMs);
    }
  }
  std::string words = launcher_ + " " + (known ? Describe(end) : "has closed its output");
  std::string written = reader_.preamble();
  char bytes[kBlockBytes];
  const ssize_t size = err_.valid() ? read(err_.get(), bytes, sizeof(bytes)) : 0;
  written.append(bytes, static_cast<size_t>(std::max<ssize_t>(size, 0)));
  written = Trimmed(std::move(written));
  return written.empty() ? words : words + "; it wrote:\n  " + written;
}

StatusOr<std::vector<std::string>> LauncherCommand(const config::Options& options,
                                                   const std::string& host,
                                                   const std::string& program,
                                                   const std::vector<std::string>& arguments) {
  if (options.launcher == "none") {
    return Status(ErrorCode::kConfiguration,
                  host + " is another host, and launcher is none (use --launcher ssh, srun or qrsh)");
  }
  // srun passes words on as they are; the others give them to a shell there.
  const bool by_srun = options.launcher == "srun" && options.rsh.empty();
  std::vector<std::string> command;
  if (by_srun) {
    // Slurm would keep what an agent says until a line of it ends.
    command = {"srun",       "--nodes=1",    "--ntasks=1",     "--nodelist=" + host,
               "--overlap",  "--input=0",    "--unbuffered",   "--kill-on-bad-exit",
               "--mpi=none", "--export=ALL", "--cpu-bind=none"};
  } else {
    const char* const usual =
        options.launcher == "qrsh" ? "qrsh -inherit" : "ssh -x -o BatchMode=yes";
    std::istringstream words(options.rsh.empty() ? usual : options.rsh);
    for (std::string word; words >> word;) {
      command.push_back(word);
    }
    if (command.empty()) {
      return Status(ErrorCode::kConfiguration,
                    "rsh is \"" + options.rsh + "\", which is no command");
    }
    command.push_back(host);
  }
  command.push_back(by_srun ? program : Quoted(program));
  for (const std::string& argument : arguments) {
    command.push_back(by_srun ? argument : Quoted(argument));
  }
  return command;
}

}  // namespace ferry::tools
