#include "daemon/grpc/http2_guard.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/http2_client.h"

namespace ferry::daemon {
namespace {

using http2::Frame;
using http2::FrameType;
using tests::BeginCall;
using tests::Http2Greeting;
using tests::ResetCall;

constexpr uint64_t kSecond = 1'000'000'000;
constexpr uint64_t kManyCalls = 1'000'000;
const std::string kFields = tests::CallFields("/ferry.control.Launcher/Status");
const std::string kAcknowledgement = Frame(FrameType::kSettings, http2::kAck, 0, {});
const std::string kServerSettings = Frame(FrameType::kSettings, 0, 0, std::string(6, '\1'));

std::string Answer(uint32_t call) {
  return Frame(FrameType::kHeaders, http2::kEndHeaders | http2::kEndStream, 2 * call + 1, kFields);
}
std::string Data(uint32_t call, size_t size, uint8_t flags = 0) {
  return Frame(FrameType::kData, flags, 2 * call + 1, std::string(size, 'd'));
}

// A client behind the guard: what of its words has come through.
class Client {
 public:
  explicit Client(std::shared_ptr<Http2Caller> caller) : guard_(std::move(caller)) {}

  // In pieces of one size, the last of which is the rest. The number of bytes that wait.
  size_t Say(std::string_view text, size_t piece = 1 << 20) {
    for (; !text.empty(); text.remove_prefix(std::min(piece, text.size()))) {
      waiting_ += text.substr(0, piece);
      Retry();
    }
    return waiting_.size();
  }
  size_t Retry() {
    const Http2Guard::Verdict verdict =
        guard_.OnClientSaid(std::as_bytes(std::span(waiting_)), now_ns);
    passed_ += waiting_.substr(0, verdict.may_pass);
    waiting_.erase(0, verdict.may_pass);
    refusal_ = verdict.refusal == nullptr ? "" : verdict.refusal;
    return waiting_.size();
  }
  void Hear(std::string_view text) { guard_.OnServerSaid(std::as_bytes(std::span(text))); }
  void Leave() { guard_.Leave(now_ns); }
  const std::string& passed() const { return passed_; }
  const std::string& refusal() const { return refusal_; }

  uint64_t now_ns = 100 * kSecond;

 private:
  Http2Guard guard_;
  std::string waiting_;
  std::string passed_;
  std::string refusal_;
};

class Http2GuardTest : public ::testing::Test {
 protected:
  static std::shared_ptr<Http2Caller> Caller(uint64_t calls = kManyCalls) {
    return std::make_shared<Http2Caller>(calls);
  }
  // How many of these frames a client may send at once, of so many.
  static size_t CountPassed(const std::string& before, const std::string& frame, size_t count) {
    Client client(Caller());
    client.Say(Http2Greeting() + before);
    size_t waiting = 0;
    for (size_t i = 0; i < count; ++i) {
      waiting = client.Say(frame);
    }
    EXPECT_EQ(client.refusal(), "");
    return count - waiting / frame.size();
  }

  Client client_{Caller()};
};

TEST_F(Http2GuardTest, PassesOnWhatClientsWriteHoweverItIsCut) {
  std::string text = Http2Greeting() + kAcknowledgement;
  for (uint32_t call = 0; call < kCallsOfConnection; ++call) {
    text += BeginCall(call, kFields) + Data(call, 300, http2::kEndStream);
  }
  for (const size_t piece : {1, 2, 8, 9, 10, 25, 1000, 100'000}) {
    Client client(Caller());
    size_t waiting = client.Say(text, piece);
    for (int second = 0; waiting != 0 && second < 1'000; ++second) {
      client.now_ns += kSecond;  // very small pieces are slowed down
      waiting = client.Retry();
    }
    EXPECT_EQ(client.refusal(), "") << piece;
    EXPECT_TRUE(client.passed() == text) << piece;
  }
}

TEST_F(Http2GuardTest, CallsThatAreAnsweredMakeRoomForOthers) {
  client_.Say(Http2Greeting());
  client_.Hear(kServerSettings);
  client_.Say(kAcknowledgement);
  for (uint32_t call = 0; call < 10 * kCallsOfConnection; ++call) {
    EXPECT_EQ(client_.Say(BeginCall(call, kFields) + Data(call, 10, http2::kEndStream)), 0U);
    client_.Hear(Answer(call));
  }
  EXPECT_EQ(client_.refusal(), "");
}

TEST_F(Http2GuardTest, MoreOpenCallsThanTheServerAllowsEndTheConnection) {
  client_.Say(Http2Greeting());
  for (uint32_t call = 0; call < kCallsOfConnection; ++call) {
    client_.Say(BeginCall(call, kFields));
  }
  EXPECT_EQ(client_.refusal(), "");
  client_.Say(BeginCall(kCallsOfConnection, kFields));
  EXPECT_EQ(client_.refusal(), "it has more calls open than it may");
  client_.Say("more");
  EXPECT_NE(client_.refusal(), "") << "it stays so";
}

TEST_F(Http2GuardTest, FieldsThatDoNotFitIntoOneFrameEndTheConnection) {
  const std::string long_fields(8'193, '\0');
  const std::vector<std::string> bad = {
      Frame(FrameType::kHeaders, 0, 1, kFields),
      Frame(FrameType::kHeaders, http2::kEndHeaders, 1, long_fields),
      Frame(FrameType::kContinuation, 0, 1, {}),
      Frame(FrameType::kPushPromise, http2::kEndHeaders, 1, kFields),
      Frame(FrameType::kSettings, 0, 0, std::string(1'026, '\0')),
      Frame(static_cast<FrameType>(77), 0, 0, std::string(1'025, '\0')),
  };
  for (const std::string& frame : bad) {
    Client client(Caller());
    client.Say(Http2Greeting());
    client.Hear(kServerSettings);
    client.Say(kAcknowledgement);
    const size_t before = client.passed().size();
    client.Say(frame, 10);
    EXPECT_NE(client.refusal(), "");
    EXPECT_LT(client.passed().size(), before + http2::kFrameHeaderBytes) << "nothing of it passes";
  }
}

TEST_F(Http2GuardTest, WhoDoesNotGreetIsNotListenedTo) {
  const std::string greeting = Http2Greeting();
  for (const std::string& bad :
       {std::string("GET /metrics HTTP/1.1\r\n"), greeting.substr(1), greeting.substr(0, 23) + "x",
        std::string(http2::kClientPreface) + BeginCall(0, kFields)}) {
    Client client(Caller());
    client.Say(bad, 5);
    EXPECT_NE(client.refusal(), "") << bad;
  }
  client_.Say(greeting.substr(0, greeting.size() - 1));
  EXPECT_EQ(client_.refusal(), "");
}

TEST_F(Http2GuardTest, LongFieldsAreForWhoHasAcknowledgedTheSettings) {
  const std::string call = BeginCall(0, std::string(2'000, '\xbe'));
  client_.Say(Http2Greeting() + kAcknowledgement);  // of what the server has not said yet
  client_.Hear(kServerSettings);
  Client other(Caller());
  other.Say(Http2Greeting());
  other.Hear(kServerSettings);
  other.Say(kAcknowledgement + call);
  EXPECT_EQ(other.refusal(), "");
  client_.Say(call);
  EXPECT_EQ(client_.refusal(),
            "it sends long header fields before it has acknowledged the settings");
}

TEST_F(Http2GuardTest, FramesThatSayLittleAreRationed) {
  const std::string opened = BeginCall(0, kFields);
  const std::string reset = ResetCall(0);
  const std::string empty = Frame(FrameType::kSettings, 0, 0, {});
  const std::string ping = Frame(FrameType::kPing, 0, 0, "12345678");
  const std::string priority = Frame(FrameType::kPriority, 0, 1, std::string(5, '\1'));
  const std::string window = Frame(FrameType::kWindowUpdate, 0, 1, std::string("\0\0\0\1", 4));
  const std::string unknown = Frame(static_cast<FrameType>(77), 0, 0, "?");
  for (const std::string& frame :
       {reset, empty, ping, priority, window, unknown, Data(0, 0), Data(0, 1), opened}) {
    EXPECT_GT(CountPassed(opened, frame, 5'000), 1'500U) << "type " << int{frame[3]};
    EXPECT_LT(CountPassed(opened, frame, 5'000), 2'500U) << "type " << int{frame[3]};
  }
  // Of a call that has ended: of one that has not, the bytes count.
  EXPECT_EQ(CountPassed(opened, Data(1, 1'024), 5'000), 5'000U);
}

TEST_F(Http2GuardTest, TheRationComesAgain) {
  const std::string ping = Frame(FrameType::kPing, 0, 0, "12345678");
  client_.Say(Http2Greeting());
  size_t waiting = 0;
  for (int i = 0; i < 5'000; ++i) {
    waiting = client_.Say(ping);
  }
  client_.now_ns += kSecond;
  const size_t after = client_.Retry();
  EXPECT_EQ((waiting - after) / ping.size(), 1'000U);
  client_.now_ns += 10 * kSecond;
  EXPECT_LT(client_.Retry(), 2 * ping.size());
  client_.now_ns += kSecond;
  EXPECT_EQ(client_.Retry(), 0U);
}

TEST_F(Http2GuardTest, AllConnectionsOfACallerHaveOneRation) {
  const auto caller = Caller();
  const std::string ping = Frame(FrameType::kPing, 0, 0, "12345678");
  size_t passed = 0;
  for (int connection = 0; connection < 100; ++connection) {
    Client client(caller);
    size_t waiting = client.Say(Http2Greeting());
    for (int i = 0; i < 1'000; ++i) {
      waiting = client.Say(ping);
    }
    passed += 1'000 - std::min<size_t>(waiting / ping.size(), 1'000);
  }
  EXPECT_GT(passed, 59'000U);
  EXPECT_LT(passed, 60'100U);
  Client other(Caller());
  EXPECT_EQ(other.Say(Http2Greeting() + ping), 0U);
}

TEST_F(Http2GuardTest, CallsThatAreResetKeepTheirPlacesForAWhile) {
  constexpr uint64_t kPlaces = 20;
  const auto caller = Caller(kPlaces);
  Client client(caller);
  client.Say(Http2Greeting());
  uint32_t call = 0;
  for (; call < kPlaces; ++call) {
    EXPECT_EQ(client.Say(BeginCall(call, kFields) + ResetCall(call)), 0U);
  }
  EXPECT_NE(client.Say(BeginCall(call, kFields)), 0U);
  client.now_ns += kSecond / 200;
  EXPECT_EQ(client.Retry(), 0U);
  EXPECT_NE(client.Say(BeginCall(++call, kFields)), 0U) << "only one is free";
  client.now_ns += kSecond;
  EXPECT_EQ(client.Retry(), 0U);
  EXPECT_EQ(client.refusal(), "");
}

TEST_F(Http2GuardTest, SoDoCallsThatAreLeft) {
  constexpr uint64_t kPlaces = 20;
  const auto caller = Caller(kPlaces);
  for (uint32_t connection = 0; connection < kPlaces; ++connection) {
    Client client(caller);
    EXPECT_EQ(client.Say(Http2Greeting() + BeginCall(0, kFields)), 0U);
    client.Leave();
  }
  Client client(caller);
  EXPECT_NE(client.Say(Http2Greeting() + BeginCall(0, kFields)), 0U);
  EXPECT_FALSE(caller->IsFresh(client.now_ns));
  client.now_ns += kSecond;
  EXPECT_EQ(client.Retry(), 0U);
  client.Hear(Answer(0));
  client.now_ns += kSecond;
  EXPECT_TRUE(caller->IsFresh(client.now_ns));
}

TEST_F(Http2GuardTest, RequestsOfACallerAreBoundedAndOneOfThemAlwaysGoesOn) {
  constexpr size_t kPiece = 64 << 10;
  const auto caller = Caller();
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 40; ++i) {
    clients.push_back(std::make_unique<Client>(caller));
    clients.back()->Say(Http2Greeting() + BeginCall(0, kFields));
    clients.back()->Say(Data(0, kPiece));
  }
  size_t passed = 0;
  for (const auto& client : clients) {
    passed += client->Retry() == 0 ? 1 : 0;
  }
  EXPECT_EQ(passed, 16U);  // a MiB
  EXPECT_EQ(clients[0]->Say(Data(0, kPiece, http2::kEndStream)), 0U);
  EXPECT_NE(clients[1]->Say(Data(0, kPiece, http2::kEndStream)), 0U);
  clients[0]->Hear(Answer(0));
  EXPECT_EQ(clients[1]->Retry(), 0U);
  for (auto& client : clients) {
    client->Leave();
  }
  Client later(caller);
  later.now_ns += kSecond;
  EXPECT_EQ(later.Say(Http2Greeting() + BeginCall(0, kFields) + Data(0, kPiece)), 0U);
}

TEST_F(Http2GuardTest, OneConnectionHasNoMoreThanTwiceAsMuch) {
  client_.Say(Http2Greeting());
  uint32_t calls = 0;
  for (; calls < 10; ++calls) {
    client_.Say(BeginCall(calls, kFields));
    if (client_.Say(Data(calls, 512 << 10, http2::kEndStream)) != 0) {
      break;
    }
  }
  EXPECT_EQ(calls, 4U);  // 2 MiB
  client_.Hear(Answer(0));
  EXPECT_EQ(client_.Retry(), 0U);
  EXPECT_EQ(client_.refusal(), "");
}

// The server may have begun to read it, and what it makes of it is the larger part.
TEST_F(Http2GuardTest, ARequestWhoseCallIsResetCountsForAWhile) {
  const auto caller = Caller();
  Client client(caller);
  client.Say(Http2Greeting());
  for (uint32_t call = 0; call < 2; ++call) {
    EXPECT_EQ(client.Say(BeginCall(call, kFields) + Data(call, 512 << 10, http2::kEndStream)), 0U);
    EXPECT_EQ(client.Say(ResetCall(call)), 0U);
  }
  EXPECT_NE(client.Say(BeginCall(2, kFields) + Data(2, 512 << 10, http2::kEndStream)), 0U);
  client.now_ns += kSecond / 10;
  EXPECT_NE(client.Retry(), 0U);
  client.now_ns += kSecond / 2;
  EXPECT_EQ(client.Retry(), 0U);
}

TEST_F(Http2GuardTest, ARequestLargerThanAnyEndsTheConnection) {
  client_.Say(Http2Greeting() + BeginCall(0, kFields));
  client_.Say(Data(0, 1 << 20));
  EXPECT_EQ(client_.refusal(), "");
  client_.Say(Data(0, 1));
  EXPECT_EQ(client_.refusal(), "a request has more than 1 MiB");
}

// Each rank makes one connection, each ferryrun two (docs/operations.md).
TEST_F(Http2GuardTest, JobsOfOneUserThatStartTogetherDoNotWait) {
  const auto caller = Caller();
  const auto start = [&](uint64_t now_ns, int ranks) {
    size_t waiting = 0;
    for (int connection = 0; connection < ranks + 2; ++connection) {
      Client client(caller);
      client.now_ns = now_ns;
      waiting += client.Say(Http2Greeting());
      client.Leave();
    }
    return waiting;
  };
  uint64_t now_ns = 100 * kSecond;
  for (int job = 0; job < 30; ++job) {
    EXPECT_EQ(start(now_ns, 128), 0U) << "job " << job << " of 128 ranks";
  }
  now_ns += 10 * kSecond;
  for (int job = 0; job < 3'000; ++job) {  // a loop of short programs
    now_ns += kSecond / 300;
    EXPECT_EQ(start(now_ns, 1), 0U) << "start " << job;
  }
}

}  // namespace
}  // namespace ferry::daemon
