// The service manager's end of NOTIFY_SOCKET (sd_notify), as a test plays it.
//
// One thread; what waits says so.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <optional>
#include <string>

#include "tests/e2e/command.h"
#include "tests/support/patience.h"

namespace ferry::e2e {

class NotifySocket {
 public:
  NotifySocket() : fd_(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    Path().copy(address.sun_path, sizeof(address.sun_path) - 1);
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  }
  ~NotifySocket() { close(fd_); }
  NotifySocket(const NotifySocket&) = delete;
  NotifySocket& operator=(const NotifySocket&) = delete;

  std::string Path() const { return directory_ / "notify"; }
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
  void Forget() const {
    while (Next(0).has_value()) {
    }
  }

 private:
  const TempDirectory directory_;
  int fd_;
};

}  // namespace ferry::e2e
