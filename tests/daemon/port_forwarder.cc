#include "tests/daemon/port_forwarder.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <utility>
#include <vector>

#include "common/net_address.h"

namespace ferry::daemon {
namespace {

// Forwards what can be read at `from` now. False: that end has closed.
bool Pass(int from, int to) {
  char bytes[1 << 16];
  const ssize_t count = read(from, bytes, sizeof(bytes));
  for (ssize_t sent = 0; sent < count;) {
    const ssize_t now = send(to, bytes + sent, static_cast<size_t>(count - sent), MSG_NOSIGNAL);
    if (now <= 0) {
      return false;
    }
    sent += now;
  }
  return count > 0;
}

}  // namespace

PortForwarder::PortForwarder(const std::string& target, int delay_ms)
    : listener_(std::move(*ListenTcp({"127.0.0.1", 0}, "port"))),
      stop_(eventfd(0, EFD_CLOEXEC)),
      target_port_(std::stoi(target.substr(target.rfind(':') + 1))),
      delay_ms_(delay_ms) {
  port_ = PortOf(listener_.get());
  thread_ = std::thread([this] { Loop(); });
}

PortForwarder::~PortForwarder() {
  EXPECT_EQ(eventfd_write(stop_.get(), 1), 0);
  thread_.join();
}

void PortForwarder::Loop() {
  std::vector<std::pair<UniqueFd, UniqueFd>> connections;
  while (true) {
    std::vector<pollfd> waiting = {{stop_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
    for (const auto& [near, far] : connections) {
      waiting.push_back({near.get(), POLLIN, 0});
      waiting.push_back({far.get(), POLLIN, 0});
    }
    poll(waiting.data(), waiting.size(), -1);
    if (waiting[0].revents != 0) {
      return;
    }
    for (size_t i = connections.size(); i-- > 0;) {
      const int near = connections[i].first.get();
      const int far = connections[i].second.get();
      if ((waiting[2 + 2 * i].revents != 0 && !Pass(near, far)) ||
          (waiting[3 + 2 * i].revents != 0 && !Pass(far, near))) {
        connections.erase(connections.begin() + static_cast<ptrdiff_t>(i));
      }
    }
    if (waiting[1].revents != 0) {
      poll(waiting.data(), 1, delay_ms_);  // or until it is to stop
      UniqueFd near(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      UniqueFd far(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      sockaddr_in target{};
      target.sin_family = AF_INET;
      target.sin_port = htons(static_cast<uint16_t>(target_port_));
      target.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      if (near.valid() &&
          connect(far.get(), reinterpret_cast<const sockaddr*>(&target), sizeof(target)) == 0) {
        connections.emplace_back(std::move(near), std::move(far));
      }
    }
  }
}

}  // namespace ferry::daemon
