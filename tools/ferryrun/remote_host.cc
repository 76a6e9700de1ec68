#include "tools/ferryrun/remote_host.h"

#include <unistd.h>

#include <algorithm>
#include <sstream>
#include <utility>

#include "common/clock.h"
#include "tools/ferryrun/launcher_process.h"
#include "tools/ferryrun/node_list.h"

namespace ferry::tools {
namespace {

constexpr size_t kBlockBytes = 1 << 16;
constexpr int kLookMs = 50;  // between looks at what cannot be polled for

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
  StatusOr<std::unique_ptr<LauncherProcess>> launcher = LauncherProcess::Start(command);
  if (!launcher.ok()) {
    return Status(launcher.status().code(), "host " + name + ": " + launcher.status().message());
  }
  return std::make_unique<RemoteHost>(name, std::move(*launcher));
}

void RemoteHost::Send(FrameKind kind, uint32_t rank, std::string_view payload) {
  std::string frame;
  AppendFrame(kind, rank, payload, &frame);
  stream_->Write(frame);
}

StatusOr<std::optional<Frame>> RemoteHost::Next() {
  reader_.Feed(stream_->Take());
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
  const std::string words = stream_->HowEnded();
  std::string written = reader_.preamble();
  char bytes[kBlockBytes];
  const int errors = stream_->errors_fd();
  const ssize_t size = errors >= 0 ? read(errors, bytes, sizeof(bytes)) : 0;
  written.append(bytes, static_cast<size_t>(std::max<ssize_t>(size, 0)));
  written = Trimmed(std::move(written));
  return written.empty() ? words : words + "; it wrote:\n  " + written;
}

StatusOr<std::vector<std::string>> LauncherCommand(const config::Options& options,
                                                   const std::string& host,
                                                   const std::string& program,
                                                   const std::vector<std::string>& arguments) {
  if (options.launcher == "none") {
    return Status(
        ErrorCode::kConfiguration,
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

std::vector<std::string> StepCommand(const std::vector<std::string>& hosts,
                                     const std::string& program,
                                     const std::vector<std::string>& arguments) {
  const std::string count = std::to_string(hosts.size());
  std::vector<std::string> command = {"srun",
                                      "--nodes=" + count,
                                      "--ntasks=" + count,
                                      "--ntasks-per-node=1",
                                      "--nodelist=" + ShortNodeList(hosts),
                                      "--overlap",
                                      "--input=none",
                                      "--kill-on-bad-exit=0",
                                      "--no-kill",
                                      "--wait=0",
                                      "--mpi=none",
                                      "--export=ALL",
                                      "--cpu-bind=none",
                                      program};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return command;
}

}  // namespace ferry::tools
