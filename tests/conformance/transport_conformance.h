// The behaviour of every transport: the fixture of the tests in transport_conformance_*.cc. A
// transport's test instantiates TransportConformance with one TransportUnderTest per provider.
//
// Deadlines are tested with time that the test passes in; real time only bounds a hang.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/clock.h"
#include "tests/conformance/transport_peer.h"
#include "tests/support/patience.h"
#include "transports/api/transport.h"

namespace ferry {
inline void PrintTo(ErrorCode code, std::ostream* out) { *out << ErrorCodeText(code); }
}  // namespace ferry

namespace ferry::transport {

struct TransportUnderTest {
  std::string name;      // for the test: letters and digits
  std::string provider;  // for TransportOptions
  CreateFunction create;
  std::string peer_program;  // runs RunTransportPeer with `create`
};
inline void PrintTo(const TransportUnderTest& transport, std::ostream* out) {
  *out << transport.provider;
}

// Keeps all that Poll reports.
class Recorder : public CompletionSink {
 public:
  void OnReceive(PeerId sender, std::span<const std::byte> message) override {
    senders.push_back(sender);
    messages.emplace_back(message.begin(), message.end());
  }
  void OnComplete(uint64_t context, ErrorCode code) override { results[context].push_back(code); }

  // The result of an operation that must have ended exactly once.
  ErrorCode ResultOf(uint64_t context) {
    const std::vector<ErrorCode>& codes = results[context];
    EXPECT_EQ(codes.size(), 1U) << "context " << context;
    return codes.empty() ? ErrorCode::kInternal : codes.front();
  }

  std::vector<PeerId> senders;
  std::vector<std::vector<std::byte>> messages;
  std::map<uint64_t, std::vector<ErrorCode>> results;
};

// One transport with its recorder, and memory registered for all access.
struct Node {
  explicit Node(size_t memory_bytes) : memory(memory_bytes) {}

  int Poll(uint64_t now_ns = MonotonicNs()) { return transport->Poll(recorder, 64, now_ns); }

  std::vector<std::byte> memory;
  Recorder recorder;
  MemoryRegion region;
  std::unique_ptr<Transport> transport;
};

inline std::vector<std::byte> Pattern(size_t bytes, uint32_t seed) {
  std::vector<std::byte> data(bytes);
  for (std::byte& value : data) {
    seed = seed * 1664525 + 1013904223;
    value = static_cast<std::byte>(seed >> 24);
  }
  return data;
}

class TransportConformance : public testing::TestWithParam<TransportUnderTest> {
 protected:
  TransportOptions Options() const {
    TransportOptions options;
    options.provider = GetParam().provider;
    return options;
  }

  std::unique_ptr<Node> MakeNode(const TransportOptions& options, size_t memory_bytes = 4096) {
    auto node = std::make_unique<Node>(memory_bytes);
    StatusOr<std::unique_ptr<Transport>> transport = GetParam().create(options);
    EXPECT_TRUE(transport.ok()) << transport.status().ToString();
    node->transport = std::move(*transport);
    StatusOr<MemoryRegion> region = node->transport->RegisterMemory(
        node->memory.data(), node->memory.size(), Access::kRemoteRead | Access::kRemoteWrite);
    EXPECT_TRUE(region.ok()) << region.status().ToString();
    node->region = *region;
    return node;
  }

  // Two nodes of this process that know each other.
  void Connect(const TransportOptions& options, size_t memory_bytes = 4096) {
    a_ = MakeNode(options, memory_bytes);
    b_ = MakeNode(options, memory_bytes);
    b_of_a_ = *a_->transport->AddPeer(b_->transport->Address());
    a_of_b_ = *b_->transport->AddPeer(a_->transport->Address());
  }

  // Polls a_, and b_ if there is one, until `done`; sleeps when nothing happens, so as to leave the
  // processor to a provider's own threads.
  void PollUntil(const std::function<bool()>& done) {
    const uint64_t give_up_ns = MonotonicNs() + tests::kPatienceNs;
    while (!done()) {
      int events = a_->Poll();
      events += b_ != nullptr ? b_->Poll() : 0;
      if (events == 0) {
        SleepOnBoth();
        ASSERT_LT(MonotonicNs(), give_up_ns) << "nothing happens; " << a_->transport->LastError();
      }
    }
  }

  void SleepOnBoth() {
    Transport* const b = b_ != nullptr ? b_->transport.get() : a_->transport.get();
    if (a_->transport->PrepareToSleep() && b->PrepareToSleep()) {
      pollfd descriptors[] = {{a_->transport->WaitFd(), POLLIN, 0}, {b->WaitFd(), POLLIN, 0}};
      poll(descriptors, 2, /*timeout_ms=*/1);
    } else {
      sched_yield();
    }
  }

  void AwaitResults(size_t count) {
    PollUntil([&] { return a_->recorder.results.size() >= count; });
  }

  // A message of eight bytes to the peer.
  ErrorCode Send(PeerId peer, uint64_t context, uint64_t now_ns = MonotonicNs()) {
    return a_->transport->SendMessage(peer, std::vector<std::byte>(8), {}, context, now_ns);
  }
  ErrorCode Write(const RmaRequest& request) {
    return a_->transport->Write(request, Placement::kRemote, MonotonicNs());
  }
  ErrorCode Read(const RmaRequest& request) { return a_->transport->Read(request, MonotonicNs()); }
  // The result of the last of so many operations, whose contexts count from 1.
  ErrorCode AwaitResult(size_t context) {
    AwaitResults(context);
    return a_->recorder.ResultOf(context);
  }

  RmaRequest ToB(size_t local_offset, size_t remote_offset, size_t bytes, uint64_t context) {
    return {.peer = b_of_a_,
            .local = a_->memory.data() + local_offset,
            .region = a_->region.handle,
            .remote_address = b_->region.remote_base + remote_offset,
            .key = b_->region.key,
            .bytes = bytes,
            .context = context};
  }

  // A second process that has answered one message, so that the connection stands.
  std::unique_ptr<PeerProcess> ConnectProcess(const TransportOptions& options,
                                              size_t memory_bytes = 4096) {
    a_ = MakeNode(options, memory_bytes);
    auto process =
        PeerProcess::Start(GetParam().peer_program, options.provider, a_->transport->Address());
    EXPECT_NE(process, nullptr);
    b_of_a_ = *a_->transport->AddPeer(process->hello().address);
    const std::vector<std::byte> ping = Pattern(100, 1);
    EXPECT_EQ(a_->transport->SendMessage(b_of_a_, ping, {}, kPing, MonotonicNs()), ErrorCode::kOk);
    PollUntil(
        [&] { return a_->recorder.messages.size() == 1 && a_->recorder.results.size() == 1; });
    EXPECT_EQ(a_->recorder.messages.at(0), ping);
    a_->recorder.results.clear();
    return process;
  }

  RmaRequest ToProcess(const PeerProcess& process, size_t bytes, uint64_t context) {
    return {.peer = b_of_a_,
            .local = a_->memory.data(),
            .region = a_->region.handle,
            .remote_address = process.hello().remote_base,
            .key = process.hello().key,
            .bytes = bytes,
            .context = context};
  }

  // Polls a_ alone with time running a tenth of the timeout a step, past every deadline.
  void PassDeadlines(uint64_t* now_ns, uint64_t timeout_ns) {
    for (int step = 0; step < 12; step++) {
      *now_ns += timeout_ns / 10;
      a_->Poll(*now_ns);
    }
  }

  // The operation with context 1 ends as one does whose peer is not there.
  void ExpectMissesItsDeadline(uint64_t now_ns, uint64_t timeout_ns) {
    PassDeadlines(&now_ns, timeout_ns);
    const ErrorCode result = a_->recorder.ResultOf(1);
    EXPECT_TRUE(result == ErrorCode::kNodeUnreachable || result == ErrorCode::kTimeout)
        << ErrorCodeText(result);
  }

  static constexpr uint64_t kPing = 1'000'000;

  std::unique_ptr<Node> a_;
  std::unique_ptr<Node> b_;
  PeerId b_of_a_{};
  PeerId a_of_b_{};
};

}  // namespace ferry::transport
