// The interface between the conformance tests and their second process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "common/status.h"
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

// The second process: argv is {program, provider}. Reads the first one's address from standard
// input, writes its PeerHello, then sends every message back, and sleeps in between, until standard
// input ends. Returns the exit code.
int RunTransportPeer(int argc, char** argv, const CreateFunction& create);

}  // namespace ferry::transport
