// Connections by greetings: over sockets of Ferry's own, whose frames can be counted on, with a
// layer between that loses, holds and forges what it is told to.
#include "transports/greeting/greeting_transport.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "transports/api/forwarding_transport.h"
#include "transports/greeting/greeting_wire.h"
#include "transports/tcp/tcp_transport.h"

namespace ferry::transport {
namespace {

constexpr GreetingTimes kTimes = {.hello_ns = 1'000'000, .probe_ns = 100'000'000};
constexpr size_t kPatience = 200'000;  // polls

std::span<const std::byte> BytesOf(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// Swallows messages, with their completions, when told to.
class LossyTransport final : public ForwardingTransport {
 public:
  explicit LossyTransport(std::unique_ptr<Transport> real)
      : ForwardingTransport(*real), real_(std::move(real)) {}
  // Empty: none.
  std::function<bool(const Envelope&)> loses;
  std::vector<std::vector<std::byte>> said;

  ErrorCode SendMessage(PeerId peer, std::span<const std::byte> header,
                        std::span<const std::byte> payload, uint64_t context,
                        uint64_t now_ns) override {
    Envelope envelope;
    std::memcpy(&envelope, header.data(), sizeof(envelope));
    if (loses && loses(envelope)) {
      lost_.push_back(context);
      return ErrorCode::kOk;
    }
    std::vector<std::byte>& noted = said.emplace_back(header.begin(), header.end());
    noted.insert(noted.end(), payload.begin(), payload.end());
    return real_->SendMessage(peer, header, payload, context, now_ns);
  }
  int Poll(CompletionSink& sink, int budget, uint64_t now_ns) override {
    const int events = static_cast<int>(lost_.size());
    for (const uint64_t context : std::exchange(lost_, {})) {
      sink.OnComplete(context, ErrorCode::kOk);
    }
    return events + real_->Poll(sink, budget, now_ns);
  }

 private:
  const std::unique_ptr<Transport> real_;
  std::vector<uint64_t> lost_;
};

std::unique_ptr<LossyTransport> OpenBelow() {
  TransportOptions options;
  options.receive_buffer_bytes += kGreetingOverheadBytes;
  auto opened = CreateTcpTransport(options);
  EXPECT_TRUE(opened.ok()) << opened.status().ToString();
  return std::make_unique<LossyTransport>(std::move(*opened));
}

// One of the two.
class Peer final : private CompletionSink {
 public:
  Peer() {
    auto below = OpenBelow();
    below_ = below.get();
    auto opened = CreateGreetingTransport(std::move(below), kTimes);
    EXPECT_TRUE(opened.ok()) << opened.status().ToString();
    transport_ = std::move(*opened);
  }
  // `number` is what it calls the other one, which calls it `own_number`.
  void Know(const Peer& other, uint64_t number = 0, uint64_t own_number = 0) {
    const auto peer = transport_->AddPeer(other.transport_->AddressFor(own_number), number);
    ASSERT_TRUE(peer.ok()) << peer.status().ToString();
    peer_ = *peer;
  }
  int Poll(uint64_t now_ns) { return transport_->Poll(*this, 64, now_ns); }
  ErrorCode Connection() {
    why.clear();
    return transport_->ConnectionTo(peer_, &why);
  }
  ErrorCode Send(const std::string& text, uint64_t now_ns) {
    return transport_->SendMessage(peer_, BytesOf(text), {}, 7, now_ns);
  }
  Transport& transport() { return *transport_; }
  LossyTransport& below() { return *below_; }
  PeerId peer() const { return peer_; }

  std::string why;
  std::vector<std::string> heard;
  std::vector<bool> losses;  // whether lossless
  std::vector<ErrorCode> completed;

 private:
  void OnReceive(PeerId sender, std::span<const std::byte> message) override {
    EXPECT_EQ(sender, peer_);
    heard.emplace_back(reinterpret_cast<const char*>(message.data()), message.size());
  }
  void OnComplete(uint64_t context, ErrorCode code) override {
    EXPECT_EQ(context, 7U);
    completed.push_back(code);
  }
  void OnConnectionEnded(PeerId peer, bool lossless) override {
    EXPECT_EQ(peer, peer_);
    losses.push_back(lossless);
  }

  std::unique_ptr<Transport> transport_;
  LossyTransport* below_ = nullptr;
  PeerId peer_{};
};

// A stranger that can send any message to the transport below.
class Stranger final : private CompletionSink {
 public:
  explicit Stranger(Transport& below) : below_(OpenBelow()) {
    const auto peer = below_->AddPeer(below.Address());
    EXPECT_TRUE(peer.ok());
    peer_ = *peer;
  }
  void Say(std::span<const std::byte> message, uint64_t now_ns) {
    std::vector<std::byte> padded(message.begin(), message.end());
    padded.resize(std::max(padded.size(), sizeof(Envelope)));
    (void)below_->SendMessage(peer_, padded, {}, 1, now_ns);
    (void)below_->Poll(*this, 64, now_ns);
  }

 private:
  void OnReceive(PeerId, std::span<const std::byte>) override {}
  void OnComplete(uint64_t, ErrorCode) override {}

  std::unique_ptr<LossyTransport> below_;
  PeerId peer_{};
};

class GreetingTransportTest : public testing::Test {
 protected:
  // Both poll, at a time that goes on, until it holds.
  bool Meanwhile(const std::function<bool()>& condition) {
    for (size_t i = 0; i < kPatience; ++i) {
      if (condition()) {
        return true;
      }
      now_ns_ += 100'000;
      for (Peer* peer : {&one_, &other_}) {
        (void)peer->Poll(now_ns_);
      }
    }
    return false;
  }
  // So much time passes.
  void Pass(uint64_t ns) {
    const uint64_t until_ns = now_ns_ + ns;
    (void)Meanwhile([&] { return now_ns_ >= until_ns; });
  }
  void Connect() {
    one_.Know(other_);
    other_.Know(one_);
    one_.transport().Connect(one_.peer(), now_ns_);
    ASSERT_TRUE(Meanwhile([&] {
      return one_.Connection() == ErrorCode::kOk && other_.Connection() == ErrorCode::kOk;
    })) << one_.why
        << other_.why;
  }
  void Carry(Peer& from, Peer& to, const std::string& text) {
    const size_t before = to.heard.size();
    ASSERT_TRUE(Meanwhile([&] { return from.Send(text, now_ns_) == ErrorCode::kOk; }));
    ASSERT_TRUE(Meanwhile([&] { return to.heard.size() == before + 1; }));
    EXPECT_EQ(to.heard.back(), text);
  }
  void ExpectNoLoss() {
    EXPECT_TRUE(one_.losses.empty());
    EXPECT_TRUE(other_.losses.empty());
  }
  void ExpectBothLost() {
    ASSERT_TRUE(Meanwhile([&] { return !one_.losses.empty() && !other_.losses.empty(); }));
    EXPECT_EQ(one_.losses, std::vector<bool>{false});
    EXPECT_EQ(other_.losses, std::vector<bool>{false});
    EXPECT_EQ(one_.Connection(), ErrorCode::kNodeUnreachable);
    EXPECT_EQ(one_.Send("x", now_ns_), ErrorCode::kNodeUnreachable);
  }

  uint64_t now_ns_ = 1'000'000'000;
  Peer one_, other_;
};

TEST_F(GreetingTransportTest, CarriesMessagesOnceTheTwoHaveGreeted) {
  one_.Know(other_);
  other_.Know(one_);
  EXPECT_EQ(one_.Connection(), ErrorCode::kWouldBlock);
  EXPECT_EQ(other_.Connection(), ErrorCode::kWouldBlock);
  EXPECT_NE(other_.why.find("has not greeted"), std::string::npos) << other_.why;
  one_.transport().Connect(one_.peer(), now_ns_);
  ASSERT_TRUE(Meanwhile([&] {
    return one_.Connection() == ErrorCode::kOk && other_.Connection() == ErrorCode::kOk;
  }));
  for (int i = 0; i < 100; ++i) {
    Carry(one_, other_, "there " + std::to_string(i));
    Carry(other_, one_, "back " + std::to_string(i));
  }
  ExpectNoLoss();
  EXPECT_EQ(one_.transport().statistics().messages_sent, 100U);
  EXPECT_EQ(one_.transport().statistics().messages_received, 100U);
  EXPECT_EQ(one_.completed, std::vector<ErrorCode>(100, ErrorCode::kOk));
}

TEST_F(GreetingTransportTest, TheFirstPostConnectsAndBothMayCallAtOnce) {
  one_.Know(other_);
  other_.Know(one_);
  EXPECT_EQ(one_.Send("a", now_ns_), ErrorCode::kWouldBlock);
  EXPECT_EQ(other_.Send("b", now_ns_), ErrorCode::kWouldBlock);
  Carry(one_, other_, "a");
  Carry(other_, one_, "b");
  ExpectNoLoss();
}

TEST_F(GreetingTransportTest, WhoIsNotKnownYetIsAnsweredLater) {
  one_.Know(other_);
  one_.transport().Connect(one_.peer(), now_ns_);
  Pass(20'000'000);
  EXPECT_EQ(one_.Connection(), ErrorCode::kWouldBlock);
  EXPECT_NE(one_.why.find("does not answer the greeting"), std::string::npos) << one_.why;
  EXPECT_GT(one_.below().said.size(), 5U);
  other_.Know(one_);
  Carry(one_, other_, "at last");
  ExpectNoLoss();
}

TEST_F(GreetingTransportTest, GreetingsMayGetLost) {
  size_t to_lose = 3;
  const auto loses = [&](const Envelope& envelope) {
    return envelope.kind <= static_cast<uint32_t>(GreetingKind::kWelcome) && to_lose != 0 &&
           to_lose-- != 0;
  };
  one_.below().loses = other_.below().loses = loses;
  ASSERT_NO_FATAL_FAILURE(Connect());
  EXPECT_EQ(to_lose, 0U);
  Carry(one_, other_, "there");
  Carry(other_, one_, "back");
  ExpectNoLoss();
}

TEST_F(GreetingTransportTest, WhoGivesUpIsHeardOf) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  Carry(one_, other_, "there");
  Pass(2 * kTimes.probe_ns);  // all is acknowledged
  one_.transport().FailPeer(one_.peer(), ErrorCode::kLinkDown);
  ASSERT_TRUE(Meanwhile([&] { return !other_.losses.empty(); }));
  EXPECT_EQ(other_.losses, std::vector<bool>{true});
  EXPECT_TRUE(one_.losses.empty());
  EXPECT_EQ(one_.Send("x", now_ns_), ErrorCode::kLinkDown);
  // They may meet again.
  ASSERT_TRUE(one_.transport().RemovePeer(one_.peer()).ok());
  ASSERT_TRUE(other_.transport().RemovePeer(other_.peer()).ok());
  other_.losses.clear();
  ASSERT_NO_FATAL_FAILURE(Connect());
  Carry(one_, other_, "anew");
  Carry(other_, one_, "as well");
  ExpectNoLoss();
}

TEST_F(GreetingTransportTest, WhoBeginsAnewHasGivenTheOldConnectionUp) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  Carry(one_, other_, "there");
  other_.heard.clear();
  one_.below().loses = [](const Envelope& envelope) {
    return envelope.kind == static_cast<uint32_t>(GreetingKind::kGoodbye);
  };
  ASSERT_TRUE(one_.transport().RemovePeer(one_.peer()).ok());
  one_.Know(other_);
  one_.transport().Connect(one_.peer(), now_ns_);
  ASSERT_TRUE(Meanwhile([&] { return !other_.losses.empty(); }));
  EXPECT_EQ(one_.Connection(), ErrorCode::kWouldBlock);
  ASSERT_TRUE(other_.transport().RemovePeer(other_.peer()).ok());
  other_.losses.clear();
  other_.Know(one_);
  Carry(one_, other_, "anew");
  ExpectNoLoss();
}

// The other one was stopped while it was called, and called anew.
TEST_F(GreetingTransportTest, GreetingsOfAnEarlierConnectionMayComeLate) {
  one_.Know(other_);
  one_.transport().Connect(one_.peer(), now_ns_);
  ASSERT_FALSE(one_.below().said.empty());
  const std::vector<std::byte> hello = one_.below().said.front();
  ASSERT_TRUE(one_.transport().RemovePeer(one_.peer()).ok());
  other_.Know(one_);
  Stranger late(other_.below());
  ASSERT_TRUE(Meanwhile([&] {
    late.Say(hello, now_ns_);
    return other_.Connection() == ErrorCode::kOk;
  }));
  one_.Know(other_);
  Carry(one_, other_, "there");
  Carry(other_, one_, "back");
  ExpectNoLoss();
}

TEST_F(GreetingTransportTest, AMessageThatIsMissingEndsTheConnection) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  Carry(one_, other_, "first");
  one_.below().loses = [](const Envelope&) { return true; };
  ASSERT_EQ(one_.Send("second", now_ns_), ErrorCode::kOk);
  one_.below().loses = nullptr;
  ASSERT_EQ(one_.Send("third", now_ns_), ErrorCode::kOk);
  ExpectBothLost();
  EXPECT_EQ(other_.heard, std::vector<std::string>{"first"});
}

TEST_F(GreetingTransportTest, TheLastMessageIsMissed) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  one_.below().loses = [](const Envelope&) { return true; };
  ASSERT_EQ(one_.Send("only", now_ns_), ErrorCode::kOk);
  one_.below().loses = nullptr;
  ExpectBothLost();
  EXPECT_TRUE(other_.heard.empty());
}

TEST_F(GreetingTransportTest, AStoppedPeerIsNoLossAndProbesGetRare) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  ASSERT_EQ(one_.Send("hello?", now_ns_), ErrorCode::kOk);
  const size_t before = one_.below().said.size();
  for (int i = 0; i < 1000; ++i) {  // 50 s, 500 times the time of a probe
    now_ns_ += 50'000'000;
    (void)one_.Poll(now_ns_);
  }
  EXPECT_GE(one_.below().said.size(), before + 5);
  EXPECT_LE(one_.below().said.size(), before + 15);
  ASSERT_TRUE(Meanwhile([&] { return other_.heard.size() == 1; }));
  Carry(one_, other_, "there you are");
  EXPECT_EQ(other_.heard.front(), "hello?");
  Carry(other_, one_, "yes");
  ExpectNoLoss();
}

TEST_F(GreetingTransportTest, WhoeverIsAcknowledgedSaysNoMore) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  Carry(one_, other_, "there");
  Pass(3 * kTimes.probe_ns);
  EXPECT_EQ(one_.transport().NextPollNs(now_ns_), UINT64_MAX);
  EXPECT_EQ(other_.transport().NextPollNs(now_ns_), UINT64_MAX);
  const size_t said = one_.below().said.size() + other_.below().said.size();
  Pass(20 * kTimes.probe_ns);
  EXPECT_EQ(one_.below().said.size() + other_.below().said.size(), said);
  ExpectNoLoss();
}

TEST_F(GreetingTransportTest, RefusesAddressesOfOtherProviders) {
  std::vector<std::byte> address = other_.transport().Address();
  EXPECT_LE(address.size(), kGreetingAddressBytes);
  address[0] ^= std::byte{1};
  EXPECT_EQ(one_.transport().AddPeer(address).status().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(one_.transport().AddPeer(other_.below().Address()).status().code(),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(one_.transport().AddPeer({}).status().code(), ErrorCode::kInvalidArgument);
}

// ---- Strangers ---------------------------------------------------------------------------------

TEST_F(GreetingTransportTest, StrangersGetNowhere) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  Stranger stranger(other_.below());
  std::mt19937 random(1);
  for (int i = 0; i < 500; ++i) {
    std::vector<std::byte> said(random() % 400);
    for (std::byte& byte : said) {
      byte = static_cast<std::byte>(random());
    }
    Envelope envelope;
    envelope.kind = static_cast<uint32_t>(random() % 8);
    envelope.name = static_cast<uint64_t>(other_.peer());  // as if he knew
    envelope.number = static_cast<uint32_t>(random() % 3);
    if (said.size() >= sizeof(envelope) && i % 4 != 0) {
      std::memcpy(said.data(), &envelope, sizeof(envelope));
    }
    stranger.Say(said, now_ns_);
    Carry(one_, other_, "there");
    Carry(other_, one_, "back");
  }
  ExpectNoLoss();
  EXPECT_EQ(other_.heard.size(), 500U);
}

// A greeting of whoever is at `below`, and what makes it one or the other.
struct Greeting {
  Envelope envelope;
  GreetingBody body;

  Greeting(GreetingKind kind, const LossyTransport& below) {
    envelope.kind = static_cast<uint32_t>(kind);
    body.nonce = 9;
    body.address_bytes = static_cast<uint32_t>(below.Address().size());
    std::ranges::copy(below.Address(), body.address.begin());
  }
  std::span<const std::byte> bytes() const { return std::as_bytes(std::span(this, 1)); }
};
static_assert(sizeof(Greeting) == sizeof(Envelope) + sizeof(GreetingBody));

Secret SecretIn(Peer& peer, uint64_t guest) {
  return ReadGreetingAddress(peer.below().Describe().provider, peer.transport().AddressFor(guest))
      ->secret;
}

TEST_F(GreetingTransportTest, ThePeersOfALinkAreNobodyOnAnother) {
  one_.Know(other_, 2, 5);
  Greeting greeting(GreetingKind::kHello, other_.below());
  Stranger third(one_.below());
  for (const Secret& secret : {SecretIn(one_, 3), SecretIn(one_, 0), SecretIn(other_, 5)}) {
    greeting.body.proof = GreetingProof(secret, 0, greeting.body);
    third.Say(greeting.bytes(), now_ns_);
    Pass(3'000'000);
    EXPECT_EQ(one_.Connection(), ErrorCode::kWouldBlock);
  }
  greeting.body.proof = GreetingProof(SecretIn(one_, 2), 0, greeting.body);
  third.Say(greeting.bytes(), now_ns_);
  EXPECT_TRUE(Meanwhile([&] { return one_.Connection() == ErrorCode::kOk; }));
}

// It hears the greeting that is for the peer, and answers it.
TEST_F(GreetingTransportTest, WhoTakesTheAddressOfAPeerIsNotSpokenTo) {
  one_.Know(other_, 2, 5);
  one_.transport().Connect(one_.peer(), now_ns_);
  ASSERT_TRUE(Meanwhile([&] { return !one_.below().said.empty(); }));
  GreetingBody heard;
  std::memcpy(&heard, one_.below().said[0].data() + sizeof(Envelope), sizeof(heard));
  Greeting answer(GreetingKind::kWelcome, other_.below());
  answer.envelope.name = heard.name;
  answer.envelope.secret = heard.secret;
  Stranger thief(one_.below());
  const Secret right = SecretIn(other_, 5);
  for (const Secret& proof :
       {Secret(), heard.proof, GreetingProof(SecretIn(other_, 6), heard.nonce, answer.body),
        GreetingProof(right, heard.nonce + 1, answer.body)}) {
    answer.body.proof = proof;
    thief.Say(answer.bytes(), now_ns_);
    Pass(3'000'000);
    EXPECT_EQ(one_.Connection(), ErrorCode::kWouldBlock);
  }
  answer.body.proof = GreetingProof(right, heard.nonce, answer.body);
  thief.Say(answer.bytes(), now_ns_);
  EXPECT_TRUE(Meanwhile([&] { return one_.Connection() == ErrorCode::kOk; }));
}

// Messages of an earlier connection of the two do not count in this one.
TEST_F(GreetingTransportTest, OldMessagesAreNotHeard) {
  ASSERT_NO_FATAL_FAILURE(Connect());
  Carry(one_, other_, "old");
  const std::vector<std::vector<std::byte>> old = one_.below().said;
  ASSERT_TRUE(one_.transport().RemovePeer(one_.peer()).ok());
  ASSERT_TRUE(Meanwhile([&] { return !other_.losses.empty(); }));
  ASSERT_TRUE(other_.transport().RemovePeer(other_.peer()).ok());
  other_.losses.clear();
  ASSERT_NO_FATAL_FAILURE(Connect());
  Stranger replays(other_.below());
  for (const std::vector<std::byte>& message : old) {
    Envelope envelope;
    std::memcpy(&envelope, message.data(), sizeof(envelope));
    if (envelope.kind != static_cast<uint32_t>(GreetingKind::kHello)) {
      replays.Say(message, now_ns_);
    }
  }
  Pass(10'000'000);
  EXPECT_EQ(other_.heard, std::vector<std::string>{"old"});
  Carry(one_, other_, "new");
  ExpectNoLoss();
}

}  // namespace
}  // namespace ferry::transport
