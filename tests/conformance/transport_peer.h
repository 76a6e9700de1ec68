// The interface between the conformance tests and their second process.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/status.h"
#include "common/unique_fd.h"
#include "transports/api/transport.h"

namespace ferry::transport {

using CreateFunction = std::function<StatusOr<std::unique_ptr<Transport>>(const TransportOptions&)>;

inline constexpr uint64_t kPeerMemoryBytes = 3 << 20;

// The second process's report to the first, on its standard output.
struct PeerHello {
  std::vector<std::byte> address;
  uint64_t key = 0;
  uint64_t remote_base = 0;
};

// The second process, as the first one sees it.
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

// The second process: argv is {program, provider}. Reads the first one's address from standard
// input, writes its PeerHello, then sends every message back, and sleeps in between, until standard
// input ends. Returns the exit code.
int RunTransportPeer(int argc, char** argv, const CreateFunction& create);

}  // namespace ferry::transport
