// Messages whose data follows their RTS at once, and data that announces carry. Rank 0 is the
// test's; rank 1 has an engine.
#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <vector>

#include "shm/atomic.h"
#include "shm/lane.h"
#include "tests/internode/core/wired_cores.h"

namespace ferry::daemon {
namespace {

using shm::Descriptor;
using shm::DescriptorKind;

constexpr uint64_t kBytes = 100'000;

class ProgressPushTest : public WiredCoresTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(Start(/*by_link=*/false, {1}));
    answers_ = shm::LaneConsumer(rank(0).view().inbox.lane(shm::DaemonLane(1)));
    arrivals_ = shm::LaneConsumer(rank(1).view().inbox.lane(shm::DaemonLane(1)));
  }

  // Rank 0 sends what lies in its memory, which is in no region.
  void Push(std::vector<std::byte>& data, uint32_t request = 1, uint8_t flags = shm::kFlagPushed) {
    shm::RemoteRts rts{};
    rts.send_request = request;
    rts.send_generation = 1;
    rts.where = Private(data.data());
    Descriptor command = MakeCommand(DescriptorKind::kRemoteRts, rts);
    command.flags = flags | shm::kFlagSourcePrivate;
    command.destination = 1;
    command.tag = kTag;
    command.size_bytes = data.size();
    rank(0).PushToDaemon(command);
  }
  // The daemon's next answer to rank 0 that is not credit.
  const Descriptor* NextAnswer() {
    const Descriptor* next = answers_.Peek();
    while (next != nullptr && next->kind == static_cast<uint8_t>(DescriptorKind::kCredit)) {
      answers_.Pop();
      next = answers_.Peek();
    }
    return next;
  }
  // The end of its send, if rank 0 has been told.
  std::optional<ErrorCode> TakeAnswer(uint32_t request = 1) {
    const Descriptor* const next = NextAnswer();
    if (next == nullptr) {
      return std::nullopt;
    }
    EXPECT_EQ(next->kind, static_cast<uint8_t>(DescriptorKind::kSendDone));
    shm::TransferResult result;
    std::memcpy(&result, next->payload, sizeof(result));
    answers_.Pop();
    EXPECT_EQ(result.request, request);
    return static_cast<ErrorCode>(result.error);
  }
  void ExpectSent(uint32_t request = 1) {
    EXPECT_EQ(TakeAnswer(request), ErrorCode::kOk);
    EXPECT_EQ(NextAnswer(), nullptr) << "a send has one end";
  }
  uint32_t Receive(std::vector<std::byte>& buffer) { return WiredCoresTest::Receive(1, buffer); }
  void ExpectReceived(uint32_t request, ErrorCode error = ErrorCode::kOk) {
    WiredCoresTest::ExpectReceived(1, request, error);
  }

  shm::LaneConsumer answers_;   // of rank 0
  shm::LaneConsumer arrivals_;  // of rank 1, which its engine drains
};

TEST_F(ProgressPushTest, DataLandsInTheBufferOfAReceiveThatWaits) {
  std::vector<std::byte> sent = Pattern(kBytes, 1), got(kBytes);
  const uint32_t receive = Receive(got);
  Push(sent);
  Turn();
  ASSERT_EQ(ends_[1]->places.size(), 1U);
  EXPECT_EQ(ends_[1]->places[0], got.data());
  Settle();
  ExpectReceived(receive);
  EXPECT_EQ(got, sent);
  ExpectSent();
  EXPECT_EQ(ends_[1]->reads(), 0U);
  EXPECT_TRUE(cores_[0]->control().Idle() && cores_[1]->control().Idle());
}

TEST_F(ProgressPushTest, ASendIsOverOnceTheTransportHasItAll) {
  std::vector<std::byte> sent = Pattern(kBytes, 1), got(kBytes);
  ends_[0]->holds_reports = true;
  Push(sent);
  Settle();
  EXPECT_FALSE(TakeAnswer());
  EXPECT_FALSE(cores_[0]->control().Idle());
  ends_[0]->holds_reports = false;
  Settle(/*progresses=*/false);  // the receiver need do nothing
  ExpectSent();
  const uint32_t receive = Receive(got);
  Settle();
  ExpectReceived(receive);
  EXPECT_EQ(got, sent);
  EXPECT_EQ(NextAnswer(), nullptr);
}

TEST_F(ProgressPushTest, AMessageThatNobodyWaitsForIsKept) {
  std::vector<std::byte> sent = Pattern(kBytes, 1), got(kBytes);
  Push(sent);
  Settle();
  ExpectSent();
  std::fill(sent.begin(), sent.end(), std::byte{});  // it is the sender's own again
  const uint32_t receive = Receive(got);
  Settle();
  ExpectReceived(receive);
  EXPECT_EQ(got, Pattern(kBytes, 1));
  EXPECT_EQ(NextAnswer(), nullptr);
}

TEST_F(ProgressPushTest, AReceiveThatComesInTheMiddleWaitsForTheRest) {
  std::vector<std::byte> sent = Pattern(kBytes, 1), got(kBytes);
  ends_[1]->holds_data = true;
  Push(sent);
  Settle();
  const uint32_t receive = Receive(got);
  Settle();
  EXPECT_FALSE(rank(1).Test(receive));
  EXPECT_STREQ(cores_[1]->control().Inspect(kJob, 1).transfers.at(0).wants,
               "the rest of the message");
  ends_[1]->holds_data = false;
  Settle();
  ExpectReceived(receive);
  EXPECT_EQ(got, sent);
  ExpectSent();
}

// As the rank's thread may be inside its library when the head comes.
TEST_F(ProgressPushTest, AReceiveThatIsMatchedLateTakesWhatIsKept) {
  std::vector<std::byte> sent = Pattern(kBytes, 1), got(kBytes);
  matches_ = false;
  const uint32_t receive = Receive(got);
  Push(sent);
  Turn();
  ASSERT_EQ(ends_[1]->places.size(), 1U);
  EXPECT_NE(ends_[1]->places[0], got.data());
  Settle();
  ExpectReceived(receive);
  EXPECT_EQ(got, sent);
  ExpectSent();
}

TEST_F(ProgressPushTest, AShortBufferTakesWhatFits) {
  std::vector<std::byte> sent = Pattern(kBytes, 1);
  for (const uint64_t bytes : {kBytes / 3, uint64_t{0}}) {
    for (const bool waits : {true, false}) {
      std::vector<std::byte> got(bytes + 1, std::byte{77});
      got.resize(bytes);
      uint32_t receive = waits ? Receive(got) : 0;
      Push(sent);
      Settle();
      receive = waits ? receive : Receive(got);
      Settle();
      ExpectReceived(receive, ErrorCode::kTruncated);
      EXPECT_TRUE(std::equal(got.begin(), got.end(), sent.begin()));
      ExpectSent();
    }
  }
  EXPECT_TRUE(cores_[1]->control().Idle());
}

TEST_F(ProgressPushTest, ComesWholeWhereTheTransportDoesNotAsk) {
  std::vector<std::byte> sent = Pattern(kBytes, 1), got(kBytes);
  ends_[1]->lands_in_place = false;
  for (const bool waits : {true, false}) {
    uint32_t receive = waits ? Receive(got) : 0;
    Push(sent);
    Settle();
    receive = waits ? receive : Receive(got);
    Settle();
    ExpectReceived(receive);
    EXPECT_EQ(got, sent);
    ExpectSent();
  }
  EXPECT_EQ(ends_[1]->heads, 0U);
}

// Packets before a head in its frame are taken first, and once.
TEST_F(ProgressPushTest, KeepsTheOrderOfMessages) {
  std::vector<std::byte> sent = Pattern(kBytes, 1);
  std::vector<std::vector<std::byte>> got(6);
  std::vector<uint32_t> receives;
  for (size_t i = 0; i < got.size(); ++i) {
    got[i].resize(kBytes);
    receives.push_back(Receive(got[i]));
  }
  for (uint32_t i = 0; i < got.size(); i += 2) {
    Descriptor eager{};
    eager.kind = static_cast<uint8_t>(DescriptorKind::kEager);
    eager.destination = 1;
    eager.tag = kTag;
    eager.size_bytes = 1;
    eager.payload[0] = static_cast<uint8_t>(i);
    rank(0).PushToDaemon(eager);
    Push(sent, 1 + i);
  }
  Settle();
  for (size_t i = 0; i < got.size(); ++i) {
    ExpectReceived(receives[i]);
    if (i % 2 == 0) {
      EXPECT_EQ(got[i][0], static_cast<std::byte>(i));
    } else {
      EXPECT_EQ(got[i], sent);
      EXPECT_EQ(TakeAnswer(static_cast<uint32_t>(i)), ErrorCode::kOk);
    }
  }
}

// The receiver must know by a flag which sends wait for an answer: never by their sizes.
TEST_F(ProgressPushTest, WhatIsNotPushedIsAnsweredOfWhateverSize) {
  ends_[0]->lands_in_place = ends_[1]->lands_in_place = true;
  for (const uint64_t bytes :
       {uint64_t{1}, uint64_t{100}, uint64_t{8192}, kBytes, uint64_t{600'000}}) {
    for (const int flags :
         {0, int{shm::kFlagSynchronous}, shm::kFlagSynchronous | shm::kFlagPushed}) {
      std::vector<std::byte> sent = Pattern(bytes, 1), got(bytes);
      Push(sent, 1, static_cast<uint8_t>(flags));
      Settle(/*progresses=*/false);
      if (flags != 0 || bytes > shm::kRunBytes) {
        EXPECT_FALSE(TakeAnswer()) << bytes << ", " << flags;
      }
      const uint32_t receive = Receive(got);
      Settle();
      ExpectReceived(receive);
      EXPECT_EQ(got, sent);
      ExpectSent();
    }
  }
}

TEST_F(ProgressPushTest, WhatIsTooLongIsFetchedAndKeepsItsFlag) {
  std::vector<std::byte> sent = Pattern(600'000, 1), got(600'000);
  Push(sent);
  Settle(/*progresses=*/false);
  ASSERT_NE(arrivals_.Peek(), nullptr);
  EXPECT_NE(arrivals_.Peek()->flags & shm::kFlagPushed, 0) << "its receiver has to count it";
  EXPECT_FALSE(TakeAnswer());
  const uint32_t receive = Receive(got);
  Settle();
  ExpectReceived(receive);
  EXPECT_EQ(got, sent);
  EXPECT_NE(ends_[1]->reads(), 0U);
  ExpectSent();
}

TEST_F(ProgressPushTest, MemoryThatIsNotReachedIsNotPushed) {
  std::vector<std::byte> sent = Pattern(kBytes, 1), got(kBytes);
  reaches_ = false;
  Push(sent);
  const uint32_t receive = Receive(got);
  Settle();
  ExpectReceived(receive, ErrorCode::kUnsupported);  // nor staged here
  EXPECT_TRUE(ends_[1]->places.empty());
}

// ---- Data that an RTS carries

TEST_F(ProgressPushTest, CarriedDataGoesStraightIntoCells) {
  const auto* const lane = reinterpret_cast<const shm::LaneLayout*>(
      sessions_[1]->inbox_map.base() + shm::InboxLaneOffset(shm::DaemonLane(1)));
  std::vector<std::byte> sent = Pattern(50'000, 1), got(50'000);
  ends_[1]->holds_data = true;
  Push(sent, 1, 0);
  Settle();
  ASSERT_EQ(ends_[1]->places.size(), 1U);
  EXPECT_GE(ends_[1]->places[0], lane->cells);
  EXPECT_LT(ends_[1]->places[0], lane->cells + shm::kLaneCells);
  EXPECT_EQ(arrivals_.Peek(), nullptr) << "nobody hears of it before it is there";
  ends_[1]->holds_data = false;
  Settle();
  ExpectSent();
  const uint32_t receive = Receive(got);
  Settle();
  ExpectReceived(receive);
  EXPECT_EQ(got, sent);
}

TEST_F(ProgressPushTest, CarriedDataThatFindsNoCellsWaitsInTheCore) {
  std::vector<std::byte> sent = Pattern(50'000, 1);
  std::vector<std::vector<std::byte>> got(12);
  for (uint32_t i = 0; i < got.size(); ++i) {
    Push(sent, 1 + i, 0);
    Settle(/*progresses=*/false);
  }
  for (std::vector<std::byte>& buffer : got) {
    buffer.resize(sent.size());
    const uint32_t receive = Receive(buffer);
    Settle();
    ExpectReceived(receive);
    EXPECT_EQ(buffer, sent);
  }
  for (uint32_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(TakeAnswer(1 + i), ErrorCode::kOk);
  }
  EXPECT_EQ(NextAnswer(), nullptr);
}

TEST_F(ProgressPushTest, CellsOfDataThatDoesNotComeAreFreeAgain) {
  std::vector<std::byte> sent = Pattern(50'000, 1);
  for (int life = 1; life <= 12; ++life) {  // more than there are cells for
    ends_[1]->holds_data = true;
    Push(sent, 1, 0);
    Settle();
    ASSERT_EQ(ends_[1]->places.size(), 1U);
    ends_[1]->places.clear();
    CutWire();
    ends_[1]->holds_data = false;
    Settle();
    shm::StoreRelease(rank(0).view().layout->deaths_applied,
                      shm::LoadAcquire(rank(0).view().inbox.wake()->death_epoch));
    Mend(static_cast<uint64_t>(life));
  }
  std::vector<std::byte> got(sent.size());
  const uint32_t first = Receive(got);
  Settle();
  ExpectReceived(first, ErrorCode::kLinkDown);  // each rank is told of a cut once
  const uint32_t receive = Receive(got);
  Push(sent, 1, 0);
  Settle();
  ExpectReceived(receive);
  EXPECT_EQ(got, sent);
}

// ---- What breaks it off ------------------------------------------------------------------------

TEST_F(ProgressPushTest, ACutInTheMiddleEndsTheReceive) {
  std::vector<std::byte> sent = Pattern(kBytes, 1), got(kBytes);
  for (const bool waits : {true, false}) {
    SCOPED_TRACE(waits);
    uint32_t receive = waits ? Receive(got) : 0;
    ends_[1]->holds_data = true;
    Push(sent);
    Settle();
    receive = waits ? receive : Receive(got);
    Settle();
    EXPECT_FALSE(rank(1).Test(receive));
    CutWire();
    Settle();
    ASSERT_TRUE(rank(1).Test(receive));
    EXPECT_EQ(rank(1).Wait(receive), ErrorCode::kLinkDown);
    EXPECT_TRUE(cores_[1]->control().Idle());
    if (waits) {
      TearDown();
      ASSERT_NO_FATAL_FAILURE(SetUp());
    }
  }
}

// A sender may take as long as it likes.
TEST_F(ProgressPushTest, ARankThatGoesInTheMiddleIsLetGoOfThoughTheRestDoesNotCome) {
  std::vector<std::byte> sent = Pattern(kBytes, 1), got(kBytes);
  (void)Receive(got);
  ends_[1]->holds_data = true;
  Push(sent);
  Settle();
  ASSERT_EQ(ends_[1]->places, std::vector<void*>{got.data()});
  bool says_no_more = false;
  bool is_gone = false;
  for (int n = 0; n < 5 && !is_gone; ++n) {
    is_gone = cores_[1]->control().TryRemoveSession(kJob, 1, 0, &says_no_more);
    Turn();
  }
  EXPECT_TRUE(is_gone);
  const std::vector<std::byte> then = got;
  ends_[1]->holds_data = false;
  Settle(/*progresses=*/false);
  EXPECT_EQ(got, then);
  EXPECT_NE(got, sent);
}

TEST_F(ProgressPushTest, MoreThanMayBeKeptEndsTheReceiver) {
  std::vector<std::byte> sent = Pattern(kBytes, 1);
  for (uint32_t request = 1; request <= 5; ++request) {
    Push(sent, request);
  }
  Settle();
  ASSERT_EQ(violations_.size(), 1U);
  EXPECT_EQ(violations_[0], "too many unexpected messages");
}

}  // namespace
}  // namespace ferry::daemon
