// Two transports of `sockets` in one process, with deferred work, memory and each other's
// addresses, for tests.
#pragma once

#include <gtest/gtest.h>
#include <sched.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "common/clock.h"
#include "shm/atomic.h"
#include "tests/support/patience.h"
#include "transports/api/deferred_work.h"
#include "transports/api/transport.h"
#include "transports/ofi/ofi_transport.h"

namespace ferry {
inline void PrintTo(ErrorCode code, std::ostream* out) { *out << ErrorCodeText(code); }
}  // namespace ferry

namespace ferry::transport {

// Keeps all that both Polls report.
struct DeferredRecorder final : DeferredSink, CompletionSink {
  void OnDeferredEnd(uint64_t context, ErrorCode code) override { ends[context].push_back(code); }
  void OnReceive(PeerId, std::span<const std::byte>) override {}
  void OnComplete(uint64_t context, ErrorCode code) override { results[context].push_back(code); }

  std::map<uint64_t, std::vector<ErrorCode>> ends;
  std::map<uint64_t, std::vector<ErrorCode>> results;
};

// Registered memory, as a target of `counter` if there is one.
struct DeferredMemory {
  std::vector<uint64_t> words;
  MemoryRegion region;

  uint64_t AddressOf(size_t index) const { return region.remote_base + index * sizeof(uint64_t); }
  uint64_t bytes() const { return words.size() * sizeof(uint64_t); }
  uint64_t Load(size_t index) { return shm::LoadAcquire(words[index]); }
};

struct DeferredNode {
  explicit DeferredNode(uint32_t entries = 0) {
    TransportOptions options;
    options.provider = "sockets";
    options.deferred_entries = entries;
    StatusOr<std::unique_ptr<Transport>> created = CreateOfiTransport(options);
    EXPECT_TRUE(created.ok()) << created.status().ToString();
    transport = std::move(*created);
    deferred = transport->deferred_work();
    EXPECT_NE(deferred, nullptr);
    self = *transport->AddPeer(transport->Address());
  }

  NicCounter Open() {
    StatusOr<NicCounter> counter = deferred->OpenCounter();
    EXPECT_TRUE(counter.ok()) << counter.status().ToString();
    return *counter;
  }
  std::unique_ptr<DeferredMemory> Memory(size_t words) {
    auto memory = std::make_unique<DeferredMemory>();
    memory->words.resize(words);
    memory->region = *transport->RegisterMemory(memory->words.data(), memory->bytes(),
                                                Access::kRemoteRead | Access::kRemoteWrite);
    return memory;
  }
  std::unique_ptr<DeferredMemory> Target(size_t words, NicCounter counter) {
    auto memory = std::make_unique<DeferredMemory>();
    memory->words.resize(words);
    auto prepared = deferred->PrepareTarget(memory->words.data(), memory->bytes(), counter);
    EXPECT_TRUE(prepared.ok()) << prepared.status().ToString();
    memory->region = *transport->AdoptMemory(std::move(*prepared));
    return memory;
  }
  int Poll(uint64_t now_ns = MonotonicNs()) {
    return transport->Poll(recorder, 64, now_ns) + deferred->Poll(recorder, now_ns);
  }

  DeferredRecorder recorder;
  std::unique_ptr<Transport> transport;
  DeferredWork* deferred = nullptr;
  PeerId self{};
};

// Polls both until `done`; yields, so as to leave the processor to the provider's own threads.
template <typename Node>
[[nodiscard]] bool PollBothUntil(Node& a, Node& b, const std::function<bool()>& done) {
  const uint64_t give_up_ns = MonotonicNs() + tests::kPatienceNs;
  while (!done()) {
    if (a.Poll() + b.Poll() == 0) {
      sched_yield();
    }
    if (MonotonicNs() > give_up_ns) {
      return false;
    }
  }
  return true;
}

struct DeferredPair {
  explicit DeferredPair(uint32_t entries = 0) : a(entries), b(entries) {
    b_of_a = *a.transport->AddPeer(b.transport->Address());
    a_of_b = *b.transport->AddPeer(a.transport->Address());
  }

  [[nodiscard]] bool PollUntil(const std::function<bool()>& done) {
    return PollBothUntil(a, b, done);
  }

  DeferredNode a;
  DeferredNode b;
  PeerId b_of_a{};
  PeerId a_of_b{};
};

}  // namespace ferry::transport
