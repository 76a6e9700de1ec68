#include "transports/ofi/epoll_watch.h"

#include <sys/epoll.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <string>
#include <system_error>

namespace ferry::transport {

std::vector<int> EpollInstances() {
  std::vector<int> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", error)) {
    const std::filesystem::path target = std::filesystem::read_symlink(entry.path(), error);
    const std::string name = entry.path().filename();
    int fd = -1;
    std::from_chars(name.data(), name.data() + name.size(), fd);
    if (target == "anon_inode:[eventpoll]" && fd >= 0) {
      found.push_back(fd);
    }
  }
  return found;
}

UniqueFd WatchInstances(const std::vector<int>& instances, const std::vector<int>& except) {
  UniqueFd watch;
  for (const int fd : instances) {
    if (std::ranges::find(except, fd) != except.end()) {
      continue;
    }
    if (!watch.valid()) {
      watch.Reset(epoll_create1(EPOLL_CLOEXEC));
    }
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd;
    epoll_ctl(watch.get(), EPOLL_CTL_ADD, fd, &event);
  }
  return watch;
}

}  // namespace ferry::transport
