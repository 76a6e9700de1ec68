// A port that leads to another one, both on loopback: bytes sent to either end of a connection come
// out at the other. For tests of identities.
#pragma once

#include <string>
#include <thread>

#include "common/unique_fd.h"

namespace ferry::daemon {

class PortForwarder {
 public:
  // `target`: 127.0.0.1:port. So long nothing of a new connection goes on, as if the process there
  // got no core.
  explicit PortForwarder(const std::string& target, int delay_ms = 0);
  // Closes the port and every connection.
  ~PortForwarder();
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

 private:
  void Loop();

  UniqueFd listener_;
  UniqueFd stop_;
  int target_port_ = 0;
  const int delay_ms_;
  int port_ = 0;
  std::thread thread_;
};

}  // namespace ferry::daemon
