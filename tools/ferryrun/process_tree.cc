#include "tools/ferryrun/process_tree.h"

#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "common/clock.h"
#include "common/process_stat.h"

namespace ferry::tools {
namespace {

constexpr int kLongestPauseMs = 64;

bool Contains(const std::vector<pid_t>& pids, pid_t pid) {
  return std::find(pids.begin(), pids.end(), pid) != pids.end();
}

std::vector<ProcessStat> AllProcesses() {
  std::vector<ProcessStat> all;
  DIR* directory = opendir("/proc");
  if (directory == nullptr) {
    return all;
  }
  while (const dirent* entry = readdir(directory)) {
    if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9') {
      if (const ProcessStat one = ReadProcessStat(std::string("/proc/") + entry->d_name);
          one.session >= 0) {
        all.push_back(one);
      }
    }
  }
  closedir(directory);
  return all;
}

}  // namespace

std::vector<ProcessStat> ProcessesBelow(pid_t root, const std::vector<pid_t>& spared) {
  std::vector<ProcessStat> others = AllProcesses();
  std::vector<ProcessStat> below;
  std::vector<pid_t> parents = {root};
  // Level by level; a process has one parent, so each is moved once.
  while (!parents.empty()) {
    std::vector<pid_t> level;
    const auto rest =
        std::stable_partition(others.begin(), others.end(), [&](const ProcessStat& process) {
          return !Contains(parents, process.parent) || Contains(spared, process.pid);
        });
    for (auto process = rest; process != others.end(); ++process) {
      below.push_back(*process);
      level.push_back(process->pid);
    }
    others.erase(rest, others.end());
    parents = std::move(level);
  }
  return below;
}

void EndAllBelow(const TreeEnd& how) {
  const pid_t session = getsid(0);
  const uint64_t give_up_ns = how.limit_ms == 0 ? 0 : MonotonicNs() + how.limit_ms * 1'000'000;
  for (int pause_ms = 1;; pause_ms = std::min(2 * pause_ms, kLongestPauseMs)) {
    if (how.reap) {
      how.reap();
    }
    // A process that was told to die forks no more; what it forked before is found the next time.
    bool waits = false;
    for (const ProcessStat& process : ProcessesBelow(getpid(), how.spared)) {
      if (process.state != 'Z' && process.state != 'X' &&
          (how.other_sessions || process.session == session)) {
        waits |= kill(process.pid, SIGKILL) == 0;
      }
    }
    if (!waits || (give_up_ns != 0 && MonotonicNs() >= give_up_ns)) {
      return;
    }
    poll(nullptr, 0, pause_ms);
  }
}

}  // namespace ferry::tools
