// Connections of a TcpTransport that end: what is said of the messages that may be lost with them.
#include <cstring>
#include <memory>

#include "tests/transports/tcp/raw_tcp_peer.h"
#include "tests/transports/tcp/tcp_fixture.h"

namespace ferry::transport {
namespace {

using Losses = std::vector<std::pair<PeerId, bool>>;

class TcpLossTest : public TcpTransportTest {
 protected:
  // One of a_'s peers, named b_of_a_, is the test.
  TcpLossTest() {
    a_ = std::make_unique<TcpNode>();
    peer_ = std::make_unique<RawTcpPeer>(a_->transport->Address());
    const TcpHello hello = peer_->Hello();
    const TcpAddress address = RawTcpPeer::AddressOf(hello);
    b_of_a_ = *a_->transport->AddPeer(std::as_bytes(std::span(&address, 1)));
    EXPECT_TRUE(peer_->Send(hello));
    EXPECT_TRUE(Until([&] {
      peer_->Drain();
      return peer_->received_bytes() == sizeof(TcpWelcome);
    }));
  }
  // So that nothing is under way afterwards.
  void SendMany() {
    constexpr uint64_t kMany = 30;
    const std::vector<std::byte> message(16 << 10);
    for (uint64_t i = 0; i < kMany; i++) {
      ASSERT_EQ(a_->Send(b_of_a_, message, i), ErrorCode::kOk);
    }
    ASSERT_TRUE(Until([&] { return a_->recorder.results.size() == kMany; }));
  }
  Losses AwaitLoss() {
    EXPECT_TRUE(Until([&] { return !a_->recorder.lost.empty(); }));
    for (const auto& [context, code] : a_->recorder.results) {
      EXPECT_EQ(code, ErrorCode::kOk) << context;
    }
    return a_->recorder.lost;
  }

  std::unique_ptr<RawTcpPeer> peer_;
};

TEST_F(TcpLossTest, WhoHasReadAllAndClosesLosesNothing) {
  SendMany();
  ASSERT_TRUE(Until([&] {
    peer_->Drain();
    return peer_->received_bytes() > size_t{30} * (16 << 10);
  }));
  peer_->Close();
  EXPECT_EQ(AwaitLoss(), (Losses{{b_of_a_, true}}));
}

// The kernel had taken all of it.
TEST_F(TcpLossTest, WhatDidNotReachThePeerIsLost) {
  SendMany();
  peer_->Close();
  EXPECT_EQ(AwaitLoss(), (Losses{{b_of_a_, false}}));
}

TEST_F(TcpLossTest, APeerThatEndsInTheMiddleOfAFrameHasLostSomething) {
  ASSERT_TRUE(peer_->Send(FrameHeader{.kind = 1, .head_bytes = 100}));
  peer_->Close();
  EXPECT_EQ(AwaitLoss(), (Losses{{b_of_a_, false}}));
}

TEST_F(TcpLossTest, WhomWeCloseMayHaveLostSomething) {
  ASSERT_TRUE(peer_->Send(FrameHeader{.kind = 77}));
  EXPECT_EQ(AwaitLoss(), (Losses{{b_of_a_, false}}));
}

// Its old connection has ended and its new one has come when a_ looks, for both at once.
TEST_F(TcpLossTest, WhoConnectsAnewIsHeardToTheEnd) {
  constexpr uint64_t kMessages = 200;  // more than a poll's budget
  for (const bool ends_within_a_frame : {false, true}) {
    SCOPED_TRACE(ends_within_a_frame);
    for (uint64_t i = 0; i < kMessages; i++) {
      ASSERT_TRUE(peer_->SendFrame(FrameKind::kMessage, 0, 0, 0, Numbered(i)));
    }
    if (ends_within_a_frame) {
      ASSERT_TRUE(peer_->Send(FrameHeader{.kind = 1, .head_bytes = 100}));
    }
    const TcpHello hello = peer_->Hello();
    peer_->Close();
    peer_ = std::make_unique<RawTcpPeer>(a_->transport->Address());
    ASSERT_TRUE(peer_->Send(hello));
    ASSERT_TRUE(a_->transport->PrepareToSleep());  // so it looks who calls before it reads
    ASSERT_TRUE(Until([&] {
      peer_->Drain();
      return peer_->received_bytes() == sizeof(TcpWelcome);
    }));
    EXPECT_EQ(AwaitLoss(), (Losses{{b_of_a_, !ends_within_a_frame}}));
    ASSERT_EQ(a_->recorder.messages.size(), kMessages);
    EXPECT_EQ(NumberOf(a_->recorder.messages.back()), kMessages - 1);
    a_->recorder.lost.clear();
    a_->recorder.messages.clear();
  }
}

// The sink may forget the peer meanwhile.
TEST_F(TcpLossTest, WhoConnectsAnewMayBeForgottenByItsLastWords) {
  ASSERT_TRUE(peer_->SendFrame(FrameKind::kMessageFrom, 0, 0, 8, std::vector<std::byte>(8)));
  a_->recorder.head = [&](uint64_t) {
    EXPECT_TRUE(a_->transport->RemovePeer(b_of_a_).ok());
    return Landing{};
  };
  RawTcpPeer again(a_->transport->Address());
  ASSERT_TRUE(again.Send(peer_->Hello()));
  ASSERT_TRUE(a_->transport->PrepareToSleep());
  ASSERT_TRUE(Until([&] {
    again.Drain();
    return again.received_bytes() == sizeof(TcpWelcome);
  }));
  EXPECT_EQ(a_->recorder.heads.size(), 1U);
}

}  // namespace
}  // namespace ferry::transport
