// Starts and kills the second process of the transport conformance tests.
#pragma once

#include <sys/types.h>

#include <memory>
#include <span>
#include <string>

#include "common/unique_fd.h"
#include "tests/conformance/transport_peer.h"

namespace ferry::transport {

class PeerProcess {
 public:
  // Returns when the process is ready; null if it is not.
  static std::unique_ptr<PeerProcess> Start(const std::string& program, const std::string& provider,
                                            std::span<const std::byte> our_address);
  ~PeerProcess();

  const PeerHello& hello() const { return hello_; }
  // SIGKILL: returns once it is dead; SIGSTOP: once it has stopped.
  void Kill(int signal);

 private:
  PeerProcess() = default;
  bool ReadHello();

  pid_t pid_ = -1;
  UniqueFd input_;
  UniqueFd output_;
  PeerHello hello_;
};

}  // namespace ferry::transport
