// Two nodes of several rails each, which a test scripts.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/transports/rails/scripted_rail.h"
#include "transports/rails/rails_transport.h"

namespace ferry::transport {

inline constexpr uint64_t kStripe = 1000;
inline constexpr uint64_t kTimeout = 1'000'000;
inline constexpr uint64_t kMemory = 100 * kStripe;

class Results : public CompletionSink {
 public:
  void OnReceive(PeerId sender, std::span<const std::byte> message) override {
    senders.push_back(sender);
    messages.emplace_back(message.begin(), message.end());
  }
  void OnComplete(uint64_t context, ErrorCode code) override {
    EXPECT_TRUE(codes.emplace(context, code).second) << "context " << context << " ended twice";
  }

  std::vector<PeerId> senders;
  std::vector<std::vector<std::byte>> messages;
  std::map<uint64_t, ErrorCode> codes;
};

// A node, its scripted rails, and memory that it has registered.
struct RailNode {
  explicit RailNode(size_t rails, TransportOptions options = {}) : memory(kMemory) {
    options.rails.assign(rails - 1, "127.0.0.2");
    options.stripe_bytes = kStripe;
    options.post_timeout_ns = kTimeout;
    auto created = CreateRailsTransport(
        options, [&](const TransportOptions&) -> StatusOr<std::unique_ptr<Transport>> {
          auto rail = std::make_unique<ScriptedRail>("nic" + std::to_string(nics.size()));
          nics.push_back(rail.get());
          return std::unique_ptr<Transport>(std::move(rail));
        });
    EXPECT_TRUE(created.ok()) << created.status().ToString();
    transport = std::move(*created);
    region = *transport->RegisterMemory(memory.data(), memory.size(),
                                        Access::kRemoteRead | Access::kRemoteWrite);
  }

  void Poll() { transport->Poll(results, 1000, now_ns); }

  std::vector<std::byte> memory;
  std::vector<ScriptedRail*> nics;
  std::unique_ptr<Transport> transport;
  MemoryRegion region;
  Results results;
  uint64_t now_ns = 1;
};

class RailsTransportTest : public testing::Test {
 protected:
  RailsTransportTest() { Connect(2, 2); }

  void Connect(size_t rails_of_a, size_t rails_of_b, const TransportOptions& options = {}) {
    a = std::make_unique<RailNode>(rails_of_a, options);
    b = std::make_unique<RailNode>(rails_of_b, options);
    b_of_a = *a->transport->AddPeer(b->transport->Address());
    a_of_b = *b->transport->AddPeer(a->transport->Address());
  }

  // Messages reach the other side; what came of them is done.
  void Exchange() {
    for (int round = 0; round < 3; round++) {
      Carry(*a, *b, PeerId{1});
      Carry(*b, *a, PeerId{1});
      a->Poll();
      b->Poll();
    }
  }
  static void Carry(RailNode& from, RailNode& to, PeerId sender) {
    for (size_t rail = 0; rail < std::min(from.nics.size(), to.nics.size()); rail++) {
      std::deque<std::pair<PeerId, std::vector<std::byte>>>& sent = from.nics[rail]->sent;
      for (; !sent.empty(); sent.pop_front()) {
        to.nics[rail]->Deliver(sender, sent.front().second);
      }
    }
  }

  RmaRequest Request(uint64_t offset, uint64_t bytes, uint64_t context, uint32_t rail = 0) {
    return {.peer = b_of_a,
            .local = a->memory.data() + offset,
            .region = a->region.handle,
            .remote_address = b->region.remote_base + offset,
            .key = b->region.key,
            .bytes = bytes,
            .context = context,
            .rail = rail};
  }
  void Read(uint64_t bytes, uint64_t context, uint32_t rail = 0) {
    ASSERT_EQ(a->transport->Read(Request(0, bytes, context, rail), a->now_ns), ErrorCode::kOk);
  }
  // The keys are known from here on, and all rails are up.
  void LearnKeys() {
    Read(1, 999);
    Exchange();
    Finish();
    a->results.codes.clear();
  }
  void EndAll() {
    for (ScriptedRail* nic : a->nics) {
      while (!nic->posted.empty()) {
        nic->End(ErrorCode::kOk);
      }
    }
  }
  // All operations end, and are reported.
  void Finish() {
    EndAll();
    a->Poll();
  }
  void PassTime(uint64_t ns) {
    a->now_ns += ns;
    a->Poll();
  }
  std::vector<size_t> Posted() {
    std::vector<size_t> counts;
    for (const ScriptedRail* nic : a->nics) {
      counts.push_back(nic->posted.size());
    }
    return counts;
  }

  std::unique_ptr<RailNode> a;
  std::unique_ptr<RailNode> b;
  PeerId b_of_a{};
  PeerId a_of_b{};
};

}  // namespace ferry::transport
