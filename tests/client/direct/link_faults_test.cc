// Faults that break a direct link, and faults that do not.
#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <random>
#include <set>

#include "common/clock.h"
#include "internode/wire/wire.h"
#include "tests/client/direct/links_fixture.h"
#include "tests/client/direct/peer_process.h"
#include "transports/tcp/tcp_address.h"
#include "transports/tcp/tcp_frame.h"
#include "transports/tcp/tcp_transport.h"

namespace ferry::client {
namespace {

using progress::PacketHeader;
using progress::PacketKind;

constexpr uint64_t kLong = 4 << 20;

class LinkFaultsTest : public LinksTest {
 protected:
  // The daemons part the two, and bring them together again.
  void BeginAnew(uint32_t one, uint32_t other) {
    rank(one).MarkDead(other, ErrorCode::kLinkDown);
    rank(other).MarkDead(one, ErrorCode::kLinkDown);
  }
  void Revive(uint32_t one, uint32_t other) {
    const auto has_applied = [this](uint32_t each) {
      return shm::LoadAcquire(rank(each).view().layout->deaths_applied) ==
                 rank(each).view().inbox.wake()->death_epoch &&
             shm::LaneConsumer(&rank(each).view().layout->to_daemon).Peek() == nullptr;
    };
    ASSERT_TRUE(Meanwhile([&] { return has_applied(one) && has_applied(other); }));
    rank(one).Revive(other);
    rank(other).Revive(one);
  }
};

// ---- Lost connections --------------------------------------------------------------------------

TEST_F(LinkFaultsTest, LostConnectionFailsWhatWasUnderWayAndThePairBeginsAnew) {
  ASSERT_NO_FATAL_FAILURE(StartLinked());
  for (uint64_t life = 2; life < 6; ++life) {
    SCOPED_TRACE(life);
    const std::vector<std::byte> sent = Pattern(kLong, 1);
    std::vector<std::byte> got(kLong);
    Carry(0, 1);  // so there is a connection
    // A message that is fetched, one without a receive, and a receive without a message.
    std::vector<Passage> passages(3, Passage{0, 1});
    passages[0].send = rank(0).SendFrom(1, 7, Private(sent.data()), kLong);
    passages[0].receive = rank(1).Receive(0, 7, Private(got.data()), kLong);
    passages[1].send = rank(0).SendFrom(1, 8, Private(sent.data()), kLong);
    passages[2].receive = rank(1).Receive(0, 9, Private(got.data()), 100);
    for (int turn = 0; turn < 3; ++turn) {
      ProgressAll();
    }
    const size_t losses = rank(0).losses().size();
    // The other end of the socket goes, with nothing said before.
    rank(1).End(0, ErrorCode::kLinkDown);
    rank(1).UnderLease([&] {
      engine::Effects effects;
      rank(1).engine().paths().FailLink(0, effects);
    });
    ASSERT_TRUE(Meanwhile([&] { return rank(0).losses().size() == losses + 1; }));
    EXPECT_EQ(rank(0).losses().back().peer, 1U);
    EXPECT_EQ(rank(0).losses().back().error, ErrorCode::kLinkDown);
    EXPECT_EQ(rank(0).Statistic(shm::Statistic::kLinksOpen), 0U);
    for (const uint32_t each : {0U, 1U}) {
      ASSERT_TRUE(Meanwhile([&] {
        return !rank(each).daemon().told().empty() &&
               rank(each).daemon().told().back().matter == shm::LinkMatter::kBroken;
      }));
    }
    BeginAnew(0, 1);
    EXPECT_EQ(Wait(0, passages[0].send), ErrorCode::kLinkDown);
    EXPECT_EQ(Wait(1, passages[0].receive), ErrorCode::kLinkDown);
    EXPECT_EQ(Wait(0, passages[1].send), ErrorCode::kLinkDown);
    EXPECT_EQ(Wait(1, passages[2].receive), ErrorCode::kLinkDown);
    ASSERT_NO_FATAL_FAILURE(Revive(0, 1));
    Carry(0, 1);  // by the daemons
    Carry(1, 0);
    ASSERT_NO_FATAL_FAILURE(Connect(0, 1, life));
    ASSERT_NO_FATAL_FAILURE(Use(0, 1));
    ASSERT_NO_FATAL_FAILURE(Use(1, 0));
    Carry(0, 1);
    Carry(1, 0);
  }
}

TEST_F(LinkFaultsTest, OtherLinksOfTheRankGoOn) {
  ASSERT_NO_FATAL_FAILURE(Start(3));
  for (const auto& [one, other] : {std::pair{0U, 1U}, std::pair{0U, 2U}}) {
    ASSERT_NO_FATAL_FAILURE(Connect(one, other));
    ASSERT_NO_FATAL_FAILURE(Use(one, other));
    ASSERT_NO_FATAL_FAILURE(Use(other, one));
  }
  const std::vector<std::byte> sent = Pattern(kLong, 2);
  std::vector<std::byte> got(kLong);
  Passage passage{0, 2};
  passage.send = rank(0).SendFrom(2, 7, Private(sent.data()), kLong);
  Carry(0, 1);
  rank(1).CloseLinks();
  ASSERT_TRUE(Meanwhile([&] { return rank(0).losses().size() == 1; }));
  EXPECT_EQ(rank(0).losses().front().peer, 1U);
  passage.receive = rank(2).Receive(0, 7, Private(got.data()), kLong);
  ExpectEnd(passage);
  EXPECT_EQ(got, sent);
  EXPECT_TRUE(rank(2).losses().empty());
  EXPECT_EQ(rank(0).poison(), ErrorCode::kOk);
}

TEST_F(LinkFaultsTest, EndOfAPeerThatDiedFailsWhatIsUnderWayWithThat) {
  ASSERT_NO_FATAL_FAILURE(StartLinked());
  const std::vector<std::byte> sent = Pattern(kLong, 3);
  const uint32_t send = rank(0).SendFrom(1, 7, Private(sent.data()), kLong);
  engine::ProbeResult found;
  ASSERT_TRUE(Meanwhile([&] { return rank(1).Probe(0, 7, &found); }));
  rank(0).MarkDead(1, ErrorCode::kPeerDied);
  rank(0).End(1, ErrorCode::kPeerDied);
  EXPECT_TRUE(rank(0).links().IsIdle(1));
  EXPECT_EQ(Wait(0, send), ErrorCode::kPeerDied);
}

class KilledProcessTest : public testing::TestWithParam<int> {};

// Killed after so many messages, in the middle of others.
TEST_P(KilledProcessTest, PeerIsLostAndNothingElse) {
  LinkedProcess peer([](LinkedRank& rank) {
    std::vector<std::byte> got(kLong);
    const std::vector<std::byte> sent = Pattern(kLong, 4);
    for (;;) {
      const uint32_t receive = rank.Receive(0, 7, Private(got.data()), kLong);
      const uint32_t send = rank.SendFrom(0, 7, Private(sent.data()), kLong);
      if (WaitFor(rank, receive) != ErrorCode::kOk || WaitFor(rank, send) != ErrorCode::kOk) {
        return;
      }
    }
  });
  LinkedRank& rank = peer.rank();
  std::vector<std::byte> got(kLong);
  const std::vector<std::byte> sent = Pattern(kLong, 5);
  uint32_t receive = 0, send = 0;
  for (int message = 0; message < GetParam(); ++message) {
    send = rank.SendFrom(1, 7, Private(sent.data()), kLong);
    receive = rank.Receive(1, 7, Private(got.data()), kLong);
    if (message + 1 < GetParam()) {
      ASSERT_EQ(WaitFor(rank, send), ErrorCode::kOk);
      ASSERT_EQ(WaitFor(rank, receive), ErrorCode::kOk);
    }
  }
  for (int turn = 0; turn < GetParam(); ++turn) {
    (void)rank.Progress();
  }
  peer.Kill();
  ASSERT_TRUE(Eventually([&] {
    (void)rank.Progress();
    return !rank.losses().empty();
  }));
  EXPECT_EQ(rank.losses().front().peer, 1U);
  rank.MarkDead(1, ErrorCode::kPeerDied);  // the daemon's word for it
  // Messages that had come before the end count.
  for (const uint32_t request : {send, receive}) {
    const ErrorCode error = WaitFor(rank, request);
    EXPECT_TRUE(error == ErrorCode::kOk || error == ErrorCode::kPeerDied ||
                error == ErrorCode::kLinkDown)
        << static_cast<int>(error);
  }
  EXPECT_EQ(rank.losses().size(), 1U);
  EXPECT_EQ(rank.poison(), ErrorCode::kOk);
  EXPECT_TRUE(rank.violations().empty());
}

INSTANTIATE_TEST_SUITE_P(AtMoments, KilledProcessTest, testing::Values(1, 2, 3, 5, 8, 13));

// ---- Garbage -----------------------------------------------------------------------------------

transport::TcpAddress AddressOf(const LinkAddress& address) {
  const auto parsed =
      transport::ParseTcpAddress({address.bytes, static_cast<size_t>(address.size_bytes)});
  EXPECT_TRUE(parsed);
  return *parsed;
}

UniqueFd Call(const LinkAddress& address) {
  const transport::SocketAddress to = transport::SocketAddressOf(AddressOf(address));
  UniqueFd fd(socket(to.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(connect(fd.get(), to.get(), to.bytes), 0);
  return fd;
}

std::vector<std::byte> Noise(std::mt19937& random, size_t bytes) {
  std::vector<std::byte> noise(bytes);
  for (std::byte& byte : noise) {
    byte = static_cast<std::byte>(random());
  }
  return noise;
}

TEST_F(LinkFaultsTest, StrangersGetNowhere) {
  ASSERT_NO_FATAL_FAILURE(StartLinked());
  std::mt19937 random(1);
  std::vector<UniqueFd> strangers;
  for (int i = 0; i < 40; ++i) {
    strangers.push_back(Call(rank(0).links().AddressFor(1)));
    transport::TcpHello hello;  // with a wrong secret
    hello.from = AddressOf(rank(1).links().AddressFor(0));
    std::vector<std::byte> said = Noise(random, 1 + random() % 2000);
    if (i % 3 == 0 && said.size() >= sizeof(hello)) {
      std::memcpy(said.data(), &hello, sizeof(hello));
    }
    (void)send(strangers.back().get(), said.data(), said.size(), MSG_NOSIGNAL);
    Carry(0, 1);
    Carry(1, 0);
  }
  ExpectIdle(0, 1);
  EXPECT_EQ(rank(0).Statistic(shm::Statistic::kLinksOpen), 1U);
}

// One has a link of its own to the rank; another knows where it listens.
TEST_F(LinkFaultsTest, TheAddressOfOneLinkGivesNothingOnAnother) {
  ASSERT_NO_FATAL_FAILURE(Start(3));
  ASSERT_NO_FATAL_FAILURE(Connect(0, 2));
  ASSERT_NO_FATAL_FAILURE(Use(0, 2));
  ASSERT_NO_FATAL_FAILURE(Use(2, 0));
  const LinkAddress told = rank(0).links().AddressFor(1);
  const transport::TcpAddress own = AddressOf(told);
  const transport::TcpAddress of_two = AddressOf(rank(0).links().AddressFor(2));
  EXPECT_NE(own.guest, of_two.guest);
  EXPECT_NE(own.calls, of_two.calls);
  EXPECT_NE(own.answers, of_two.answers);
  for (const Secret& secret : {Secret(), own.calls, own.answers}) {
    const UniqueFd fd = Call(told);
    transport::TcpHello hello;
    hello.guest = of_two.guest;
    hello.proof = secret;
    hello.from = AddressOf(rank(2).links().AddressFor(0));
    ASSERT_EQ(send(fd.get(), &hello, sizeof(hello), MSG_NOSIGNAL),
              static_cast<ssize_t>(sizeof(hello)));
    std::byte answer{};
    ssize_t count = -1;
    ASSERT_TRUE(Meanwhile([&] {
      count = recv(fd.get(), &answer, sizeof(answer), MSG_DONTWAIT);
      return count >= 0 || errno == ECONNRESET;
    }));
    EXPECT_LE(count, 0) << "it is answered";
    Carry(0, 2);
    Carry(2, 0);
  }
  EXPECT_TRUE(rank(0).losses().empty());
  EXPECT_TRUE(rank(2).losses().empty());
  ExpectIdle(0, 2);
}

// A peer that has proved itself, and says what no correct rank says.
class Impostor : private transport::CompletionSink {
 public:
  Impostor() {
    transport::TransportOptions options;
    options.source_address = "127.0.0.1";
    auto opened = transport::CreateTcpTransport(options);
    EXPECT_TRUE(opened.ok()) << opened.status().ToString();
    transport_ = std::move(*opened);
  }
  LinkAddress Address() const {
    LinkAddress address;
    address.size_bytes = static_cast<uint32_t>(transport_->Address().size());
    std::memcpy(address.bytes, transport_->Address().data(), address.size_bytes);
    return address;
  }
  void Meet(const LinkAddress& address) {
    auto peer = transport_->AddPeer({address.bytes, static_cast<size_t>(address.size_bytes)});
    ASSERT_TRUE(peer.ok()) << peer.status().ToString();
    peer_ = *peer;
  }
  void Say(std::span<const std::byte> message) {
    (void)transport_->SendMessage(peer_, message, {}, 0, MonotonicNs());
  }
  void Turn() { (void)transport_->Poll(*this, 64, MonotonicNs()); }
  // The first packet that has come: it has the keys.
  const std::vector<std::byte>& heard() const { return heard_; }

 private:
  void OnReceive(transport::PeerId, std::span<const std::byte> message) override {
    if (heard_.empty()) {
      heard_.assign(message.begin(), message.end());
    }
  }
  void OnComplete(uint64_t, ErrorCode) override {}

  std::unique_ptr<transport::Transport> transport_;
  transport::PeerId peer_{};
  std::vector<std::byte> heard_;
};

TEST_F(LinkFaultsTest, WhatAPeerSaysWronglyHarmsNobodyElse) {
  ASSERT_NO_FATAL_FAILURE(Start(3));
  ASSERT_NO_FATAL_FAILURE(Connect(0, 2));
  ASSERT_NO_FATAL_FAILURE(Use(0, 2));
  ASSERT_NO_FATAL_FAILURE(Use(2, 0));
  std::mt19937 random(2);
  for (uint32_t round = 0; round < 30; ++round) {
    SCOPED_TRACE(round);
    Impostor impostor;
    // Both directions have one key, so that the impostor knows his from what he hears.
    const Status status = rank(0).Connect(1, RouteTo(impostor.Address(), 77, 77));
    ASSERT_TRUE(status.ok()) << status.ToString();
    ASSERT_NO_FATAL_FAILURE(impostor.Meet(rank(0).links().AddressFor(1)));
    uint64_t key = 77 ^ (~uint64_t{77} << 7);
    for (uint32_t i = 0; i < 200; ++i) {
      PacketHeader header{};
      header.magic = progress::kPacketMagic;
      header.version = progress::kPacketVersion;
      header.kind = static_cast<uint8_t>(random() % 28);
      header.flags = static_cast<uint8_t>(random());
      header.key = key;
      header.job_key = 1;
      header.source_node = random() % 8 == 0 ? 2 : 1;
      header.source = random() % 8 == 0 ? 2 : 1;
      header.destination = random() % 8 == 0 ? random() % 3 : 0;
      header.context = random() % 2;
      header.tag = static_cast<int32_t>(random() % 3) - 1;
      const std::vector<std::byte> body = Noise(random, 8 * (random() % 12));
      header.size_bytes = random() % 2 == 0 ? body.size() : random() % 100'000;
      header.body_bytes = static_cast<uint32_t>(body.size());
      header.number = random() % 3;
      std::vector<std::byte> message(sizeof(header));
      std::memcpy(message.data(), &header, sizeof(header));
      message.insert(message.end(), body.begin(), body.end());
      impostor.Say(message);
      impostor.Turn();
      ProgressAll();
    }
    Carry(0, 2);
    Carry(2, 0);
    rank(0).End(1, ErrorCode::kLinkDown);
    ProgressAll();
  }
  EXPECT_EQ(rank(0).poison(), ErrorCode::kOk);
  EXPECT_TRUE(rank(0).violations().empty());
  for (const LinkedRank::Loss& loss : rank(0).losses()) {
    EXPECT_EQ(loss.peer, 1U);
  }
}

TEST_F(LinkFaultsTest, WhatIsNoFrameEndsTheLink) {
  ASSERT_NO_FATAL_FAILURE(Start(3));
  ASSERT_NO_FATAL_FAILURE(Connect(0, 2));
  ASSERT_NO_FATAL_FAILURE(Use(0, 2));
  ASSERT_NO_FATAL_FAILURE(Use(2, 0));
  const LinkAddress impostor = rank(1).links().AddressFor(0);
  const Status status = rank(0).Connect(1, RouteTo(impostor, 5, 6));
  ASSERT_TRUE(status.ok()) << status.ToString();
  transport::TcpHello hello;
  const transport::TcpAddress address = AddressOf(rank(0).links().AddressFor(1));
  hello.guest = address.guest;
  hello.proof = address.calls;
  hello.from = AddressOf(impostor);
  const UniqueFd fd = Call(rank(0).links().AddressFor(1));
  ASSERT_EQ(send(fd.get(), &hello, sizeof(hello), MSG_NOSIGNAL),
            static_cast<ssize_t>(sizeof(hello)));
  transport::TcpWelcome welcome;
  ASSERT_TRUE(Meanwhile(
      [&] { return recv(fd.get(), &welcome, sizeof(welcome), MSG_DONTWAIT) == sizeof(welcome); }));
  std::mt19937 random(3);
  const std::vector<std::byte> noise = Noise(random, 4096);
  (void)send(fd.get(), noise.data(), noise.size(), MSG_NOSIGNAL);
  ASSERT_TRUE(Meanwhile([&] { return !rank(0).losses().empty(); }));
  EXPECT_EQ(rank(0).losses().front().peer, 1U);
  EXPECT_EQ(rank(0).losses().size(), 1U);
  EXPECT_EQ(rank(0).poison(), ErrorCode::kOk);
  Carry(0, 2);
  Carry(2, 0);
}

// ---- Forks -------------------------------------------------------------------------------------

std::set<int> OpenDescriptors() {
  std::set<int> open;
  DIR* folder = opendir("/proc/self/fd");
  while (const dirent* entry = readdir(folder)) {
    if (const int fd = std::atoi(entry->d_name); entry->d_name[0] != '.' && fd != dirfd(folder)) {
      open.insert(fd);
    }
  }
  closedir(folder);
  return open;
}

TEST_F(LinkFaultsTest, ChildOfARankLeavesTheLinkAlone) {
  const std::set<int> before = OpenDescriptors();
  ASSERT_NO_FATAL_FAILURE(StartLinked());
  Carry(0, 1);
  for (const int fd : OpenDescriptors()) {
    if (!before.contains(fd)) {
      EXPECT_NE(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0) << fd;
    }
  }
  int gate[2];
  ASSERT_EQ(pipe2(gate, O_CLOEXEC), 0);
  const pid_t child = fork();
  if (child == 0) {
    close(gate[1]);
    char byte;
    _exit(read(gate[0], &byte, 1) == 0 ? 0 : 1);  // until the parent lets go
  }
  close(gate[0]);
  Carry(0, 1);
  Carry(1, 0);
  // The child has the sockets, too; the end of a link is noticed all the same.
  rank(1).End(0, ErrorCode::kLinkDown);
  EXPECT_TRUE(Meanwhile([&] { return rank(0).losses().size() == 1; }));
  close(gate[1]);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace ferry::client
