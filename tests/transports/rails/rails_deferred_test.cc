// Deferred work of two NICs that are one transport, over two endpoints of `sockets`.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include "common/clock.h"
#include "tests/transports/ofi/deferred_pair.h"
#include "transports/api/deferred_work.h"
#include "transports/ofi/ofi_transport.h"
#include "transports/rails/rails_transport.h"

namespace ferry::transport {
namespace {

constexpr uint64_t kBytes = 256 << 10;

struct Node {
  Node() : data(kBytes) {
    TransportOptions options;
    options.provider = "sockets";
    options.rails = {"127.0.0.2"};
    options.stripe_bytes = kBytes / 8;
    auto created = CreateRailsTransport(options, CreateOfiTransport);
    EXPECT_TRUE(created.ok()) << created.status().ToString();
    transport = std::move(*created);
    region = *transport->RegisterMemory(data.data(), data.size(),
                                        Access::kRemoteRead | Access::kRemoteWrite);
  }
  Transport& nic(size_t index) { return *transport->Rails()[index]; }
  DeferredWork& work(size_t index) { return *nic(index).deferred_work(); }
  int Poll() {
    const uint64_t now_ns = MonotonicNs();
    return transport->Poll(recorder, 64, now_ns) + work(0).Poll(recorder, now_ns) +
           work(1).Poll(recorder, now_ns);
  }

  std::vector<std::byte> data;
  std::unique_ptr<Transport> transport;
  MemoryRegion region;
  DeferredRecorder recorder;
};

class RailsDeferredTest : public testing::Test {
 protected:
  RailsDeferredTest() {
    b_of_a_ = *a_.transport->AddPeer(b_.transport->Address());
    EXPECT_TRUE(b_.transport->AddPeer(a_.transport->Address()).ok());
  }
  [[nodiscard]] bool PollUntil(const std::function<bool()>& done) {
    return PollBothUntil(a_, b_, done);
  }

  Node a_;
  Node b_;
  PeerId b_of_a_{};
};

TEST_F(RailsDeferredTest, EachNicHasItsOwn) {
  EXPECT_EQ(a_.transport->deferred_work(), nullptr);
  ASSERT_EQ(a_.transport->Rails().size(), 2U);
  ASSERT_NE(a_.nic(0).deferred_work(), nullptr);
  ASSERT_NE(a_.nic(1).deferred_work(), nullptr);
  EXPECT_NE(a_.nic(0).deferred_work(), a_.nic(1).deferred_work());
}

// The trigger and both counters are the second NIC's, here and there.
TEST_F(RailsDeferredTest, AWriteGoesByTheNicThatItIsArmedOn) {
  ASSERT_TRUE(PollUntil([&] { return a_.transport->Reaches(b_of_a_, 1) == ErrorCode::kOk; }));
  const NicCounter arrived = *b_.work(1).OpenCounter();
  std::vector<std::byte> window(kBytes);
  auto prepared = b_.work(1).PrepareTarget(window.data(), window.size(), arrived);
  ASSERT_TRUE(prepared.ok()) << prepared.status().ToString();
  const MemoryRegion target = *b_.nic(1).AdoptMemory(std::move(*prepared));
  const MemoryRegion source =
      *a_.nic(1).RegisterMemory(a_.data.data(), a_.data.size(), Access::kLocal);
  const NicCounter trigger = *a_.work(1).OpenCounter();
  const NicCounter sent = *a_.work(1).OpenCounter();
  std::memset(a_.data.data(), 0x5a, a_.data.size());
  ASSERT_EQ(a_.work(1).ArmWrite({.trigger = {trigger, 1},
                                 .done = sent,
                                 .peer = a_.transport->PeerOn(b_of_a_, 1),
                                 .local = a_.data.data(),
                                 .region = source.handle,
                                 .bytes = kBytes,
                                 .remote_address = target.remote_base,
                                 .key = target.key,
                                 .context = kDirectContext | 3}),
            ErrorCode::kOk);
  EXPECT_EQ(a_.work(1).in_use(), 1U);
  EXPECT_EQ(a_.work(0).in_use(), 0U);
  a_.work(1).AddToCounter(trigger, 1);
  ASSERT_TRUE(PollUntil([&] {
    return b_.work(1).ReadCounter(arrived) == 1 && a_.recorder.ends.contains(kDirectContext | 3);
  }));
  EXPECT_EQ(a_.recorder.ends[kDirectContext | 3], std::vector{ErrorCode::kOk});
  EXPECT_EQ(window, a_.data);
  EXPECT_EQ(a_.work(0).statistics().armed, 0U);
  a_.work(1).CloseCounter(trigger);
  b_.work(1).CloseCounter(arrived);
}

// Writes of one NIC itself, and reads of the whole that both NICs carry in stripes.
TEST_F(RailsDeferredTest, WritesOfANicAndStripedReadsDoNotMixUpTheirEnds) {
  ASSERT_TRUE(PollUntil([&] { return a_.transport->Reaches(b_of_a_, 1) == ErrorCode::kOk; }));
  constexpr uint64_t kEach = 12;
  std::vector<std::byte> window(kEach * 8);
  const MemoryRegion target =
      *b_.nic(1).RegisterMemory(window.data(), window.size(), Access::kRemoteWrite);
  std::vector<uint64_t> words(kEach);
  const MemoryRegion source =
      *a_.nic(1).RegisterMemory(words.data(), words.size() * 8, Access::kLocal);
  for (size_t i = 0; i < kBytes; ++i) {
    b_.data[i] = static_cast<std::byte>(i * 7 + i / 253);
  }
  for (uint64_t i = 0; i < kEach; ++i) {
    words[i] = ~i;
    const RmaRequest write{.peer = a_.transport->PeerOn(b_of_a_, 1),
                           .local = &words[i],
                           .region = source.handle,
                           .remote_address = target.remote_base + i * 8,
                           .key = target.key,
                           .bytes = 8,
                           .context = kDirectContext | i,
                           .rail = 0};
    ASSERT_EQ(a_.nic(1).Write(write, Placement::kRemote, MonotonicNs()), ErrorCode::kOk);
    const RmaRequest read{.peer = b_of_a_,
                          .local = a_.data.data(),
                          .region = a_.region.handle,
                          .remote_address = b_.region.remote_base,
                          .key = b_.region.key,
                          .bytes = kBytes,
                          .context = i,
                          .rail = 0};
    ASSERT_EQ(a_.transport->Read(read, MonotonicNs()), ErrorCode::kOk);
  }
  ASSERT_TRUE(PollUntil([&] { return a_.recorder.results.size() == 2 * kEach; }));
  for (const auto& [context, codes] : a_.recorder.results) {
    EXPECT_EQ(codes, std::vector{ErrorCode::kOk}) << context;
  }
  EXPECT_EQ(a_.data, b_.data);
  EXPECT_EQ(std::memcmp(window.data(), words.data(), window.size()), 0);
  EXPECT_EQ(a_.nic(1).statistics().writes, kEach);
  EXPECT_GT(a_.nic(1).statistics().reads, 0U);
  EXPECT_EQ(a_.transport->statistics().writes, 0U);
}

// A peer of the whole that is failed is failed on each NIC.
TEST_F(RailsDeferredTest, NothingIsPostedToANicForAPeerThatWasFailed) {
  RmaRequest write;
  write.peer = a_.transport->PeerOn(b_of_a_, 1);
  write.local = a_.data.data();
  write.region = a_.nic(1).RegisterMemory(a_.data.data(), a_.data.size(), Access::kLocal)->handle;
  write.bytes = 8;
  write.context = kDirectContext;
  a_.transport->FailPeer(b_of_a_, ErrorCode::kLinkDown);
  EXPECT_EQ(a_.nic(1).Write(write, Placement::kLocal, MonotonicNs()), ErrorCode::kLinkDown);
}

}  // namespace
}  // namespace ferry::transport
