// Peers that cannot be connected: the link is refused with words that say why, and messages go on
// by the daemons.
#include <gmock/gmock.h>
#include <sys/socket.h>

#include <cstring>
#include <string>

#include "common/unique_fd.h"
#include "tests/client/direct/links_fixture.h"
#include "transports/tcp/tcp_address.h"

namespace ferry::client {
namespace {

using testing::HasSubstr;

class LinkConnectTest : public LinksTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(Start(2));
    const LinkAddress real = rank(1).links().AddressFor(0);
    address_ = *transport::ParseTcpAddress({real.bytes, static_cast<size_t>(real.size_bytes)});
    address_.port = 0;
    const transport::SocketAddress any = transport::SocketAddressOf(address_);
    socket_ = NewSocket();
    transport::SocketAddress bound = any;
    ASSERT_EQ(bind(socket_.get(), any.get(), any.bytes), 0);
    ASSERT_EQ(getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&bound.storage), &bound.bytes),
              0);
    address_.port = ntohs(reinterpret_cast<const sockaddr_in*>(&bound.storage)->sin_port);
  }
  UniqueFd NewSocket() const {
    return UniqueFd(socket(address_.family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  }
  void Listen(int backlog) { ASSERT_EQ(listen(socket_.get(), backlog), 0); }
  // Takes the next connection; not valid: there is none.
  UniqueFd Accept() { return UniqueFd(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC)); }
  std::string Text() const { return transport::TcpAddressText(address_); }

  // Rank 0 believes that rank 1 is there, and calls.
  void Call() {
    LinkAddress address;
    address.size_bytes = sizeof(address_);
    std::memcpy(address.bytes, &address_, sizeof(address_));
    const Status status = rank(0).Connect(1, RouteTo(address, 5, 6));
    ASSERT_TRUE(status.ok()) << status.ToString();
    EXPECT_EQ(Connection(), ErrorCode::kWouldBlock);
  }
  ErrorCode Connection() { return rank(0).ConnectionTo(1, /*calls=*/true, &why_); }
  // It is called no more, nothing has noticed, and another time it may come about.
  void ExpectRefused() {
    ASSERT_TRUE(Meanwhile([&] { return Connection() != ErrorCode::kWouldBlock; }));
    EXPECT_EQ(Connection(), ErrorCode::kLinkDown);
    EXPECT_THAT(why_, HasSubstr(Text()));
    ExpectNoHarm();
  }
  void ExpectNoHarm() {
    for (int i = 0; i < 20; ++i) {
      Carry(0, 1);
      Carry(1, 0);
    }
    EXPECT_EQ(rank(0).engine().paths().PathTo(1), shm::PeerPath::kDaemon);
    rank(0).End(1, ErrorCode::kLinkDown);
    EXPECT_TRUE(rank(0).losses().empty());
    EXPECT_EQ(rank(0).Statistic(shm::Statistic::kLinkMessagesSent), 0U);
    ASSERT_NO_FATAL_FAILURE(Connect(0, 1));
    ASSERT_NO_FATAL_FAILURE(Use(0, 1));
    ASSERT_NO_FATAL_FAILURE(Use(1, 0));
    Carry(0, 1);
    Carry(1, 0);
    ExpectIdle(0, 1);
  }

  transport::TcpAddress address_;
  UniqueFd socket_;
  std::string why_;
};

TEST_F(LinkConnectTest, NobodyListens) {
  Call();
  ExpectRefused();
  EXPECT_THAT(why_, HasSubstr("refused"));
}

TEST_F(LinkConnectTest, AConnectionThatIsSwallowedComesToNothing) {
  Listen(0);
  std::vector<UniqueFd> full;
  for (int i = 0; i < 4; ++i) {  // so many that the kernel drops all others
    const transport::SocketAddress to = transport::SocketAddressOf(address_);
    full.push_back(NewSocket());
    (void)connect(full.back().get(), to.get(), to.bytes);
  }
  Call();
  for (int i = 0; i < 100; ++i) {
    Carry(0, 1);
  }
  EXPECT_EQ(Connection(), ErrorCode::kWouldBlock);
  EXPECT_EQ(why_, Text() + " does not answer");
  ExpectNoHarm();
}

TEST_F(LinkConnectTest, AGreetingThatIsNotAnsweredComesToNothing) {
  Listen(8);
  Call();
  UniqueFd peer;
  ASSERT_TRUE(Meanwhile([&] {
    peer = peer.valid() ? std::move(peer) : Accept();
    return peer.valid() && Connection() == ErrorCode::kWouldBlock &&
           why_ == Text() + " takes the connection, but does not answer the greeting";
  }));
  ExpectNoHarm();
}

TEST_F(LinkConnectTest, WhoClosesAtOnceIsNotCalledAgain) {
  Listen(8);
  Call();
  ASSERT_TRUE(Meanwhile([&] { return Accept().valid(); }));
  ExpectRefused();
  EXPECT_FALSE(Accept().valid());
}

TEST_F(LinkConnectTest, WhoDoesNotSpeakTheProtocolIsNotCalledAgain) {
  Listen(8);
  Call();
  UniqueFd peer;
  ASSERT_TRUE(Meanwhile([&] { return (peer = Accept()).valid(); }));
  const std::string words = "220 mail.example ESMTP and so on, and on";
  ASSERT_EQ(send(peer.get(), words.data(), words.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(words.size()));
  ExpectRefused();
  EXPECT_THAT(why_, HasSubstr("does not speak ferry-tcp"));
}

TEST_F(LinkConnectTest, WhoWaitsToBeCalledDoesNotCall) {
  Listen(8);
  LinkAddress address;
  address.size_bytes = sizeof(address_);
  std::memcpy(address.bytes, &address_, sizeof(address_));
  ASSERT_TRUE(rank(0).Connect(1, RouteTo(address, 5, 6)).ok());
  for (int i = 0; i < 100; ++i) {
    ProgressAll();
    EXPECT_EQ(rank(0).ConnectionTo(1, /*calls=*/false, &why_), ErrorCode::kWouldBlock);
  }
  EXPECT_EQ(why_, Text() + " has not connected");
  EXPECT_FALSE(Accept().valid());
  ExpectNoHarm();
}

}  // namespace
}  // namespace ferry::client
