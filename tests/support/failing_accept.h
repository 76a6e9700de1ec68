// An accept4 of this program's own, which fails as often as a test says: include it in one file of
// a program.
//
// Any thread.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "common/clock.h"

namespace ferry::tests {

// The next calls that are to fail.
struct FailingAccepts {
  std::mutex mutex;
  uint16_t port = 0;  // of the listener; 0: of Unix sockets
  int error = 0;
  int count = 0;
  std::vector<uint64_t> times_ns;  // of those that have failed

  static FailingAccepts& Instance() {
    static FailingAccepts instance;
    return instance;
  }
};

// Has the next `count` calls for that listener fail with `error`, though a connection waits.
inline void FailAccepts(uint16_t port, int error, int count) {
  FailingAccepts& failing = FailingAccepts::Instance();
  const std::lock_guard lock(failing.mutex);
  failing.port = port;
  failing.error = error;
  failing.count = count;
  failing.times_ns.clear();
}

// Returns when those calls were made that have failed.
inline std::vector<uint64_t> TimesOfFailedAccepts() {
  FailingAccepts& failing = FailingAccepts::Instance();
  const std::lock_guard lock(failing.mutex);
  return failing.times_ns;
}

inline bool IsToFail(int listener) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return false;
  }
  uint16_t port = 0;
  if (address.ss_family == AF_INET) {
    port = ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
  } else if (address.ss_family != AF_UNIX) {
    return false;
  }
  FailingAccepts& failing = FailingAccepts::Instance();
  const std::lock_guard lock(failing.mutex);
  if (failing.count == 0 || failing.port != port) {
    return false;
  }
  --failing.count;
  failing.times_ns.push_back(MonotonicNs());
  errno = failing.error;
  return true;
}

}  // namespace ferry::tests

// In place of the C library's.
extern "C" int accept4(int listener, sockaddr* address, socklen_t* size, int flags) {
  return ferry::tests::IsToFail(listener)
             ? -1
             : static_cast<int>(syscall(SYS_accept4, listener, address, size, flags));
}
