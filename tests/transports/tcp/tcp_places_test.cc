// Tests of transports/tcp: where data comes from and goes to, and what if there is no memory.
#include <algorithm>
#include <cstring>

#include "tests/transports/tcp/tcp_fixture.h"

namespace ferry::transport {
namespace {

constexpr size_t kPage = 4096;

// ---- Memory that is not there

TEST_F(TcpTransportTest, ASourceThatIsUnmappedCostsItsMessageOnly) {
  Connect();
  Greet();
  const HalfMapped nothing(0, 16 * kPage);
  const MemoryRegion region =
      *a_->transport->RegisterMemory(nothing.base, nothing.bytes, Access::kRemoteRead);
  EXPECT_EQ(a_->SendFrom(b_of_a_, nothing.base, 60'000, region.handle, 1),
            ErrorCode::kInvalidBuffer);
  a_->Poll();
  EXPECT_FALSE(Ended(1));
  // A source that is unmapped, behind another message.
  ASSERT_EQ(a_->Send(b_of_a_, Numbered(2), 2), ErrorCode::kOk);
  ASSERT_EQ(a_->Send(b_of_a_, Numbered(3), 3), ErrorCode::kOk);
  ASSERT_EQ(a_->SendFrom(b_of_a_, nothing.base, 60'000, region.handle, 4), ErrorCode::kOk);
  ASSERT_EQ(a_->Send(b_of_a_, Numbered(5), 5), ErrorCode::kOk);
  ASSERT_TRUE(Until([&] { return b_->recorder.messages.size() == 3 && Ended(4) && Ended(5); }));
  EXPECT_EQ(a_->ResultOf(4), ErrorCode::kInvalidBuffer);
  EXPECT_EQ(NumberOf(b_->recorder.messages[2]), 5U);
  EXPECT_TRUE(a_->transport->DeregisterMemory(region.handle).ok());
}

TEST_F(TcpTransportTest, ASourceThatEndsInTheMiddleCostsItsMessageOnly) {
  TransportOptions options;
  options.attachment_bytes = 512 << 10;
  Connect(options);
  Greet();
  const HalfMapped half(64 * kPage, 128 * kPage);
  const MemoryRegion region =
      *a_->transport->RegisterMemory(half.base, half.bytes, Access::kRemoteRead);
  for (const bool lands : {false, true}) {
    std::vector<std::byte> place(half.bytes);
    if (lands) {
      b_->recorder.head = [&](uint64_t bytes) { return Landing{place.data(), bytes, 8}; };
    }
    a_->recorder.results.clear();
    b_->recorder.messages.clear();
    ASSERT_EQ(a_->SendFrom(b_of_a_, half.base, half.bytes, region.handle, 1), ErrorCode::kOk);
    ASSERT_EQ(a_->Send(b_of_a_, Numbered(2), 2), ErrorCode::kOk);
    ASSERT_TRUE(Until([&] { return b_->recorder.messages.size() == 1 && Ended(1) && Ended(2); }));
    EXPECT_EQ(a_->ResultOf(1), ErrorCode::kInvalidBuffer);
    EXPECT_EQ(a_->ResultOf(2), ErrorCode::kOk);
  }
  ASSERT_EQ(b_->recorder.landed.size(), 1U);
  EXPECT_EQ(b_->recorder.landed[0], std::pair(uint64_t{8}, ErrorCode::kInvalidBuffer));
}

TEST_F(TcpTransportTest, WhatAPeerCannotReadCostsTheReadOnly) {
  Connect(TransportOptions{}, 128 * kPage);
  Greet();
  for (const size_t mapped : {size_t{0}, 64 * kPage}) {
    const HalfMapped half(mapped, 128 * kPage);
    const MemoryRegion region =
        *b_->transport->RegisterMemory(half.base, half.bytes, Access::kRemoteRead);
    RmaRequest request = Request(half.bytes, 1);
    request.key = region.key;
    a_->recorder.results.clear();
    ASSERT_EQ(a_->transport->Read(request, a_->now_ns), ErrorCode::kOk);
    ASSERT_EQ(a_->transport->Read(Request(1000, 2), a_->now_ns), ErrorCode::kOk);
    ASSERT_TRUE(Until([&] { return Ended(1) && Ended(2); }));
    EXPECT_EQ(a_->ResultOf(1), ErrorCode::kInvalidBuffer);
    EXPECT_EQ(a_->ResultOf(2), ErrorCode::kOk);
    EXPECT_TRUE(b_->transport->DeregisterMemory(region.handle).ok());
  }
}

TEST_F(TcpTransportTest, ADestinationThatIsUnmappedCostsItsOperationOnly) {
  constexpr size_t kBytes = 256 * kPage;
  Connect(TransportOptions{}, kBytes);
  Greet();
  const HalfMapped half(64 * kPage,
                        kBytes);  // the end, which does not come along in the read buffer
  const MemoryRegion of_a = *a_->transport->RegisterMemory(half.base, kBytes, Access::kLocal);
  const MemoryRegion of_b = *b_->transport->RegisterMemory(half.base, kBytes, Access::kRemoteWrite);
  RmaRequest read = Request(kBytes, 1);
  read.local = half.base;
  read.region = of_a.handle;
  RmaRequest write = Request(kBytes, 2);
  write.key = of_b.key;
  ASSERT_EQ(a_->transport->Read(read, a_->now_ns), ErrorCode::kOk);
  ASSERT_EQ(a_->transport->Write(write, Placement::kRemote, a_->now_ns), ErrorCode::kOk);
  ASSERT_EQ(a_->transport->Read(Request(kBytes, 3), a_->now_ns), ErrorCode::kOk);
  ASSERT_TRUE(Until([&] { return Ended(1) && Ended(2) && Ended(3); }));
  EXPECT_EQ(a_->ResultOf(1), ErrorCode::kInvalidBuffer);
  EXPECT_EQ(a_->ResultOf(2), ErrorCode::kInvalidBuffer);
  EXPECT_EQ(a_->ResultOf(3), ErrorCode::kOk);
}

// ---- Landing

class TcpLandingTest : public TcpTransportTest {
 protected:
  TcpLandingTest() {
    TransportOptions options;
    options.attachment_bytes = kMost;
    Connect(options, kMost);
    Greet();
    std::ranges::copy(TcpPattern(kMost, 5), a_->memory.begin());
  }
  void Attach(uint64_t bytes, uint64_t context) {
    ASSERT_EQ(a_->SendFrom(b_of_a_, a_->memory.data(), bytes, a_->region.handle, context),
              ErrorCode::kOk);
  }

  static constexpr uint64_t kMost = 512 << 10;
  std::vector<std::byte> place_ = std::vector<std::byte>(kMost);
};

TEST_F(TcpLandingTest, AttachmentsGoWhereTheSinkSays) {
  uint64_t context = 0;
  b_->recorder.head = [&](uint64_t bytes) { return Landing{place_.data(), bytes, ++context}; };
  uint64_t sent = 0;
  for (const uint64_t bytes :
       {uint64_t{1}, uint64_t{900}, uint64_t{20'000}, uint64_t{65'000}, kMost}) {
    std::ranges::fill(place_, std::byte{0});
    Attach(bytes, ++sent);
    ASSERT_TRUE(Until([&] { return b_->recorder.landed.size() == sent && Ended(sent); }));
    EXPECT_EQ(b_->recorder.landed.back(), std::pair(sent, ErrorCode::kOk));
    EXPECT_EQ(b_->recorder.heads.back(), std::tuple(a_of_b_, 40, bytes));
    EXPECT_EQ(std::memcmp(place_.data(), a_->memory.data(), bytes), 0);
    EXPECT_TRUE(bytes == kMost || place_[bytes] == std::byte{0});
  }
  EXPECT_TRUE(b_->recorder.messages.empty());
  EXPECT_EQ(b_->transport->statistics().messages_received, 1 + sent);
}

TEST_F(TcpLandingTest, WhatDoesNotFitIsDropped) {
  constexpr uint64_t kFits = 100'000;
  b_->recorder.head = [&](uint64_t) { return Landing{place_.data(), kFits, 1}; };
  Attach(kMost, 1);
  ASSERT_EQ(a_->Send(b_of_a_, Numbered(2), 2), ErrorCode::kOk);
  ASSERT_TRUE(Until([&] { return b_->recorder.messages.size() == 1; }));
  EXPECT_EQ(b_->recorder.landed.size(), 1U);
  EXPECT_EQ(std::memcmp(place_.data(), a_->memory.data(), kFits), 0);
  EXPECT_EQ(place_[kFits], std::byte{0});
}

TEST_F(TcpLandingTest, WhatLandsNowhereComesWhole) {
  for (const uint64_t bytes : {uint64_t{30}, uint64_t{30'000}, kMost}) {
    b_->recorder.messages.clear();
    Attach(bytes, bytes);
    ASSERT_TRUE(Until([&] { return b_->recorder.messages.size() == 1; }));
    ASSERT_EQ(b_->recorder.messages[0].size(), 40 + bytes);
    EXPECT_EQ(std::memcmp(b_->recorder.messages[0].data() + 40, a_->memory.data(), bytes), 0);
  }
  EXPECT_EQ(b_->recorder.heads.size(), 3U);
}

// Polls only b_ from here on, so that a_ sends no more than it has.
class TcpHalfLandedTest : public TcpLandingTest {
 protected:
  TcpHalfLandedTest() {
    for (const int fd : ConnectedSockets()) {
      const int little = 4096;
      EXPECT_EQ(setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &little, sizeof(little)), 0);
    }
    b_->recorder.head = [&](uint64_t bytes) { return Landing{place_.data(), bytes, 6}; };
    Attach(kMost, 1);
    const uint64_t give_up_ns = MonotonicNs() + 30'000'000'000;
    while (b_->recorder.heads.empty() && MonotonicNs() < give_up_ns) {
      b_->Poll();
    }
    EXPECT_EQ(b_->recorder.heads.size(), 1U);
    EXPECT_TRUE(b_->recorder.landed.empty());
  }
};

TEST_F(TcpHalfLandedTest, ALandingEndsWithItsConnection) {
  a_.reset();
  TcpNode* const alone[] = {b_.get()};
  ASSERT_TRUE(PollUntil(alone, [&] { return !b_->recorder.landed.empty(); }));
  EXPECT_EQ(b_->recorder.landed[0], std::pair(uint64_t{6}, ErrorCode::kNodeUnreachable));
}

TEST_F(TcpHalfLandedTest, ALandingEndsSilentlyWithItsPeer) {
  const PeerId second = *b_->transport->AddPeer(a_->transport->Address());
  b_->transport->FailPeer(a_of_b_, ErrorCode::kPeerDied);
  const std::vector<std::byte> before = place_;
  ASSERT_TRUE(Until([&] { return Ended(1); }));  // goes on, for the other name
  ASSERT_EQ(b_->Send(second, Numbered(1), 1), ErrorCode::kOk);
  ASSERT_TRUE(Until([&] { return a_->recorder.messages.size() == 1; }));
  EXPECT_TRUE(b_->recorder.landed.empty());
  EXPECT_EQ(place_, before);

  b_->transport->FailPeer(second, ErrorCode::kPeerDied);
  b_->Poll();
  EXPECT_TRUE(b_->recorder.landed.empty());
}

TEST_F(TcpLandingTest, ThePeerMayFailAsItsHeadComes) {
  const PeerId second = *b_->transport->AddPeer(a_->transport->Address());
  b_->recorder.head = [&](uint64_t bytes) {
    b_->transport->FailPeer(a_of_b_, ErrorCode::kPeerDied);
    return Landing{place_.data(), bytes, 4};
  };
  Attach(kMost, 1);
  ASSERT_EQ(a_->Send(b_of_a_, Numbered(2), 2), ErrorCode::kOk);
  ASSERT_TRUE(Until([&] { return b_->recorder.messages.size() == 1; }));  // by the other name
  EXPECT_TRUE(b_->recorder.landed.empty());
  EXPECT_EQ(place_, std::vector<std::byte>(kMost));

  b_->recorder.head = [&](uint64_t bytes) {
    EXPECT_TRUE(b_->transport->RemovePeer(second).ok());
    return Landing{place_.data(), bytes, 5};
  };
  Attach(kMost, 3);
  ASSERT_TRUE(Until([&] { return Ended(3) && b_->recorder.heads.size() == 2; }));
  EXPECT_TRUE(b_->recorder.landed.empty());
  EXPECT_EQ(place_, std::vector<std::byte>(kMost));
}

// Another peer than the one that is failed meanwhile.
TEST_F(TcpLandingTest, OthersMayFailAsAHeadComes) {
  const TcpNode third;
  const PeerId other = *b_->transport->AddPeer(third.transport->Address());
  b_->recorder.head = [&](uint64_t bytes) {
    b_->transport->FailPeer(other, ErrorCode::kPeerDied);
    return Landing{place_.data(), bytes, 4};
  };
  Attach(kMost, 1);
  ASSERT_TRUE(Until([&] { return b_->recorder.landed.size() == 1; }));
  EXPECT_EQ(place_, a_->memory);
}

}  // namespace
}  // namespace ferry::transport
