#include "tests/daemon/test_rank.h"

#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <iterator>
#include <thread>

namespace ferry::daemon {

bool CanBecomeOthers() {
  const bool can = geteuid() == 0 && seteuid(12345) == 0;
  return can && seteuid(0) == 0;
}

size_t OpenDescriptors() {
  using Iterator = std::filesystem::directory_iterator;
  return static_cast<size_t>(std::distance(Iterator("/proc/self/fd"), Iterator()));
}

size_t SettledDescriptors(size_t most) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  size_t open = OpenDescriptors();
  while (open > most && std::chrono::steady_clock::now() < end) {
    std::this_thread::yield();
    open = OpenDescriptors();
  }
  return open;
}

}  // namespace ferry::daemon
