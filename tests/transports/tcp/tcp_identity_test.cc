// The identity of the peers of a TcpTransport, each of which was told an address of its own: a peer
// that turns bad, or that takes the port of one that has ended, is never taken for another.
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "tests/transports/tcp/raw_tcp_peer.h"
#include "tests/transports/tcp/tcp_fixture.h"

namespace ferry::transport {
namespace {

using Losses = std::vector<std::pair<PeerId, bool>>;

// As the nodes know each other, each by numbers of its own.
constexpr uint64_t kBOfA = 11, kAOfB = 21, kThirdOfA = 12, kThirdOfB = 22;

class TcpIdentityTest : public TcpTransportTest {
 protected:
  TcpIdentityTest() {
    a_ = std::make_unique<TcpNode>();
    b_ = std::make_unique<TcpNode>();
    b_of_a_ = *a_->transport->AddPeer(b_->transport->AddressFor(kAOfB), kBOfA);
    a_of_b_ = *b_->transport->AddPeer(a_->transport->AddressFor(kBOfA), kAOfB);
  }
  static TcpAddress Parsed(const std::vector<std::byte>& address) {
    return *ParseTcpAddress(address);
  }
  // Makes a peer that was told this address, and sends this hello.
  std::unique_ptr<RawTcpPeer> Call(const std::vector<std::byte>& address, const TcpHello& hello) {
    auto peer = std::make_unique<RawTcpPeer>(address);
    EXPECT_TRUE(peer->Send(hello));
    return peer;
  }
  static TcpHello HelloTo(const std::vector<std::byte>& address) {
    return RawTcpPeer(address).Hello();
  }
  bool IsClosedUnheard(RawTcpPeer& peer) {
    return Until([&] {
             peer.Drain();
             return peer.ended();
           }) &&
           peer.received_bytes() == 0;
  }
  std::optional<TcpWelcome> Welcome(RawTcpPeer& peer) {
    EXPECT_TRUE(Until([&] {
      peer.Drain();
      return peer.received_bytes() >= sizeof(TcpWelcome);
    }));
    return peer.Take<TcpWelcome>();
  }
  // Messages of 70 kB pass, all of them.
  void ExpectTraffic(uint64_t from) {
    constexpr uint64_t kMessages = 64;
    for (uint64_t i = 0; i < kMessages; i++) {
      const std::vector<std::byte> data = TcpPattern(70'000, static_cast<uint32_t>(from + i));
      a_->memory = data;
      const auto header = Numbered(from + i);
      const MemoryRegion region =
          *a_->transport->RegisterMemory(a_->memory.data(), a_->memory.size(), Access::kLocal);
      b_->recorder.messages.clear();
      ASSERT_EQ(
          a_->transport->SendMessageFrom(
              b_of_a_, header, {a_->memory.data(), 60'000, region.handle}, from + i, a_->now_ns),
          ErrorCode::kOk);
      ASSERT_TRUE(Until([&] { return Ended(from + i) && b_->recorder.messages.size() == 1; }));
      ASSERT_EQ(a_->ResultOf(from + i), ErrorCode::kOk);
      ASSERT_EQ(b_->recorder.senders.back(), a_of_b_);
      ASSERT_EQ(NumberOf(b_->recorder.messages[0]), from + i);
      ASSERT_EQ(std::memcmp(b_->recorder.messages[0].data() + header.size(), data.data(), 60'000),
                0);
      ASSERT_TRUE(a_->transport->DeregisterMemory(region.handle).ok());
    }
    EXPECT_TRUE(a_->recorder.lost.empty() && b_->recorder.lost.empty());
  }
};

TEST_F(TcpIdentityTest, EachPeerIsToldAnotherAddress) {
  const TcpAddress one = Parsed(b_->transport->AddressFor(kAOfB));
  const TcpAddress other = Parsed(b_->transport->AddressFor(kThirdOfB));
  const TcpAddress of_anybody = Parsed(b_->transport->Address());
  EXPECT_EQ(TcpAddressText(one), TcpAddressText(other));
  for (const TcpAddress& address : {other, of_anybody}) {
    EXPECT_NE(one.calls, address.calls);
    EXPECT_NE(one.answers, address.answers);
    EXPECT_NE(one.calls, address.answers);
  }
  EXPECT_EQ(Parsed(b_->transport->AddressFor(kAOfB)), one);
}

// Which knows all that is public of the two, and has its own way to one.
TEST_F(TcpIdentityTest, APeerCannotComeAsAnotherOne) {
  ASSERT_NO_FATAL_FAILURE(ExpectTraffic(0));
  const std::vector<std::byte> own = b_->transport->AddressFor(kThirdOfB);
  const TcpHello hello = HelloTo(own);
  TcpHello as_other = hello;
  as_other.guest = kAOfB;
  as_other.from = Parsed(a_->transport->Address());
  EXPECT_TRUE(IsClosedUnheard(*Call(own, as_other)));
  as_other.proof = Parsed(own).answers;  // which it has been told, too
  EXPECT_TRUE(IsClosedUnheard(*Call(own, as_other)));
  as_other.proof = Parsed(a_->transport->AddressFor(kThirdOfA)).calls;
  EXPECT_TRUE(IsClosedUnheard(*Call(own, as_other)));
  for (size_t bit = 0; bit < 8 * sizeof(Secret); bit++) {
    TcpHello spoilt = hello;
    spoilt.proof[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
    EXPECT_TRUE(IsClosedUnheard(*Call(own, spoilt))) << bit;
  }
  ASSERT_NO_FATAL_FAILURE(ExpectTraffic(100));
}

// It is welcome, but as itself, though it says that it listens where another one does.
TEST_F(TcpIdentityTest, WhatAPeerSaysOfItselfTakesNoConnectionOfOthers) {
  ASSERT_NO_FATAL_FAILURE(ExpectTraffic(0));
  a_->now_ns += 3'000'000'000;
  b_->now_ns += 3'000'000'000;
  for (const uint64_t guest : {uint64_t{0}, kThirdOfB}) {
    const std::vector<std::byte> own = b_->transport->AddressFor(guest);
    TcpHello hello = HelloTo(own);
    hello.from = Parsed(a_->transport->Address());
    auto liar = Call(own, hello);
    const auto welcome = Welcome(*liar);
    ASSERT_TRUE(welcome);
    EXPECT_EQ(welcome->answer, TcpAnswer::kWelcome);
    const size_t before = b_->recorder.messages.size();
    ASSERT_TRUE(liar->SendFrame(FrameKind::kMessage, 0, 0, 0, Numbered(666)));
    ASSERT_TRUE(Until([&] { return b_->recorder.messages.size() > before; }));
    EXPECT_EQ(b_->recorder.senders.back(), kUnknownPeer);
    ASSERT_NO_FATAL_FAILURE(ExpectTraffic(1000 + 100 * guest));
    liar->Drain();
    EXPECT_EQ(liar->received_bytes(), 0U) << "it hears nothing that is for others";
  }
}

// One has called before it was named here.
TEST_F(TcpIdentityTest, WhoIsNamedLaterIsKnownByItsNumber) {
  TcpNode third;
  const PeerId b_of_third = *third.transport->AddPeer(b_->transport->AddressFor(kThirdOfB), 5);
  TcpNode* const all[] = {b_.get(), &third};
  ASSERT_EQ(third.Send(b_of_third, Numbered(1), 1), ErrorCode::kOk);
  ASSERT_TRUE(PollUntil(all, [&] { return b_->recorder.messages.size() == 1; }));
  EXPECT_EQ(b_->recorder.senders.back(), kUnknownPeer);
  const PeerId third_of_b = *b_->transport->AddPeer(third.transport->AddressFor(5), kThirdOfB);
  ASSERT_EQ(third.Send(b_of_third, Numbered(2), 2), ErrorCode::kOk);
  ASSERT_TRUE(PollUntil(all, [&] { return b_->recorder.messages.size() == 2; }));
  EXPECT_EQ(b_->recorder.senders.back(), third_of_b);
  ASSERT_EQ(b_->Send(third_of_b, Numbered(3), 3), ErrorCode::kOk);
  ASSERT_TRUE(PollUntil(all, [&] { return third.recorder.messages.size() == 1; }));
  EXPECT_EQ(third.recorder.senders.back(), b_of_third);
}

TEST_F(TcpIdentityTest, BothConnectAtOnceAndKeepOneConnection) {
  for (uint64_t round = 0; round < 20; round++) {
    ASSERT_EQ(a_->Send(b_of_a_, Numbered(round), round), ErrorCode::kOk);
    ASSERT_EQ(b_->Send(a_of_b_, Numbered(round), round), ErrorCode::kOk);
    ASSERT_TRUE(Until([&] {
      return a_->recorder.messages.size() == round + 1 && b_->recorder.messages.size() == round + 1;
    }));
    ASSERT_TRUE(a_->transport->RemovePeer(b_of_a_).ok());
    ASSERT_TRUE(b_->transport->RemovePeer(a_of_b_).ok());
    b_of_a_ = *a_->transport->AddPeer(b_->transport->AddressFor(kAOfB), kBOfA);
    a_of_b_ = *b_->transport->AddPeer(a_->transport->AddressFor(kBOfA), kAOfB);
  }
  EXPECT_TRUE(a_->recorder.lost.empty() && b_->recorder.lost.empty());
}

// A process that listens at the port of a node that has ended.
class TcpThief {
 public:
  explicit TcpThief(const TcpAddress& at) : fd_(socket(at.family, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const int yes = 1;
    setsockopt(fd_.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    const SocketAddress address = SocketAddressOf(at);
    EXPECT_EQ(bind(fd_.get(), address.get(), address.bytes), 0);
    EXPECT_EQ(listen(fd_.get(), 8), 0);
  }
  bool Accept() {
    fd_of_caller_.Reset(accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    return fd_of_caller_.valid();
  }
  bool Hear(void* data, size_t bytes) {
    return recv(fd_of_caller_.get(), data, bytes, MSG_WAITALL) == static_cast<ssize_t>(bytes);
  }
  template <typename T>
  bool Say(const T& value) {
    return send(fd_of_caller_.get(), &value, sizeof(value), MSG_NOSIGNAL) == sizeof(value);
  }

 private:
  const UniqueFd fd_;
  UniqueFd fd_of_caller_;
};

TEST_F(TcpIdentityTest, WhoTakesThePortOfAPeerGetsNoMessageAndNothingOfUse) {
  const TcpAddress at = Parsed(b_->transport->Address());
  const std::vector<std::byte> third_of_thief = b_->transport->AddressFor(kThirdOfB);
  b_.reset();
  auto thief = std::make_unique<TcpThief>(at);
  ASSERT_EQ(a_->Send(b_of_a_, Numbered(4711), 1), ErrorCode::kOk);
  ASSERT_TRUE(Until([&] { return ConnectedSockets().size() >= 1; }));
  ASSERT_TRUE(thief->Accept());
  for (int i = 0; i < 20; i++) {
    a_->Poll();
  }
  TcpHello hello;
  ASSERT_TRUE(thief->Hear(&hello, sizeof(hello)));
  // It answers with all secrets that it has seen.
  TcpWelcome welcome;
  welcome.proof = hello.proof;
  ASSERT_TRUE(thief->Say(welcome));
  ASSERT_TRUE(Until([&] { return Ended(1); }));
  EXPECT_EQ(a_->ResultOf(1), ErrorCode::kNodeUnreachable);
  EXPECT_NE(a_->transport->LastError().find("not the peer"), std::string::npos)
      << a_->transport->LastError();
  std::byte more;
  EXPECT_FALSE(thief->Hear(&more, 1)) << "no byte of a message";

  // The proofs that it was shown open no other door: not the caller's, nor that of the next one at
  // the port.
  thief.reset();
  TransportOptions same_port;
  same_port.port = at.port;
  b_ = std::make_unique<TcpNode>(same_port);
  hello.from = at;
  EXPECT_TRUE(IsClosedUnheard(*Call(b_->transport->Address(), hello)));
  for (const uint64_t guest : {hello.guest, kBOfA, uint64_t{0}}) {
    hello.guest = guest;
    EXPECT_TRUE(IsClosedUnheard(*Call(a_->transport->Address(), hello)));
  }
  EXPECT_TRUE(IsClosedUnheard(*Call(b_->transport->Address(), HelloTo(third_of_thief))));
  EXPECT_TRUE(b_->recorder.messages.empty());
}

TEST_F(TcpIdentityTest, WhoWasRestartedIsAnotherOneAtThatPort) {
  ASSERT_NO_FATAL_FAILURE(ExpectTraffic(0));
  TransportOptions same_port;
  same_port.port = Parsed(b_->transport->Address()).port;
  b_.reset();
  b_ = std::make_unique<TcpNode>(same_port);
  const PeerId old = b_of_a_;
  b_of_a_ = *a_->transport->AddPeer(b_->transport->AddressFor(31), 13);
  a_of_b_ = *b_->transport->AddPeer(a_->transport->AddressFor(13), 31);
  ASSERT_TRUE(Until([&] { return !a_->recorder.lost.empty(); }));
  EXPECT_EQ(a_->recorder.lost, (Losses{{old, true}}));
  a_->recorder.lost.clear();
  ASSERT_NO_FATAL_FAILURE(ExpectTraffic(100));
  ASSERT_EQ(a_->Send(old, Numbered(1), 999), ErrorCode::kOk);
  ASSERT_TRUE(Until([&] { return Ended(999); }));
  EXPECT_EQ(a_->ResultOf(999), ErrorCode::kNodeUnreachable);
  ASSERT_NO_FATAL_FAILURE(ExpectTraffic(200));
}

// Its end of the connection is gone, and ours does not know.
TEST_F(TcpIdentityTest, WhatAReplacedConnectionHadTakenIsToldAsLost) {
  const std::vector<std::byte> own = a_->transport->AddressFor(kThirdOfA);
  const TcpAddress nobody = Parsed(b_->transport->AddressFor(kThirdOfB));
  const PeerId third = *a_->transport->AddPeer(std::as_bytes(std::span(&nobody, 1)), kThirdOfA);
  auto first = Call(own, HelloTo(own));
  ASSERT_EQ(Welcome(*first)->answer, TcpAnswer::kWelcome);
  for (uint64_t i = 0; i < 64; i++) {
    ASSERT_EQ(a_->Send(third, Numbered(i, 4000), i), ErrorCode::kOk);
  }
  ASSERT_TRUE(Until([&] { return a_->recorder.results.size() == 64; }));
  ASSERT_TRUE(std::ranges::all_of(a_->recorder.results,
                                  [](auto& result) { return result.second == ErrorCode::kOk; }));
  auto early = Call(own, HelloTo(own));
  EXPECT_EQ(Welcome(*early)->answer, TcpAnswer::kUseOther);
  EXPECT_TRUE(a_->recorder.lost.empty());
  a_->now_ns += 1'000'000'000;
  auto second = Call(own, HelloTo(own));
  EXPECT_EQ(Welcome(*second)->answer, TcpAnswer::kWelcome);
  ASSERT_TRUE(Until([&] { return !a_->recorder.lost.empty(); }));
  EXPECT_EQ(a_->recorder.lost, (Losses{{third, false}}));
}

TEST_F(TcpIdentityTest, NobodyHasTwoAddresses) {
  ASSERT_NO_FATAL_FAILURE(ExpectTraffic(0));
  EXPECT_EQ(a_->transport->AddPeer(b_->transport->AddressFor(kThirdOfB), kBOfA).status().code(),
            ErrorCode::kInvalidArgument);
  EXPECT_TRUE(a_->transport->AddPeer(b_->transport->AddressFor(kAOfB), kBOfA).ok());
  ASSERT_NO_FATAL_FAILURE(ExpectTraffic(100));
}

}  // namespace
}  // namespace ferry::transport
