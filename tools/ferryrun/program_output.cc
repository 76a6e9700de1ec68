#include "tools/ferryrun/program_output.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "common/clock.h"
#include "common/unique_fd.h"
#include "config/environment.h"
#include "tools/ferryrun/process.h"

namespace ferry::tools {
namespace {

constexpr size_t kBlockBytes = 1 << 16;
constexpr int kLookMs = 10;  // between looks whether it has ended, once its output has

class Program {
 public:
  Program(std::string name, pid_t pid, uint64_t timeout_ms)
      : name_(std::move(name)),
        pid_(pid),
        timeout_ms_(timeout_ms),
        deadline_ns_(MonotonicNs() + timeout_ms * 1'000'000) {}
  ~Program() { Reap(pid_); }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  StatusOr<std::string> Read(int fd, size_t most_bytes) const {
    std::string text;
    char bytes[kBlockBytes];
    while (true) {
      pollfd words{fd, POLLIN, 0};
      if (poll(&words, 1, RestMs()) == 0) {
        return TooSlow();
      }
      const ssize_t size = read(fd, bytes, sizeof(bytes));
      if (size == 0) {
        return text;
      }
      if (size < 0 && errno != EINTR && errno != EAGAIN) {
        return StatusFromErrno(errno, "cannot read from '" + name_ + "'");
      }
      text.append(bytes, static_cast<size_t>(std::max<ssize_t>(size, 0)));
      if (text.size() > most_bytes) {
        return Status(ErrorCode::kLimitExceeded,
                      "'" + name_ + "' writes more than " + std::to_string(most_bytes) + " bytes");
      }
    }
  }

  Status AwaitEnd() const {
    ProcessEnd end;
    while (!HasEnded(pid_, &end)) {
      if (RestMs() == 0) {
        return TooSlow();
      }
      poll(nullptr, 0, kLookMs);
    }
    return end.ok() ? Status() : Status(ErrorCode::kSystem, "'" + name_ + "' " + Describe(end));
  }

 private:
  int RestMs() const {
    const uint64_t now_ns = MonotonicNs();
    return now_ns < deadline_ns_ ? static_cast<int>((deadline_ns_ - now_ns) / 1'000'000 + 1) : 0;
  }
  Status TooSlow() const {
    return {ErrorCode::kTimeout,
            "'" + name_ + "' has not ended within " + std::to_string(timeout_ms_) + " ms"};
  }

  const std::string name_;
  const pid_t pid_;
  const uint64_t timeout_ms_;
  const uint64_t deadline_ns_;
};

}  // namespace

StatusOr<std::string> OutputOf(const std::vector<std::string>& command, size_t most_bytes,
                               uint64_t timeout_ms) {
  const char* const* environment = config::ProcessEnvironment();
  const StatusOr<std::string> path =
      FindProgram(command[0], config::FindVariable(environment, "PATH").value_or(""));
  FERRY_RETURN_IF_ERROR(path.status());
  StatusOr<Pipe> out = MakePipe();
  FERRY_RETURN_IF_ERROR(out.status());
  const UniqueFd nothing(open("/dev/null", O_RDONLY | O_CLOEXEC));
  std::vector<std::string> variables;
  for (; *environment != nullptr; ++environment) {
    variables.emplace_back(*environment);
  }
  const StatusOr<pid_t> pid = Spawn({.path = *path,
                                     .arguments = command,
                                     .environment = std::move(variables),
                                     .stdin_fd = nothing.get(),
                                     .stdout_fd = out->write.get(),
                                     .stderr_fd = STDERR_FILENO,
                                     .parent_death_signal = SIGKILL});
  FERRY_RETURN_IF_ERROR(pid.status());
  const Program program(command[0], *pid, timeout_ms);
  out->write.Reset();
  StatusOr<std::string> text = program.Read(out->read.get(), most_bytes);
  FERRY_RETURN_IF_ERROR(text.status());
  FERRY_RETURN_IF_ERROR(program.AwaitEnd());
  return text;
}

}  // namespace ferry::tools
