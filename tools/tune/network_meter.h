// Measures reads over the network, from memory that another endpoint serves: in this process (over
// loopback) or on another node.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "common/status.h"
#include "tools/tune/curve.h"
#include "transports/api/transport.h"

namespace ferry::tools {

// The facts that a reader needs.
struct ServedMemory {
  std::vector<std::byte> address;  // of the endpoint
  uint64_t key = 0;
  uint64_t remote_base = 0;
  uint64_t size_bytes = 0;
  bool operator==(const ServedMemory&) const = default;
};

// Encode the facts as one word, to be carried to the other node by hand; and back. kInvalidArgument
// for any other word.
std::string WordFor(const ServedMemory& memory);
StatusOr<ServedMemory> ServedMemoryFrom(std::string_view word);

// Serves memory on a thread of its own until its end. One owner.
class MemoryServer {
 public:
  // Errors: those of opening the transport and registering the memory (transports/api/transport.h).
  static StatusOr<std::unique_ptr<MemoryServer>> Start(const transport::TransportOptions& options,
                                                       uint64_t size_bytes);
  ~MemoryServer();
  MemoryServer(const MemoryServer&) = delete;
  MemoryServer& operator=(const MemoryServer&) = delete;

  const ServedMemory& memory() const { return memory_; }

 private:
  MemoryServer(std::unique_ptr<transport::Transport> transport, uint64_t size_bytes)
      : bytes_(size_bytes), transport_(std::move(transport)) {}
  void Serve();

  std::vector<std::byte> bytes_;
  std::unique_ptr<transport::Transport> transport_;  // ends before `bytes_`
  ServedMemory memory_;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

struct NetworkCurve {
  Curve reads;
  transport::Description description;  // of the reading end
};

// Measures reads. Blocks; one thread. Medians of `repetitions` (1 or more) reads of each size,
// which must not be longer than the served memory (kInvalidArgument). Other errors: those of
// opening the transport, and why a read failed.
StatusOr<NetworkCurve> MeasureNetwork(const transport::TransportOptions& options,
                                      const ServedMemory& memory, std::span<const uint64_t> sizes,
                                      uint32_t repetitions);

}  // namespace ferry::tools
