#include "tests/daemon/process_status.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <system_error>

namespace ferry::daemon {

namespace fs = std::filesystem;

std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
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

std::vector<pid_t> Workers() {
  std::vector<pid_t> pids;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator("/proc", ignored)) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != name.npos) {
      continue;
    }
    const pid_t pid = std::stoi(name);
    if (StatusOf(pid, "PPid") == std::to_string(getpid()) &&
        StatusOf(pid, "Name") == "ferry-worker" && !StatusOf(pid, "State").starts_with("Z")) {
      pids.push_back(pid);
    }
  }
  std::sort(pids.begin(), pids.end());
  return pids;
}

}  // namespace ferry::daemon
