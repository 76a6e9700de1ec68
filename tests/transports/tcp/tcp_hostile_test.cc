// The peers that may connect to a TcpTransport, and its answer to messages that no correct peer
// sends: strangers get nowhere, and a peer that has proved itself spoils its own connection only.
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string>

#include "tests/transports/tcp/raw_tcp_peer.h"
#include "tests/transports/tcp/tcp_fixture.h"
#include "transports/tcp/tcp_acceptor.h"

namespace ferry::transport {
namespace {

class TcpHostileTest : public TcpTransportTest {
 protected:
  TcpHostileTest() { Connect(TransportOptions{}, kMemory); }

  std::unique_ptr<RawTcpPeer> Stranger() {
    return std::make_unique<RawTcpPeer>(b_->transport->Address());
  }
  // One that has proved itself.
  std::unique_ptr<RawTcpPeer> Proved(uint16_t port = 9) {
    auto peer = Stranger();
    EXPECT_TRUE(peer->Send(peer->Hello(port)));
    EXPECT_TRUE(Await([&] { return Drained(*peer).received_bytes() >= sizeof(TcpWelcome); }));
    const auto welcome = peer->Take<TcpWelcome>();
    EXPECT_TRUE(welcome && welcome->answer == TcpAnswer::kWelcome);
    return peer;
  }
  static RawTcpPeer& Drained(RawTcpPeer& peer) {
    peer.Drain();
    return peer;
  }
  // Polls b_ alone.
  bool Await(const std::function<bool()>& done) {
    TcpNode* const alone[] = {b_.get()};
    return PollUntil(alone, done);
  }
  bool IsClosed(RawTcpPeer& peer) {
    return Await([&] { return Drained(peer).ended(); });
  }
  void ExpectOthersAreServed() {
    const size_t before = b_->recorder.messages.size();
    ASSERT_EQ(a_->Send(b_of_a_, std::vector<std::byte>(8), ++sent_), ErrorCode::kOk);
    ASSERT_EQ(a_->transport->Read(Request(kMemory, ++sent_), a_->now_ns), ErrorCode::kOk);
    ASSERT_TRUE(Until([&] { return Ended(sent_) && b_->recorder.messages.size() > before; }));
    EXPECT_EQ(a_->ResultOf(sent_), ErrorCode::kOk);
  }
  bool WantsFrame(RawTcpPeer& peer, FrameKind kind, uint64_t id) {
    if (!Await([&] { return Drained(peer).received_bytes() >= sizeof(FrameHeader); })) {
      return false;
    }
    const auto frame = peer.Take<FrameHeader>();
    return frame->kind == static_cast<uint32_t>(kind) && frame->id == id;
  }

  static constexpr size_t kMemory = 1 << 20;
  uint64_t sent_ = 0;
};

// ---- Strangers

TEST_F(TcpHostileTest, AStrangerWithoutTheSecretIsClosed) {
  ExpectOthersAreServed();
  auto peer = Stranger();
  TcpHello hello = peer->Hello();
  hello.proof[15] ^= std::byte{1};
  ASSERT_TRUE(peer->Send(hello));
  EXPECT_TRUE(IsClosed(*peer));
  EXPECT_EQ(peer->received_bytes(), 0U);

  peer = Stranger();
  const std::string request =
      "GET / HTTP/1.1\r\nHost: a-web-server-is-not-what-listens-here.example\r\n\r\n";
  ASSERT_TRUE(peer->Send(request.data(), request.size()));
  EXPECT_TRUE(IsClosed(*peer));
  ExpectOthersAreServed();
}

TEST_F(TcpHostileTest, APeerOfAnotherVersionIsToldOurs) {
  auto peer = Stranger();
  TcpHello hello = peer->Hello();
  hello.version = 77;
  ASSERT_TRUE(peer->Send(hello));
  EXPECT_TRUE(IsClosed(*peer));
  const auto welcome = peer->Take<TcpWelcome>();
  ASSERT_TRUE(welcome);
  EXPECT_EQ(welcome->version, kTcpVersion);
}

TEST_F(TcpHostileTest, AHelloMayComeInPieces) {
  auto peer = Stranger();
  const TcpHello hello = peer->Hello();
  ASSERT_TRUE(peer->Send(&hello, 10));
  for (int i = 0; i < 50; i++) {
    b_->Poll();
  }
  EXPECT_EQ(Drained(*peer).received_bytes(), 0U);
  ASSERT_TRUE(peer->Send(reinterpret_cast<const std::byte*>(&hello) + 10, sizeof(hello) - 10));
  EXPECT_TRUE(Await([&] { return Drained(*peer).received_bytes() == sizeof(TcpWelcome); }));
}

TEST_F(TcpHostileTest, ASilentStrangerHasFiveSeconds) {
  auto peer = Stranger();
  for (int i = 0; i < 50; i++) {
    b_->Poll();
  }
  EXPECT_EQ(b_->transport->NextPollNs(b_->now_ns), b_->now_ns + 5'000'000'000);
  b_->now_ns += 4'900'000'000;
  for (int i = 0; i < 50; i++) {
    b_->Poll();
  }
  EXPECT_FALSE(Drained(*peer).ended());
  b_->now_ns += 100'000'000;
  EXPECT_TRUE(IsClosed(*peer));
  EXPECT_EQ(b_->transport->NextPollNs(b_->now_ns), UINT64_MAX);
}

TEST_F(TcpHostileTest, ManyStrangersTakeNoPlaceFromPeers) {
  const size_t before = ConnectedSockets().size();
  std::vector<std::unique_ptr<RawTcpPeer>> strangers;
  constexpr int kPlaces = TcpAcceptor::kMostStrangers;
  for (int i = 0; i < kPlaces + 24; i++) {
    strangers.push_back(Stranger());
    ASSERT_TRUE(strangers.back()->Send(uint8_t{1}));
    b_->now_ns += TcpAcceptor::kYoungNs / kPlaces + 1;  // the oldest is no longer young
    for (int poll = 0; poll < 20; poll++) {
      b_->Poll();
    }
  }
  // The youngest live, with both ends here.
  ASSERT_TRUE(Await([&] {
    return std::ranges::count_if(strangers, [](auto& peer) { return Drained(*peer).ended(); }) ==
           24;
  }));
  EXPECT_FALSE(Drained(*strangers.back()).ended());
  EXPECT_EQ(ConnectedSockets().size() - before, 2U * kPlaces);
  b_->now_ns += TcpAcceptor::kYoungNs;
  ExpectOthersAreServed();
}

// The last ones wait in the backlog until a place is free, or a caller is old.
TEST_F(TcpHostileTest, CallersThatComeTogetherKeepTheirPlaces) {
  constexpr uint16_t kPlaces = TcpAcceptor::kMostStrangers;
  std::vector<std::unique_ptr<RawTcpPeer>> callers;
  for (int i = 0; i < 2 * kPlaces; i++) {
    callers.push_back(Stranger());
  }
  for (int i = 0; i < 50; i++) {
    b_->Poll();
  }
  EXPECT_EQ(b_->transport->NextPollNs(b_->now_ns), b_->now_ns + TcpAcceptor::kYoungNs);
  for (uint16_t i = 0; i < 2 * kPlaces; i++) {
    ASSERT_FALSE(Drained(*callers[i]).ended()) << i;
    ASSERT_TRUE(callers[i]->Send(callers[i]->Hello(static_cast<uint16_t>(1000 + i))));
  }
  EXPECT_TRUE(Await([&] {
    return std::ranges::all_of(callers, [](auto& caller) {
      return Drained(*caller).received_bytes() >= sizeof(TcpWelcome);
    });
  }));
}

TEST_F(TcpHostileTest, SilentCallersGiveWayToThoseWhoWait) {
  std::vector<std::unique_ptr<RawTcpPeer>> callers;
  for (size_t i = 0; i < TcpAcceptor::kMostStrangers; i++) {
    callers.push_back(Stranger());
  }
  for (int i = 0; i < 50; i++) {
    b_->Poll();
  }
  auto late = Stranger();
  ASSERT_TRUE(late->Send(late->Hello()));
  for (int i = 0; i < 50; i++) {
    b_->Poll();
  }
  EXPECT_EQ(Drained(*late).received_bytes(), 0U);
  EXPECT_FALSE(Drained(*callers.front()).ended());
  b_->now_ns += TcpAcceptor::kYoungNs;
  EXPECT_TRUE(Await([&] { return Drained(*late).received_bytes() >= sizeof(TcpWelcome); }));
}

// ---- Peers

TEST_F(TcpHostileTest, WhatIsNoFrameClosesItsConnectionOnly) {
  ExpectOthersAreServed();
  const auto frame = [](uint32_t kind, uint32_t head_bytes, uint64_t data_bytes) {
    FrameHeader header;
    header.kind = kind;
    header.head_bytes = head_bytes;
    header.data_bytes = data_bytes;
    return header;
  };
  const FrameHeader no_frames[] = {
      frame(0, 0, 0),
      frame(8, 0, 0),
      frame(1, 10, 10),             // a message has no data
      frame(2, 10, 0),              // an attachment has some
      frame(2, 10, UINT64_MAX),     //
      frame(3, 7, 100),             // a key has 8 bytes
      frame(3, 8, 0),               // to read nothing
      frame(4, 1, 100),             // data has no head
      frame(4, 0, 0),               //
      frame(5, 8, UINT64_MAX - 7),  // more than there is
      frame(5, 9, 10),              //
      frame(6, 0, 1),
      frame(7, 8, 0),  // answers have nothing
  };
  for (const FrameHeader& header : no_frames) {
    auto peer = Proved();
    ASSERT_TRUE(peer->Send(header));
    EXPECT_TRUE(IsClosed(*peer)) << header.kind << " " << header.head_bytes << " "
                                 << header.data_bytes;
  }
  ExpectOthersAreServed();
}

TEST_F(TcpHostileTest, WithoutAKeyNothingIsReadOrWritten) {
  auto peer = Proved();
  const std::vector<std::byte> before = b_->memory;
  const uint64_t key = b_->region.key;
  ASSERT_TRUE(peer->SendKeyFrame(FrameKind::kRead, key + 1, 0, 5, 100));
  EXPECT_TRUE(WantsFrame(*peer, FrameKind::kRefused, 5));
  ASSERT_TRUE(peer->SendKeyFrame(FrameKind::kRead, key, kMemory, 6, 1));
  EXPECT_TRUE(WantsFrame(*peer, FrameKind::kRefused, 6));
  ASSERT_TRUE(peer->SendKeyFrame(FrameKind::kRead, key, UINT64_MAX - 10, 7, 20));
  EXPECT_TRUE(WantsFrame(*peer, FrameKind::kRefused, 7));

  const std::vector<std::byte> data(1000, std::byte{9});
  const auto write = [&](uint64_t with, uint64_t address, uint64_t id) {
    return peer->SendKeyFrame(FrameKind::kWrite, with, address, id, data.size()) &&
           peer->Send(data.data(), data.size()) && peer->Send(FrameTrailer::kGood);
  };
  ASSERT_TRUE(write(key ^ 1, 0, 8));
  EXPECT_TRUE(WantsFrame(*peer, FrameKind::kRefused, 8));
  ASSERT_TRUE(write(key, kMemory - 999, 9));
  EXPECT_TRUE(WantsFrame(*peer, FrameKind::kRefused, 9));
  EXPECT_EQ(b_->memory, before);
  ASSERT_TRUE(write(key, kMemory - 1000, 10));
  EXPECT_TRUE(WantsFrame(*peer, FrameKind::kPlaced, 10));
  EXPECT_EQ(b_->memory.back(), std::byte{9});
}

TEST_F(TcpHostileTest, MemoryThatIsForReadingOnlyIsNotWritten) {
  std::vector<std::byte> memory(100);
  const MemoryRegion readable =
      *b_->transport->RegisterMemory(memory.data(), memory.size(), Access::kRemoteRead);
  const MemoryRegion own =
      *b_->transport->RegisterMemory(memory.data(), memory.size(), Access::kLocal);
  auto peer = Proved();
  ASSERT_TRUE(peer->SendKeyFrame(FrameKind::kWrite, readable.key, 0, 1, 1));
  ASSERT_TRUE(peer->Send(uint8_t{7}));
  ASSERT_TRUE(peer->Send(FrameTrailer::kGood));
  EXPECT_TRUE(WantsFrame(*peer, FrameKind::kRefused, 1));
  ASSERT_TRUE(peer->SendKeyFrame(FrameKind::kRead, own.key, 0, 2, 1));
  EXPECT_TRUE(WantsFrame(*peer, FrameKind::kRefused, 2));
  EXPECT_EQ(memory[0], std::byte{0});
}

TEST_F(TcpHostileTest, AnswersToWhatNobodyAskedAreDropped) {
  auto peer = Proved();
  for (const uint64_t id : {uint64_t{0}, uint64_t{1} << 32, UINT64_MAX}) {
    ASSERT_TRUE(peer->SendFrame(FrameKind::kData, 0, id, 100'000, {}));
    const std::vector<std::byte> data(100'000, std::byte{9});
    ASSERT_TRUE(peer->Send(data.data(), data.size()));
    ASSERT_TRUE(peer->Send(FrameTrailer::kGood));
    ASSERT_TRUE(peer->SendFrame(FrameKind::kPlaced, 0, id, 0, {}));
    ASSERT_TRUE(peer->SendFrame(FrameKind::kRefused, 0, id, 0, {}));
  }
  ASSERT_TRUE(peer->SendFrame(FrameKind::kMessage, 0, 0, 0, std::vector<std::byte>(5)));
  ASSERT_TRUE(Await([&] { return b_->recorder.messages.size() == 1; }));
  EXPECT_EQ(b_->recorder.messages[0].size(), 5U);
}

// Another peer than the one that was asked.
TEST_F(TcpHostileTest, NobodyAnswersForAnother) {
  ExpectOthersAreServed();
  auto peer = Proved();
  const std::vector<std::byte> before = a_->memory;
  ASSERT_EQ(b_->transport->Read({.peer = a_of_b_,
                                 .local = b_->memory.data(),
                                 .region = b_->region.handle,
                                 .remote_address = 0,
                                 .key = a_->region.key,
                                 .bytes = 100,
                                 .context = 1},
                                b_->now_ns),
            ErrorCode::kOk);
  for (uint64_t slot = 0; slot < 4; slot++) {
    for (uint64_t generation = 1; generation < 4; generation++) {
      const uint64_t id = generation << 32 | slot;
      const std::vector<std::byte> data(100, std::byte{9});
      ASSERT_TRUE(peer->SendFrame(FrameKind::kData, 0, id, data.size(), {}));
      ASSERT_TRUE(peer->Send(data.data(), data.size()));
      ASSERT_TRUE(peer->Send(FrameTrailer::kGood));
    }
  }
  ASSERT_TRUE(peer->SendFrame(FrameKind::kMessage, 0, 0, 0, std::vector<std::byte>(5)));
  const size_t messages = b_->recorder.messages.size();
  ASSERT_TRUE(Await([&] { return b_->recorder.messages.size() == messages + 1; }));
  EXPECT_EQ(b_->ResultOf(1), ErrorCode::kWouldBlock);
  EXPECT_EQ(b_->memory[0], std::byte{0});
  ASSERT_TRUE(Until([&] { return b_->ResultOf(1) == ErrorCode::kOk; }));
}

TEST_F(TcpHostileTest, APeerThatTakesNoAnswersHoldsMemoryForSoLongOnly) {
  TransportOptions options;
  auto peer = Proved();
  for (uint64_t id = 1; id <= 100; id++) {  // more than sockets hold
    ASSERT_TRUE(peer->SendKeyFrame(FrameKind::kRead, b_->region.key, 0, id, kMemory));
  }
  for (int i = 0; i < 100; i++) {
    b_->Poll();
  }
  EXPECT_EQ(b_->transport->DeregisterMemory(b_->region.handle).code(), ErrorCode::kWouldBlock);
  EXPECT_EQ(b_->transport->LastError(), "");
  EXPECT_NE(b_->transport->NextPollNs(b_->now_ns), UINT64_MAX);
  for (int step = 0; step < 12; step++) {
    b_->now_ns += options.post_timeout_ns / 10;
    for (int i = 0; i < 20; i++) {
      b_->Poll();
    }
  }
  EXPECT_TRUE(b_->transport->DeregisterMemory(b_->region.handle).ok());
}

// It does take something now and then.
TEST_F(TcpHostileTest, APeerThatTakesAnswersSlowlyHoldsMemoryForSoLongOnly) {
  TransportOptions options;
  auto peer = Proved();
  for (uint64_t id = 1; id <= 100; id++) {
    ASSERT_TRUE(peer->SendKeyFrame(FrameKind::kRead, b_->region.key, 0, id, kMemory));
  }
  std::vector<std::byte> taken(4 << 10);
  for (int step = 0; step < 25; step++) {
    for (int i = 0; i < 20; i++) {
      (void)recv(peer->fd(), taken.data(), taken.size(), MSG_DONTWAIT);
      b_->Poll();
    }
    b_->now_ns += options.post_timeout_ns / 10;
  }
  EXPECT_TRUE(b_->transport->DeregisterMemory(b_->region.handle).ok());
}

TEST_F(TcpHostileTest, AnAnswerThatComesInDropsHoldsMemoryForSoLongOnly) {
  TransportOptions options;
  auto peer = Proved();
  const TcpAddress address = RawTcpPeer::AddressOf(peer->Hello());
  const PeerId slow = *b_->transport->AddPeer(std::as_bytes(std::span(&address, 1)));
  ASSERT_EQ(b_->transport->Read({.peer = slow,
                                 .local = b_->memory.data(),
                                 .region = b_->region.handle,
                                 .remote_address = 0,
                                 .key = 1,
                                 .bytes = 1000,
                                 .context = 1},
                                b_->now_ns),
            ErrorCode::kOk);
  std::optional<FrameHeader> asked;
  ASSERT_TRUE(Await([&] {
    asked = Drained(*peer).TakeFrame();
    return asked.has_value();
  }));
  for (int step = 0; step < 12; step++) {
    (void)peer->SendFrame(FrameKind::kData, 0, asked->id, 1, {});
    (void)peer->Send(uint8_t{9});
    (void)peer->Send(FrameTrailer::kGood);
    for (int i = 0; i < 20; i++) {
      b_->Poll();
    }
    b_->now_ns += options.post_timeout_ns / 10;
  }
  b_->Poll();
  EXPECT_EQ(b_->ResultOf(1), ErrorCode::kTimeout);
  EXPECT_EQ(b_->memory[0], std::byte{9});
  EXPECT_TRUE(b_->transport->DeregisterMemory(b_->region.handle).ok());
}

TEST_F(TcpHostileTest, WhatLandsMayBeDropped) {
  auto peer = Proved();
  std::vector<std::byte> place(1000);
  b_->recorder.head = [&](uint64_t bytes) { return Landing{place.data(), bytes, 17}; };
  const std::vector<std::byte> half(500, std::byte{9});
  ASSERT_TRUE(
      peer->SendFrame(FrameKind::kMessageFrom, 0, 0, 2 * half.size(), std::vector<std::byte>(40)));
  ASSERT_TRUE(peer->Send(half.data(), half.size()));
  ASSERT_TRUE(Await([&] { return place[half.size() - 1] == std::byte{9}; }));
  b_->transport->DropLanding(18);  // another one
  b_->transport->DropLanding(17);
  ASSERT_TRUE(peer->Send(half.data(), half.size()));
  ASSERT_TRUE(peer->Send(FrameTrailer::kGood));
  ASSERT_TRUE(peer->SendFrame(FrameKind::kMessage, 0, 0, 0, std::vector<std::byte>(5)));
  ASSERT_TRUE(Await([&] { return b_->recorder.messages.size() == 1; }));
  EXPECT_TRUE(b_->recorder.landed.empty());
  EXPECT_EQ(place[half.size()], std::byte{0});
}

// It is not read on, so it cannot ask on; nothing is lost of what it takes later.
TEST_F(TcpHostileTest, WhoAsksForMoreThanItTakesIsNotReadOn) {
  constexpr uint64_t kBytes = 64;
  constexpr size_t kQuestion = sizeof(FrameHeader) + kKeyBytes;
  constexpr size_t kAnswer = sizeof(FrameHeader) + kBytes + sizeof(FrameTrailer);
  auto peer = Proved();
  std::vector<std::byte> many;
  FrameHeader frame;
  frame.kind = static_cast<uint32_t>(FrameKind::kRead);
  frame.head_bytes = kKeyBytes;
  frame.data_bytes = kBytes;
  for (int i = 0; i < 1000; i++) {
    const auto header = std::as_bytes(std::span(&frame, 1));
    const auto key = std::as_bytes(std::span(&b_->region.key, 1));
    many.insert(many.end(), header.begin(), header.end());
    many.insert(many.end(), key.begin(), key.end());
  }
  size_t sent = 0;
  const auto ask = [&] {
    const ssize_t count = send(peer->fd(), many.data() + sent % many.size(),
                               many.size() - sent % many.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    sent += count > 0 ? static_cast<size_t>(count) : 0;
    return count > 0;
  };
  // It goes on for as long as we read, some frames in each poll.
  int idle = 0;
  ASSERT_TRUE(Await([&] {
    idle = ask() ? 0 : idle + 1;
    return idle == 2000;
  }));
  pollfd descriptor{peer->fd(), POLLIN, 0};
  ASSERT_EQ(poll(&descriptor, 1, 0), 1);
  EXPECT_EQ(descriptor.revents, POLLIN) << "the connection has been closed";
  EXPECT_TRUE(b_->transport->PrepareToSleep()) << "it is looked at all the time";
  ExpectOthersAreServed();

  std::vector<std::byte> taken(1 << 20);
  size_t got = 0;
  while (sent % kQuestion != 0) {  // the rest of the last question
    const ssize_t count = send(peer->fd(), many.data() + sent % many.size(),
                               kQuestion - sent % kQuestion, MSG_NOSIGNAL | MSG_DONTWAIT);
    sent += count > 0 ? static_cast<size_t>(count) : 0;
    const ssize_t read = recv(peer->fd(), taken.data(), taken.size(), MSG_DONTWAIT);
    got += read > 0 ? static_cast<size_t>(read) : 0;
    b_->Poll();
  }
  EXPECT_TRUE(Await([&] {
    const ssize_t read = recv(peer->fd(), taken.data(), taken.size(), MSG_DONTWAIT);
    got += read > 0 ? static_cast<size_t>(read) : 0;
    return got == sent / kQuestion * kAnswer;
  })) << got
      << " of " << sent / kQuestion * kAnswer << " bytes";
}

TEST_F(TcpHostileTest, AWriteThatStallsDoesNotHoldTheRegion) {
  auto peer = Proved();
  const std::vector<std::byte> data(50'000, std::byte{9});
  ASSERT_TRUE(peer->SendKeyFrame(FrameKind::kWrite, b_->region.key, 0, 3, 2 * data.size()));
  ASSERT_TRUE(peer->Send(data.data(), data.size()));
  ASSERT_TRUE(Await([&] { return b_->memory[data.size() - 1] == std::byte{9}; }));
  ASSERT_TRUE(b_->transport->DeregisterMemory(b_->region.handle).ok());
  ASSERT_TRUE(peer->Send(data.data(), data.size()));
  ASSERT_TRUE(peer->Send(FrameTrailer::kGood));
  EXPECT_TRUE(WantsFrame(*peer, FrameKind::kRefused, 3));
  EXPECT_EQ(b_->memory[data.size()], std::byte{0});
}

TEST_F(TcpHostileTest, SoManyMayConnectThatNobodyHasNamed) {
  rlim_t most = 0;
  rlimit files{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &files), 0);
  files.rlim_cur = std::min<rlim_t>(files.rlim_max, 4096);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &files), 0);
  most = files.rlim_cur;
  if (most < 3000) {
    GTEST_SKIP() << "a process may have only " << most << " descriptors here";
  }
  std::vector<std::unique_ptr<RawTcpPeer>> peers;
  for (uint16_t port = 1; port <= 1024; port++) {
    peers.push_back(Proved(port));
  }
  auto further = Stranger();
  ASSERT_TRUE(further->Send(further->Hello(2000)));
  EXPECT_TRUE(IsClosed(*further));
  EXPECT_FALSE(Drained(*peers.front()).ended());
  ExpectOthersAreServed();

  // A peer that connects anew takes its own place.
  peers.front()->Close();
  auto again = Proved(1);
}

}  // namespace
}  // namespace ferry::transport
