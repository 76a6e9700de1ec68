#include "tests/support/processes.h"

#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>
#include <thread>

namespace ferry::tests {

namespace fs = std::filesystem;

std::string ReadFile(const std::string& path) {
  // A file of /proc ends when its process does; an iterator would throw there.
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

std::string StatusOf(pid_t pid, const std::string& field) {
  std::istringstream lines(ReadFile("/proc/" + std::to_string(pid) + "/status"));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(field + ":\t")) {
      return line.substr(field.size() + 2);
    }
  }
  return "";
}

void Stop(pid_t pid) {
  kill(pid, SIGSTOP);
  const auto all_stopped = [pid] {
    std::error_code gone;
    const fs::directory_iterator threads("/proc/" + std::to_string(pid) + "/task", gone);
    return std::all_of(begin(threads), end(threads), [](const auto& thread) {
      const std::string state = StatusOf(std::stoi(thread.path().filename()), "State");
      return state.empty() || state.starts_with("T");
    });
  };
  while (!all_stopped()) {
    std::this_thread::yield();
  }
}

std::vector<pid_t> WorkersOf(pid_t parent) {
  std::vector<pid_t> pids;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator("/proc", ignored)) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != name.npos) {
      continue;
    }
    const pid_t pid = std::stoi(name);
    if (StatusOf(pid, "PPid") == std::to_string(parent) &&
        StatusOf(pid, "Name") == "ferry-worker" && !StatusOf(pid, "State").starts_with("Z")) {
      pids.push_back(pid);
    }
  }
  std::sort(pids.begin(), pids.end());
  return pids;
}

std::vector<std::string> MemfdsOf(pid_t pid) {
  std::vector<std::string> paths;
  std::error_code ignored;
  for (const auto& entry :
       fs::directory_iterator("/proc/" + std::to_string(pid) + "/fd", ignored)) {
    if (fs::read_symlink(entry, ignored).string().starts_with("/memfd:")) {
      paths.push_back(entry.path());
    }
  }
  return paths;
}

}  // namespace ferry::tests
