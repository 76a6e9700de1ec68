#include "tools/ferryrun/private_daemon.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "common/clock.h"
#include "config/environment.h"

namespace ferry::tools {
namespace {

constexpr int kLastLines = 10;
constexpr off_t kLastBytes = 8192;

// Standard error goes to a file, not to a pipe, so that a daemon that outlives ferryrun for a
// moment can still write; without a name, nothing needs to be removed.
StatusOr<UniqueFd> MakeLog(const std::string& folder) {
  std::string path = folder + "/log.XXXXXX";
  UniqueFd fd(mkostemp(path.data(), O_CLOEXEC | O_APPEND));
  if (!fd.valid()) {
    return StatusFromErrno(errno, "cannot make a log file in " + folder);
  }
  unlink(path.c_str());
  return fd;
}

std::vector<std::string> DaemonEnvironment(config::Options options) {
  options.config_file.clear();  // it has been read
  options.fabric_port = 0;      // several daemons share this machine
  options.control_port = 0;
  options.job_id.clear();
  options.job_secret.clear();
  options.rank = options.size = options.node = 0;
  std::vector<std::string> environment = config::ForeignEnvironment(config::ProcessEnvironment());
  // A service manager that waits for a notice does not wait for this daemon's. The user has already
  // been told of unknown variables.
  std::erase_if(environment, [](const std::string& entry) {
    return entry.starts_with("NOTIFY_SOCKET=") || entry.starts_with("WATCHDOG_") ||
           entry.starts_with("FERRY_");
  });
  for (std::string& entry : config::EnvironmentFor(options)) {
    environment.push_back(std::move(entry));
  }
  return environment;
}

int RemainingMs(uint64_t deadline_ns) {
  const uint64_t now_ns = MonotonicNs();
  return now_ns >= deadline_ns ? 0 : static_cast<int>((deadline_ns - now_ns) / 1'000'000 + 1);
}

}  // namespace

StatusOr<PrivateDaemon> PrivateDaemon::Start(const std::string& program, uint32_t node,
                                             const std::string& folder, config::Options options) {
  PrivateDaemon daemon;
  daemon.node_ = node;
  daemon.run_directory_ = folder + "/" + std::to_string(node);
  StatusOr<UniqueFd> log = MakeLog(folder);
  FERRY_RETURN_IF_ERROR(log.status());
  daemon.log_ = std::move(*log);
  StatusOr<Pipe> ready = MakePipe();
  FERRY_RETURN_IF_ERROR(ready.status());
  const UniqueFd null(open("/dev/null", O_RDWR | O_CLOEXEC));

  options.run_directory = daemon.run_directory_;
  options.node_name = "node" + std::to_string(node);
  options.users = "own";
  const int ready_fd = ready->write.get();
  const StatusOr<pid_t> pid =
      Spawn({.path = program,
             .arguments = {program, "--ready-fd", std::to_string(ready_fd), "--remove-parent"},
             .environment = DaemonEnvironment(std::move(options)),
             .stdin_fd = null.get(),
             .stdout_fd = daemon.log_.get(),
             .stderr_fd = daemon.log_.get(),
             .inherited_fd = ready_fd,
             .parent_death_signal = SIGTERM});
  FERRY_RETURN_IF_ERROR(pid.status());
  daemon.pid_ = *pid;
  daemon.ready_ = std::move(ready->read);
  return daemon;
}

PrivateDaemon::PrivateDaemon(PrivateDaemon&& other) noexcept
    : node_(other.node_),
      pid_(std::exchange(other.pid_, -1)),
      end_was_reported_(other.end_was_reported_),
      run_directory_(std::move(other.run_directory_)),
      control_address_(std::move(other.control_address_)),
      ready_(std::move(other.ready_)),
      log_(std::move(other.log_)) {}

PrivateDaemon::~PrivateDaemon() {
  if (pid_ > 0) {
    WaitUntilStopped(0);
  }
}

Status PrivateDaemon::WaitUntilReady(uint64_t timeout_ms, SignalSource* signals) {
  const uint64_t deadline_ns = MonotonicNs() + timeout_ms * 1'000'000;
  while (true) {
    pollfd fds[] = {{ready_.get(), POLLIN, 0}, {signals->fd(), POLLIN, 0}};
    const int timeout = RemainingMs(deadline_ns);
    if (poll(fds, 2, timeout) == 0 && timeout == 0) {
      return {ErrorCode::kTimeout, Name() + " did not start to serve within " +
                                       std::to_string(timeout_ms) + " ms" + LastWords()};
    }
    FERRY_RETURN_IF_ERROR(signals->CheckInterrupt());
    char text[256];
    const ssize_t size = fds[0].revents != 0 ? read(ready_.get(), text, sizeof(text)) : -1;
    if (size == 0) {  // the write end is gone and it never wrote a line
      const std::string name = Name();
      const ProcessEnd end = WaitUntilStopped(timeout_ms);
      return {ErrorCode::kDaemonDied, name + " could not start: it " + Describe(end) + LastWords()};
    }
    if (size > 0 && memchr(text, '\n', static_cast<size_t>(size)) != nullptr) {
      return ReadAddress();
    }
  }
}

Status PrivateDaemon::ReadAddress() {
  const std::string path = run_directory_ + "/ferryd.json";
  std::ifstream file(path);
  const nlohmann::json about = nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (!about.is_object() || !about.contains("control_address") ||
      !about["control_address"].is_string()) {
    return {ErrorCode::kVersionMismatch, path +
                                             " names no control_address: ferryd and ferryrun "
                                             "must come from one release"};
  }
  control_address_ = about["control_address"];
  return {};
}

std::string PrivateDaemon::Name() const {
  return "ferryd of node " + std::to_string(node_) + " (pid " + std::to_string(pid_) + ")";
}

std::string PrivateDaemon::LastWords() const {
  struct stat file {};
  fstat(log_.get(), &file);
  std::string tail(static_cast<size_t>(std::min(file.st_size, kLastBytes)), '\0');
  const ssize_t size =
      pread(log_.get(), tail.data(), tail.size(), file.st_size - static_cast<off_t>(tail.size()));
  tail.resize(static_cast<size_t>(std::max<ssize_t>(size, 0)));
  while (!tail.empty() && tail.back() == '\n') {
    tail.pop_back();
  }
  if (tail.empty()) {
    return "; it wrote no log";
  }
  size_t start = tail.size();
  for (int line = 0; line < kLastLines && start != tail.npos; ++line) {
    start = start == 0 ? tail.npos : tail.rfind('\n', start - 1);
  }
  std::string words = "; its last log lines:\n  ";
  for (const char c : std::string_view(tail).substr(start == tail.npos ? 0 : start + 1)) {
    words += c;
    if (c == '\n') {
      words += "  ";
    }
  }
  return words;
}

void PrivateDaemon::AskToStop() {
  if (pid_ > 0) {
    kill(pid_, SIGTERM);
  }
}

ProcessEnd PrivateDaemon::WaitUntilStopped(uint64_t timeout_ms) {
  ProcessEnd end;
  if (pid_ <= 0) {
    return end;
  }
  const UniqueFd handle(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
  pollfd ended = {handle.get(), POLLIN, 0};
  if (poll(&ended, 1, static_cast<int>(timeout_ms)) == 0) {
    kill(pid_, SIGKILL);
    poll(&ended, 1, -1);
  }
  HasEnded(pid_, &end);
  Reap(pid_);
  pid_ = -1;
  return end;
}

}  // namespace ferry::tools
