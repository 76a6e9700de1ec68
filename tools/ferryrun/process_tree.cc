#include "tools/ferryrun/process_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <string>

#include "common/clock.h"
#include "common/unique_fd.h"

namespace ferry::tools {
namespace {

constexpr int kLongestPauseMs = 64;

bool Contains(const std::vector<pid_t>& pids, pid_t pid) {
  return std::find(pids.begin(), pids.end(), pid) != pids.end();
}

// The next number of `text`, after its spaces.
pid_t TakeNumber(std::string_view* text) {
  while (text->starts_with(' ')) {
    text->remove_prefix(1);
  }
  pid_t number = -1;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  text->remove_prefix(static_cast<size_t>(end - text->data()));
  return error == std::errc() ? number : -1;
}

TreeProcess ReadProcess(int proc, const char* name) {
  const UniqueFd file(openat(proc, (std::string(name) + "/stat").c_str(), O_RDONLY | O_CLOEXEC));
  char text[512];
  const ssize_t size = file.valid() ? read(file.get(), text, sizeof(text)) : 0;
  return ParseStat({text, static_cast<size_t>(std::max<ssize_t>(size, 0))});
}

std::vector<TreeProcess> AllProcesses() {
  std::vector<TreeProcess> all;
  DIR* directory = opendir("/proc");
  if (directory == nullptr) {
    return all;
  }
  while (const dirent* entry = readdir(directory)) {
    if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9') {
      if (const TreeProcess one = ReadProcess(dirfd(directory), entry->d_name); one.pid > 0) {
        all.push_back(one);
      }
    }
  }
  closedir(directory);
  return all;
}

}  // namespace

TreeProcess ParseStat(std::string_view text) {
  TreeProcess process;
  const size_t name_end = text.rfind(')');  // the name may hold anything
  if (name_end == text.npos || text.size() < name_end + 4) {
    return process;
  }
  std::string_view head = text;
  const pid_t pid = TakeNumber(&head);
  const char state = text[name_end + 2];
  std::string_view rest = text.substr(name_end + 3);
  process.parent = TakeNumber(&rest);
  TakeNumber(&rest);  // the process group
  process.session = TakeNumber(&rest);
  process.ended = state == 'Z' || state == 'X';
  process.pid = process.session >= 0 ? pid : -1;
  return process;
}

std::vector<TreeProcess> ProcessesBelow(pid_t root, const std::vector<pid_t>& spared) {
  std::vector<TreeProcess> others = AllProcesses();
  std::vector<TreeProcess> below;
  std::vector<pid_t> parents = {root};
  // Level by level; a process has one parent, so each is moved once.
  while (!parents.empty()) {
    std::vector<pid_t> level;
    const auto rest =
        std::stable_partition(others.begin(), others.end(), [&](const TreeProcess& process) {
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
    for (const TreeProcess& process : ProcessesBelow(getpid(), how.spared)) {
      if (!process.ended && (how.other_sessions || process.session == session)) {
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
