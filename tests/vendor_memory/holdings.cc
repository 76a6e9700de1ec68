#include "tests/vendor_memory/holdings.h"

#include <dirent.h>
#include <unistd.h>

#include <fstream>

#include "tests/vendor_memory/buffer.h"

namespace ferry::vendor_memory {
namespace {

constexpr char kDeviceMemory[] = "memfd:ferry-device-memory";

size_t LinesOf(const std::string& path, const std::string& text) {
  std::ifstream file(path);
  size_t lines = 0;
  for (std::string line; std::getline(file, line);) {
    lines += line.find(text) != std::string::npos ? 1 : 0;
  }
  return lines;
}

size_t FilesOf(const std::string& path) {
  DIR* const directory = opendir(path.c_str());
  size_t files = 0;
  while (directory != nullptr && readdir(directory) != nullptr) {
    ++files;
  }
  if (directory != nullptr) {
    closedir(directory);
  }
  return files;
}

}  // namespace

Holdings FindHoldings() {
  Holdings holdings;
  std::map<std::string, std::string> parents;
  std::map<std::string, std::string> names;
  DIR* const processes = opendir("/proc");
  VENDOR_CHECK(processes != nullptr);
  while (const dirent* const entry = readdir(processes)) {
    const std::string pid = entry->d_name;
    std::ifstream status("/proc/" + pid + "/status");
    for (std::string line; std::getline(status, line);) {
      if (line.rfind("Name:\t", 0) == 0) {
        names[pid] = line.substr(6);
      } else if (line.rfind("PPid:\t", 0) == 0) {
        parents[pid] = line.substr(6);
      }
    }
  }
  closedir(processes);
  const std::string ferryrun = parents[std::to_string(getppid())];
  for (const auto& [pid, name] : names) {
    const bool is_ours = parents[pid] == ferryrun || parents[parents[pid]] == ferryrun;
    if (pid == std::to_string(getpid()) || (is_ours && name.rfind("ferry", 0) == 0)) {
      const std::string path = "/proc/" + pid;
      holdings[name + " " + pid + " maps"] = LinesOf(path + "/maps", "");
      holdings[name + " " + pid + " device memory"] = LinesOf(path + "/maps", kDeviceMemory);
      holdings[name + " " + pid + " fds"] = FilesOf(path + "/fd");
      holdings[name + " " + pid + " threads"] = FilesOf(path + "/task");
    }
  }
  VENDOR_CHECK(holdings.size() >= 4);  // this rank's and a daemon's, at least
  return holdings;
}

size_t DeviceMappings() { return LinesOf("/proc/self/maps", kDeviceMemory); }

}  // namespace ferry::vendor_memory
