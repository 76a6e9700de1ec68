// The service manager's end of NOTIFY_SOCKET (sd_notify), as a test plays it.
//
// One thread; what waits says so.
#pragma once

#include <errno.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <optional>
#include <string>

#include "tests/e2e/command.h"
#include "tests/support/patience.h"

namespace ferry::e2e {

class NotifySocket {
 public:
  enum Kind { kFile, kAbstract };
  explicit NotifySocket(Kind kind = kFile)
      : kind_(kind), fd_(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = Path();
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    if (kind == kAbstract) {
      address.sun_path[0] = '\0';
    }
    const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size());
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&address), bytes), 0);
  }
  ~NotifySocket() { close(fd_); }
  NotifySocket(const NotifySocket&) = delete;
  NotifySocket& operator=(const NotifySocket&) = delete;

  // As in NOTIFY_SOCKET, where an abstract name begins with "@".
  std::string Path() const { return (kind_ == kAbstract ? "@" : "") + (directory_ / "notify"); }
  std::string RunDirectory() const { return directory_ / "run"; }
  // The next message; nothing if none comes within `wait_ms`.
  std::optional<std::string> Next(int wait_ms) const {
    pollfd readable = {fd_, POLLIN, 0};
    if (poll(&readable, 1, wait_ms) != 1) {
      return std::nullopt;
    }
    char text[1024];
    const ssize_t size = recv(fd_, text, sizeof(text), 0);
    return std::string(text, size > 0 ? static_cast<size_t>(size) : 0);
  }
  // The next message that begins with `start`; empty if none comes.
  std::string WaitFor(const std::string& start) const {
    while (const auto message = Next(tests::kPatienceMs)) {
      if (message->starts_with(start)) {
        return *message;
      }
    }
    return "";
  }
  // Fills the queue: the next message would have to wait until one was read.
  void Fill() const {
    sockaddr_un address{};
    socklen_t bytes = sizeof(address);
    ASSERT_EQ(getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &bytes), 0);
    const int sender = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    while (sendto(sender, "x", 1, 0, reinterpret_cast<sockaddr*>(&address), bytes) == 1) {
    }
    EXPECT_EQ(errno, EAGAIN);
    close(sender);
  }
  void Forget() const {
    while (Next(0).has_value()) {
    }
  }

 private:
  const TempDirectory directory_;
  const Kind kind_;
  int fd_;
};

}  // namespace ferry::e2e
