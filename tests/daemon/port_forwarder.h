// A port that leads to another one, both on loopback: bytes sent to either end of a connection come
// out at the other. For tests of identities.
#pragma once

#include <string>
#include <thread>

#include "common/unique_fd.h"

namespace ferry::daemon {

class PortForwarder {
 public:
  // `target`: 127.0.0.1:port.
  explicit PortForwarder(const std::string& target);
  // Closes the port and every connection.
  ~PortForwarder();
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

 private:
  void Loop();

  UniqueFd listener_;
  UniqueFd stop_;
  int target_port_ = 0;
  int port_ = 0;
  std::thread thread_;
};

}  // namespace ferry::daemon
