#include "client/bootstrap/daemon_life.h"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "common/clock.h"
#include "common/process_stat.h"
#include "shm/atomic.h"

namespace ferry::client {
namespace {

constexpr uint64_t kNsPerMs = 1'000'000;

// The process that the descriptor is for, as /proc here names it; 0 if it does not.
pid_t PidOf(int pidfd) {
  char text[512] = "";
  char path[64];
  std::snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", pidfd);
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path, "re"), std::fclose);
  if (pidfd < 0 || file == nullptr) {
    return 0;
  }
  text[std::fread(text, 1, sizeof(text) - 1, file.get())] = '\0';
  const char* const line = std::strstr(text, "Pid:");
  return line == nullptr ? 0 : static_cast<pid_t>(std::max(std::atol(line + 4), 0L));
}

bool HasReadyThread(pid_t pid) {
  const std::string folder = "/proc/" + std::to_string(pid) + "/task";
  const std::unique_ptr<DIR, int (*)(DIR*)> tasks(opendir(folder.c_str()), closedir);
  for (const dirent* task = tasks != nullptr ? readdir(tasks.get()) : nullptr; task != nullptr;
       task = readdir(tasks.get())) {
    if (task->d_name[0] != '.' && ReadProcessStat(folder + "/" + task->d_name).state == 'R') {
      return true;
    }
  }
  return false;
}

}  // namespace

void LifeQuestions::Look(uint64_t now_ns, uint32_t answered, bool is_waiting,
                         const std::function<bool()>& lacks_core) {
  // A look that comes late, because this process did not run, counts as one in time, or nearly.
  const uint64_t watched_ns = std::min(now_ns - looked_ns_, 2 * pause_ns());
  looked_ns_ = now_ns;
  if (is_open_ && answered == number_) {
    is_open_ = false;
    silent_ns_ = 0;
  }
  if (is_open_) {
    silent_ns_ += lacks_core() ? watched_ns / kCorelessPart : watched_ns;
  } else if (is_waiting) {
    number_ = std::max(number_ + 1, 1U);
    is_open_ = true;
  }
}

DaemonLife::DaemonLife(Parts parts)
    : parts_(std::move(parts)), questions_(parts_.limit_ms * kNsPerMs) {}

Status DaemonLife::Look() {
  // Pairs with the daemon's threads; carries no data.
  const uint32_t answered = shm::LoadAcquire(*parts_.answered);
  questions_.Look(MonotonicNs(), answered, parts_.takes_notice(), [this] {
    const pid_t pid = PidOf(parts_.daemon_pidfd);
    return pid != 0 && HasReadyThread(pid);
  });
  const uint32_t number = questions_.open();
  if (number != 0 && number != sent_ && parts_.ask(number)) {
    sent_ = number;
  }
  return questions_.is_hung() ? Status(ErrorCode::kDaemonDied, DescribeHang(number)) : Status();
}

int DaemonLife::pause_ms() const {
  return static_cast<int>(std::max<uint64_t>(questions_.pause_ns() / kNsPerMs, 1));
}

std::string DaemonLife::DescribeHang(uint32_t number) const {
  char host[256] = "";
  gethostname(host, sizeof(host) - 1);
  const pid_t pid = PidOf(parts_.daemon_pidfd);
  std::string what;
  switch (pid == 0 ? '\0' : ReadProcessStat(pid).state) {
    case 'T':
      what = "it is stopped (SIGSTOP)";
      break;
    case 't':
      what = "it is stopped by a debugger";
      break;
    default:
      // The control thread passes the question on.
      what = shm::LoadAcquire(*parts_.read) == number
                 ? "its progress thread does not turn: a driver or the kernel may hold it"
                 : "its control thread does not turn";
  }
  return "ferryd of node " + std::string(host) + " (pid " + std::to_string(parts_.daemon) +
         ") has not moved for " + std::to_string(questions_.silent_ns() / kNsPerMs) +
         " ms (peer_timeout_ms is " + std::to_string(parts_.limit_ms) + "): " + what;
}

}  // namespace ferry::client
