// Tests of transports/tcp alone; the rest is in tests/conformance. tcp_hostile_test.cc tests the
// peers that may connect, and their rights.
#include "transports/tcp/tcp_transport.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstring>

#include "tests/transports/tcp/raw_tcp_peer.h"
#include "tests/transports/tcp/tcp_fixture.h"

namespace ferry::transport {
namespace {

// "127.0.0.1:4711"
uint16_t ParsePort(const std::string& address) {
  return static_cast<uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
}

using Losses = std::vector<std::pair<PeerId, bool>>;

// ---- Connections

// Whichever peer is first, and whatever has been posted meanwhile.
TEST_F(TcpTransportTest, BothConnectAtOnceAndKeepOneConnection) {
  for (const bool a_polls_first : {true, false}) {
    Connect();
    const size_t before = ConnectedSockets().size();
    constexpr uint64_t kMessages = 20;
    for (uint64_t i = 0; i < kMessages; i++) {
      ASSERT_EQ(a_->Send(b_of_a_, Numbered(i), i), ErrorCode::kOk);
      ASSERT_EQ(b_->Send(a_of_b_, Numbered(i), i), ErrorCode::kOk);
      (a_polls_first ? a_ : b_)->Poll();
    }
    ASSERT_TRUE(Until([&] {
      return a_->recorder.messages.size() == kMessages && b_->recorder.messages.size() == kMessages;
    }));
    for (const auto& node : {a_.get(), b_.get()}) {
      for (uint64_t i = 0; i < kMessages; i++) {
        EXPECT_EQ(NumberOf(node->recorder.messages[i]), i);
        EXPECT_EQ(node->ResultOf(i), ErrorCode::kOk);
      }
      EXPECT_EQ(node->transport->statistics().errors, 0U);
      EXPECT_TRUE(node->recorder.lost.empty());
    }
    EXPECT_EQ(ConnectedSockets().size() - before, 2U);  // the ends of one
  }
}

TEST_F(TcpTransportTest, ManyPairsThatConnectAtOnceLoseNothing) {
  constexpr size_t kNodes = 8;
  TransportOptions options;
  options.max_outstanding = 64;
  std::vector<std::unique_ptr<TcpNode>> owned;
  std::vector<TcpNode*> nodes;
  for (size_t i = 0; i < kNodes; i++) {
    nodes.push_back(owned.emplace_back(std::make_unique<TcpNode>(options)).get());
  }
  for (size_t from = 0; from < kNodes; from++) {
    for (size_t to = 0; to < kNodes; to++) {
      const PeerId peer = *nodes[from]->transport->AddPeer(nodes[to]->transport->Address());
      ASSERT_EQ(nodes[from]->Send(peer, Numbered(from), 2 * to), ErrorCode::kOk);
      ASSERT_EQ(nodes[from]->Send(peer, Numbered(from), 2 * to + 1), ErrorCode::kOk);
    }
  }
  EXPECT_TRUE(PollUntil(nodes, [&] {
    return std::ranges::all_of(nodes, [](const TcpNode* node) {
      return node->recorder.messages.size() == 2 * kNodes &&
             node->recorder.results.size() == 2 * kNodes;
    });
  }));
  for (const TcpNode* node : nodes) {
    EXPECT_TRUE(std::ranges::all_of(node->recorder.results, [](const auto& result) {
      return result.second == ErrorCode::kOk;
    }));
  }
}

TEST_F(TcpTransportTest, AThousandPeersAreServed) {
  rlimit files{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &files), 0);
  constexpr size_t kPeers = 1000;
  constexpr rlim_t kNeeded = 5 * kPeers;
  if (files.rlim_cur < kNeeded) {
    files.rlim_cur = std::min(files.rlim_max, kNeeded);
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &files), 0);
    if (files.rlim_cur < kNeeded) {
      GTEST_SKIP() << "a process may have only " << files.rlim_cur << " descriptors here";
    }
  }
  TransportOptions small;
  small.max_outstanding = 4;
  small.receive_buffer_bytes = 256;
  TransportOptions large = small;
  large.max_outstanding = 2 * kPeers;
  TcpNode hub(large);
  std::vector<std::unique_ptr<TcpNode>> owned;
  std::vector<TcpNode*> nodes{&hub};
  for (uint64_t i = 0; i < kPeers; i++) {
    TcpNode* node = owned.emplace_back(std::make_unique<TcpNode>(small)).get();
    nodes.push_back(node);
    const PeerId to = *hub.transport->AddPeer(node->transport->Address());
    ASSERT_EQ(hub.Send(to, Numbered(i), i), ErrorCode::kOk);
  }
  ASSERT_TRUE(PollUntil(nodes, [&] {
    return std::ranges::all_of(
        owned, [](const auto& node) { return node->recorder.messages.size() == 1; });
  }));
  for (uint64_t i = 0; i < kPeers; i++) {
    const PeerId back = *owned[i]->transport->AddPeer(hub.transport->Address());
    ASSERT_EQ(owned[i]->Send(back, Numbered(i), i), ErrorCode::kOk);
  }
  ASSERT_TRUE(PollUntil(nodes, [&] { return hub.recorder.messages.size() == kPeers; }));
  EXPECT_EQ(hub.recorder.results.size(), kPeers);
  EXPECT_EQ(hub.transport->statistics().errors, 0U);
}

TEST_F(TcpTransportTest, AFloodDoesNotHoldUpOthers) {
  TransportOptions options;
  options.max_outstanding = 1000;
  options.max_outstanding_per_peer = 1000;
  Connect(options);
  Greet();
  TcpNode quiet;
  const PeerId b_of_quiet = *quiet.transport->AddPeer(b_->transport->Address());
  ASSERT_EQ(quiet.Send(b_of_quiet, Numbered(7), 1), ErrorCode::kOk);
  TcpNode* const three[] = {a_.get(), b_.get(), &quiet};
  ASSERT_TRUE(PollUntil(three, [&] { return b_->recorder.messages.size() == 1; }));
  b_->recorder.messages.clear();

  uint64_t sent = 0;
  while (a_->Send(b_of_a_, Numbered(sent), 1000 + sent) == ErrorCode::kOk) {
    sent++;
  }
  a_->Poll(1000);
  ASSERT_EQ(quiet.Send(b_of_quiet, Numbered(8, 100), 2), ErrorCode::kOk);
  quiet.Poll();
  const auto heard = [&] {
    return std::ranges::any_of(b_->recorder.messages,
                               [](const auto& message) { return message.size() == 100; });
  };
  int polls = 0;
  while (!heard() && polls < 20) {
    EXPECT_LE(b_->Poll(16), 16);
    polls++;
  }
  EXPECT_LE(polls, 3);
  EXPECT_LT(b_->recorder.messages.size(), sent / 2);
}

// Each has more than its share in every poll.
TEST_F(TcpTransportTest, ManyFloodsDoNotHoldUpOthers) {
  constexpr int kBudget = 16;
  constexpr size_t kFloods = 4;  // of which two use it up
  b_ = std::make_unique<TcpNode>();
  TransportOptions options;
  options.max_outstanding = 1000;
  options.max_outstanding_per_peer = 1000;
  std::vector<std::unique_ptr<TcpNode>> owned;
  std::vector<TcpNode*> nodes{b_.get()};
  std::vector<PeerId> to_b;
  for (size_t i = 0; i <= kFloods; i++) {
    nodes.push_back(owned.emplace_back(std::make_unique<TcpNode>(options)).get());
    to_b.push_back(*owned[i]->transport->AddPeer(b_->transport->Address()));
    ASSERT_EQ(owned[i]->Send(to_b[i], Numbered(i), 1), ErrorCode::kOk);
  }
  ASSERT_TRUE(PollUntil(nodes, [&] { return b_->recorder.messages.size() == kFloods + 1; }));
  for (size_t i = 0; i < kFloods; i++) {
    for (uint64_t sent = 2; owned[i]->Send(to_b[i], Numbered(i), sent) == ErrorCode::kOk; sent++) {
    }
    owned[i]->Poll(1000);
  }
  b_->Poll(kBudget);
  ASSERT_EQ(owned[kFloods]->Send(to_b[kFloods], Numbered(8, 100), 2), ErrorCode::kOk);
  const auto heard = [&] {
    return std::ranges::any_of(b_->recorder.messages,
                               [](const auto& message) { return message.size() == 100; });
  };
  int polls = 0;
  while (!heard() && polls < 50) {
    b_->Poll(kBudget);
    polls++;
  }
  EXPECT_LE(polls, 4);
  EXPECT_LT(b_->recorder.messages.size(), 1000U);
}

// Their sockets are full, and all that may be outstanding is for them.
TEST_F(TcpTransportTest, PeersThatStandStillDoNotHoldUpOthers) {
  constexpr size_t kBytes = 1 << 20;
  TransportOptions options;
  Connect(options, kBytes);
  Greet();
  TcpNode still[2] = {TcpNode(options, kBytes), TcpNode(options, kBytes)};
  uint64_t context = 0;
  for (TcpNode& node : still) {
    const PeerId peer = *a_->transport->AddPeer(node.transport->Address());
    ASSERT_EQ(a_->Send(peer, Numbered(0), ++context), ErrorCode::kOk);
    TcpNode* const two[] = {a_.get(), &node};
    ASSERT_TRUE(PollUntil(two, [&] { return node.recorder.messages.size() == 1; }));
    const RmaRequest read{.peer = peer,
                          .local = a_->memory.data(),
                          .region = a_->region.handle,
                          .remote_address = node.region.remote_base,
                          .key = node.region.key,
                          .bytes = kBytes};
    RmaRequest next = read;
    for (next.context = ++context; a_->transport->Read(next, a_->now_ns) == ErrorCode::kOk;
         next.context = ++context) {
    }
  }
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(a_->Send(b_of_a_, Numbered(7), 100'000 + static_cast<uint64_t>(i)), ErrorCode::kOk);
    ASSERT_EQ(a_->transport->Read(Request(kBytes, 200'000 + static_cast<uint64_t>(i)), a_->now_ns),
              ErrorCode::kOk);
    ASSERT_TRUE(Until([&] {
      return a_->ResultOf(100'000 + static_cast<uint64_t>(i)) == ErrorCode::kOk &&
             a_->ResultOf(200'000 + static_cast<uint64_t>(i)) == ErrorCode::kOk;
    }));
  }
}

TEST_F(TcpTransportTest, WhoIsGoneIsUnreachableUntilItIsBack) {
  TransportOptions options;
  Connect(options);
  Greet();
  const TransportOptions same_port = [&] {
    TransportOptions copy;
    copy.port = ParsePort(b_->transport->Describe().address);
    return copy;
  }();
  b_.reset();
  ASSERT_EQ(a_->Send(b_of_a_, Numbered(1), 1), ErrorCode::kOk);
  ASSERT_TRUE(Until([&] { return Ended(1); }));
  ASSERT_EQ(a_->Send(b_of_a_, Numbered(2), 2), ErrorCode::kOk);
  ASSERT_TRUE(Until([&] { return Ended(2); }));
  EXPECT_EQ(a_->ResultOf(2), ErrorCode::kNodeUnreachable);
  EXPECT_NE(a_->transport->LastError().find("127.0.0.1"), std::string::npos);

  // Another one at the same port has another secret.
  b_ = std::make_unique<TcpNode>(same_port);
  ASSERT_EQ(a_->Send(b_of_a_, Numbered(3), 3), ErrorCode::kOk);
  ASSERT_TRUE(Until([&] { return Ended(3); }));
  EXPECT_EQ(a_->ResultOf(3), ErrorCode::kNodeUnreachable);
  EXPECT_TRUE(b_->recorder.messages.empty());
  const PeerId anew = *a_->transport->AddPeer(b_->transport->Address());
  ASSERT_EQ(a_->Send(anew, Numbered(4), 4), ErrorCode::kOk);
  ASSERT_TRUE(Until([&] { return !b_->recorder.messages.empty(); }));
}

// It has said something, and did not read what was said to it.
TEST_F(TcpTransportTest, TheLastWordsOfAPeerAreHeard) {
  Connect();
  Greet();
  ASSERT_EQ(a_->Send(b_of_a_, Numbered(1), 1), ErrorCode::kOk);
  ASSERT_EQ(b_->Send(a_of_b_, Numbered(2), 2), ErrorCode::kOk);
  b_.reset();
  a_->transport->Flush(a_->now_ns);
  ASSERT_EQ(a_->Send(b_of_a_, Numbered(3), 3), ErrorCode::kOk);  // finds the connection reset
  ASSERT_TRUE(Until([&] { return Ended(3); }));
  EXPECT_EQ(a_->ResultOf(3), ErrorCode::kNodeUnreachable);
  ASSERT_EQ(a_->recorder.messages.size(), 1U);
  EXPECT_EQ(NumberOf(a_->recorder.messages[0]), 2U);
}

TEST_F(TcpTransportTest, AConnectionThatOneSideHasClosedIsMadeAnew) {
  Connect();
  Greet();
  ASSERT_TRUE(b_->transport->RemovePeer(a_of_b_).ok());
  a_of_b_ = *b_->transport->AddPeer(a_->transport->Address());
  ASSERT_EQ(b_->Send(a_of_b_, Numbered(5), 5), ErrorCode::kOk);
  ASSERT_TRUE(Until([&] { return a_->recorder.messages.size() == 1; }));
  ASSERT_EQ(a_->Send(b_of_a_, Numbered(6), 6), ErrorCode::kOk);
  ASSERT_TRUE(Until([&] { return b_->recorder.messages.size() == 1 && Ended(6); }));
  EXPECT_EQ(a_->ResultOf(6), ErrorCode::kOk);
}

// Nothing has told the other side that the connection is gone, as after a cut network.
TEST_F(TcpTransportTest, ALostConnectionIsToldThoughNothingIsUnderWay) {
  Connect();
  Greet();
  b_.reset();
  ASSERT_TRUE(Until([&] { return !a_->recorder.lost.empty(); }));
  a_->Poll();
  EXPECT_EQ(a_->recorder.lost, (Losses{{b_of_a_, true}}));
}

TEST_F(TcpTransportTest, WhoFailsAPeerIsNotToldButThePeerIs) {
  Connect();
  Greet();
  a_->transport->FailPeer(b_of_a_, ErrorCode::kCancelled);
  ASSERT_TRUE(Until([&] { return !b_->recorder.lost.empty(); }));
  EXPECT_EQ(b_->recorder.lost, (Losses{{a_of_b_, true}}));
  EXPECT_TRUE(a_->recorder.lost.empty());
}

TEST_F(TcpTransportTest, WhatPeersReadIsCounted) {
  Connect();
  ASSERT_EQ(a_->transport->Read(Request(1000, 1), a_->now_ns), ErrorCode::kOk);
  ASSERT_TRUE(Until([&] { return Ended(1); }));
  ASSERT_TRUE(Until([&] { return b_->transport->statistics().served_bytes == 1000; }));
  EXPECT_EQ(a_->transport->statistics().served_bytes, 0U);
}

// The end of the old one may be on its way, and says whether something was lost.
TEST_F(TcpTransportTest, WhoConnectsAnewHasNoOtherConnectionButAWhileLater) {
  Connect();
  if (*ParseTcpAddress(b_->transport->Address()) < *ParseTcpAddress(a_->transport->Address())) {
    a_.swap(b_);
    std::swap(a_of_b_, b_of_a_);
  }
  Greet();  // by the connection of the smaller one, which is to stay if both connect at once
  a_->now_ns += 2'000'000'000;
  TcpNode* const alone[] = {a_.get()};
  const auto call = [&](RawTcpPeer& peer) {
    TcpHello hello = peer.Hello();
    hello.from = *ParseTcpAddress(b_->transport->Address());
    EXPECT_TRUE(peer.Send(hello));
    EXPECT_TRUE(PollUntil(alone, [&] {
      peer.Drain();
      return peer.received_bytes() >= sizeof(TcpWelcome);
    }));
    return peer.Take<TcpWelcome>()->answer;
  };
  for (int i = 0; i < 2; i++) {
    RawTcpPeer early(a_->transport->Address());
    EXPECT_EQ(call(early), TcpAnswer::kUseOther);
    a_->now_ns += 400'000'000;
  }
  EXPECT_TRUE(a_->recorder.lost.empty());
  a_->now_ns += 400'000'000;
  RawTcpPeer again(a_->transport->Address());
  EXPECT_EQ(call(again), TcpAnswer::kWelcome);
  ASSERT_TRUE(PollUntil(alone, [&] { return !a_->recorder.lost.empty(); }));
  EXPECT_EQ(a_->recorder.lost, (Losses{{b_of_a_, false}}));  // it is not known what b had taken
  ASSERT_EQ(a_->Send(b_of_a_, Numbered(1), 1), ErrorCode::kOk);
  ASSERT_TRUE(PollUntil(alone, [&] {
    again.Drain();
    return again.received_bytes() != 0;
  }));
}

// The other one has connected, too, and given that up when ours came. It is accepted late.
TEST_F(TcpTransportTest, AConnectionThatCrossedOursLongAgoEndsNothing) {
  Connect();
  Greet();
  TcpHello hello = RawTcpPeer(a_->transport->Address()).Hello();
  hello.from = *ParseTcpAddress(b_->transport->Address());
  {
    RawTcpPeer crossing(a_->transport->Address());
    ASSERT_TRUE(crossing.Send(hello));
  }
  a_->now_ns += 2'000'000'000;
  for (int i = 0; i < 50; i++) {
    a_->Poll();
  }
  EXPECT_TRUE(a_->recorder.lost.empty());
  ASSERT_EQ(b_->Send(a_of_b_, Numbered(1), 1), ErrorCode::kOk);
  ASSERT_TRUE(Until([&] { return a_->recorder.messages.size() == 1; }));
  EXPECT_TRUE(b_->recorder.lost.empty());
}

// A peer's connection does not wait behind those of others.
TEST_F(TcpTransportTest, ALookAcceptsAllThatHaveCome) {
  Connect();
  std::vector<std::unique_ptr<RawTcpPeer>> peers;
  for (uint16_t i = 0; i < 40; i++) {
    peers.push_back(std::make_unique<RawTcpPeer>(b_->transport->Address()));
    ASSERT_TRUE(peers.back()->Send(peers.back()->Hello(static_cast<uint16_t>(1000 + i))));
  }
  b_->Poll();
  for (const auto& peer : peers) {
    peer->Drain();
    EXPECT_EQ(peer->received_bytes(), sizeof(TcpWelcome));
  }
}

TEST_F(TcpTransportTest, ConnectsBeforeAnythingIsSent) {
  Connect();
  std::string why;
  EXPECT_EQ(a_->transport->ConnectionTo(b_of_a_, &why), ErrorCode::kWouldBlock);
  EXPECT_EQ(why, b_->transport->Describe().address + " has not connected");
  a_->transport->Connect(b_of_a_, a_->now_ns);
  a_->transport->Connect(b_of_a_, a_->now_ns);  // it does already
  EXPECT_EQ(a_->transport->ConnectionTo(b_of_a_, &why), ErrorCode::kWouldBlock);
  ASSERT_TRUE(Until([&] {
    return a_->transport->ConnectionTo(b_of_a_, nullptr) == ErrorCode::kOk &&
           b_->transport->ConnectionTo(a_of_b_, nullptr) == ErrorCode::kOk;
  }));
  EXPECT_TRUE(b_->recorder.messages.empty());
  ASSERT_EQ(b_->Send(a_of_b_, Numbered(1), 1), ErrorCode::kOk);  // by that one
  ASSERT_TRUE(Until([&] { return a_->recorder.messages.size() == 1; }));
  a_->transport->FailPeer(b_of_a_, ErrorCode::kLinkDown);
  EXPECT_EQ(a_->transport->ConnectionTo(b_of_a_, &why), ErrorCode::kLinkDown);
  EXPECT_EQ(a_->transport->ConnectionTo(kUnknownPeer, &why), ErrorCode::kNotFound);
}

TEST_F(TcpTransportTest, AConnectionThatCannotBeMadeSaysWhy) {
  Connect();
  const std::string address = b_->transport->Describe().address;
  b_.reset();
  a_->transport->Connect(b_of_a_, a_->now_ns);
  ASSERT_TRUE(Until(
      [&] { return a_->transport->ConnectionTo(b_of_a_, nullptr) != ErrorCode::kWouldBlock; }));
  std::string why;
  EXPECT_EQ(a_->transport->ConnectionTo(b_of_a_, &why), ErrorCode::kNodeUnreachable);
  EXPECT_EQ(why, "Connection refused (" + address + ")");
  EXPECT_TRUE(a_->recorder.lost.empty());
}

TEST_F(TcpTransportTest, ATransportTalksToItself) {
  a_ = std::make_unique<TcpNode>(TransportOptions{}, 3 << 20);
  b_of_a_ = *a_->transport->AddPeer(a_->transport->Address());
  std::ranges::copy(TcpPattern(1 << 20, 3), a_->memory.begin());
  ASSERT_EQ(a_->Send(b_of_a_, Numbered(1), 1), ErrorCode::kOk);
  RmaRequest request{.peer = b_of_a_,
                     .local = a_->memory.data() + (1 << 20),
                     .region = a_->region.handle,
                     .remote_address = 0,
                     .key = a_->region.key,
                     .bytes = 1 << 20,
                     .context = 2};
  ASSERT_EQ(a_->transport->Read(request, a_->now_ns), ErrorCode::kOk);
  ASSERT_TRUE(Until([&] { return Ended(2) && a_->recorder.messages.size() == 1; }));
  EXPECT_EQ(std::memcmp(a_->memory.data(), a_->memory.data() + (1 << 20), 1 << 20), 0);
  EXPECT_EQ(a_->recorder.senders.at(0), b_of_a_);
}

TEST_F(TcpTransportTest, ListensWhereTheOptionsSay) {
  TransportOptions options;
  std::vector<std::string> addresses = {"localhost", "127.0.0.3"};
  if (std::filesystem::exists("/proc/sys/net/ipv6/conf/lo")) {
    addresses.emplace_back("::1");
  }
  for (const std::string& address : addresses) {
    options.source_address = address;
    StatusOr<std::unique_ptr<Transport>> transport = CreateTcpTransport(options);
    if (address == "::1" && !transport.ok()) {
      continue;  // loopback has no such address here
    }
    ASSERT_TRUE(transport.ok()) << transport.status().ToString();
    const PeerId self = *(*transport)->AddPeer((*transport)->Address());
    ASSERT_EQ((*transport)->SendMessage(self, Numbered(3), {}, 1, 1), ErrorCode::kOk);
    TcpRecorder recorder;
    const uint64_t give_up_ns = MonotonicNs() + 30'000'000'000;
    while (recorder.messages.empty() && MonotonicNs() < give_up_ns) {
      (*transport)->Poll(recorder, 8, 1);
    }
    EXPECT_EQ(recorder.messages.size(), 1U) << address;
    EXPECT_EQ((*transport)->Describe().domain, "lo");
  }
  options.source_address = "0.0.0.0";  // peers could not be told where it is
  EXPECT_EQ(CreateTcpTransport(options).status().code(), ErrorCode::kInvalidArgument);
  options.source_address = "127.0.0.1";
  options.domain = "nosuch0";
  EXPECT_EQ(CreateTcpTransport(options).status().code(), ErrorCode::kUnsupported);
}

TEST_F(TcpTransportTest, OptionsAreChecked) {
  TransportOptions options;
  options.max_outstanding = 0;
  EXPECT_EQ(CreateTcpTransport(options).status().code(), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace ferry::transport
