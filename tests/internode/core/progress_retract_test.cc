// Sends between nodes that are cancelled: an unmatched one comes back, whatever the receiver does;
// and no rank takes back another's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "shm/atomic.h"
#include "tests/internode/core/progress_fixture.h"

namespace ferry::daemon {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr uint64_t kBytes = 200'000;
constexpr int32_t kTag = 7;

class ProgressRetractTest : public PlaneTest {
 protected:
  PlaneRank& sender() { return rank(0); }
  PlaneRank& receiver() { return rank(1); }
  uint32_t SentRts(uint32_t seed, bool in_heap = true, uint64_t bytes = kBytes) {
    data_ = Pattern(bytes, seed);
    std::memcpy(sender().heap(), data_.data(), bytes);
    return sender().SendFrom(1, kTag, in_heap ? InHeap(0) : Private(data_.data()), bytes);
  }
  // The receiver may attach later.
  void StartWithoutReceiver() {
    StartPlanes({1, 1}, FastOptions());
    AttachAlone(0);
  }
  // An unmatched RTS that has been cancelled.
  uint32_t RtsAndCancel() {
    const uint32_t send = SentRts(1);
    EXPECT_TRUE(sender().Cancel(send));
    return send;
  }
  uint32_t Post() { return receiver().Receive(0, kTag, InHeap(0), kBytes); }
  bool Arrived() { return std::memcmp(receiver().heap(), data_.data(), data_.size()) == 0; }
  shm::RequestState StateOf(uint32_t receive) {
    return static_cast<shm::RequestState>(shm::LoadAcquire(receiver().Slot(receive).state));
  }
  void ExpectNoHarm() {
    EXPECT_THAT(told_.Get(&Told::violations), IsEmpty());
    EXPECT_THAT(told_.Get(&Told::failed_jobs), IsEmpty());
  }
  void ExpectViolation(const std::string& words) {
    ASSERT_TRUE(Eventually([&] { return !told_.Get(&Told::violations).empty(); }));
    EXPECT_THAT(told_.violations, ElementsAre(HasSubstr(words)));
  }

  std::vector<std::byte> data_;
};

// Only the sender's thread runs here: the receiver calls nothing until the send has ended.
TEST_F(ProgressRetractTest, AReceiverThatCallsNothingGivesItBack) {
  if (in_own_home) {
    GTEST_SKIP() << "no worker looks after ranks there";
  }
  ASSERT_NO_FATAL_FAILURE(Start({1, 1}));
  for (const bool in_heap : {true, false}) {
    for (const uint64_t bytes : {kBytes, uint64_t{9000}}) {
      SCOPED_TRACE(std::to_string(bytes) + (in_heap ? " in the heap" : " in private memory"));
      if (in_heap && bytes <= shm::kRunBytes) {
        continue;  // its data goes with the RTS
      }
      const uint32_t cancelled = SentRts(1, in_heap, bytes);
      EXPECT_TRUE(sender().Cancel(cancelled));
      EXPECT_EQ(sender().Wait(cancelled), ErrorCode::kCancelled);
      const uint32_t receive = Post();
      EXPECT_FALSE(receiver().Test(receive));
      const uint32_t send = SentRts(2, in_heap, bytes);
      ExpectEnd({0, 1, send, receive});
      EXPECT_TRUE(Arrived());
    }
  }
  ExpectNoHarm();
}

// The data that went with the RTS lies with the receiver: the send ends well, matched or not.
TEST_F(ProgressRetractTest, WhatTravelledWithItsRtsIsSent) {
  ASSERT_NO_FATAL_FAILURE(Start({1, 1}));
  const uint32_t send = SentRts(1, true, 20'000);
  EXPECT_TRUE(sender().Cancel(send));
  EXPECT_EQ(sender().Wait(send), ErrorCode::kOk);
  EXPECT_EQ(WaitTogether(1, Post()), ErrorCode::kOk);
  EXPECT_TRUE(Arrived());
  ExpectNoHarm();
}

TEST_F(ProgressRetractTest, WhatIsBeingFetchedIsReceived) {
  ASSERT_NO_FATAL_FAILURE(Start({1, 1}));
  gate(1).closed = true;
  const uint32_t receive = Post();
  const uint32_t send = SentRts(1);
  ASSERT_TRUE(Meanwhile([&] { return gate(1).held > 0; }));
  EXPECT_TRUE(sender().Cancel(send));
  gate(1).closed = false;
  ExpectEnd({0, 1, send, receive});
  EXPECT_TRUE(Arrived());
  ExpectNoHarm();
}

// The retraction waits behind its RTS.
TEST_F(ProgressRetractTest, ARankThatAttachesLaterGivesItBack) {
  if (in_own_home) {
    GTEST_SKIP() << "no worker looks after ranks there";
  }
  StartWithoutReceiver();
  const uint32_t send = RtsAndCancel();
  ASSERT_TRUE(Eventually([&] { return plane(1).Nic().messages_received >= 2; }));
  EXPECT_FALSE(sender().Test(send));
  AttachAlone(1);
  EXPECT_EQ(sender().Wait(send), ErrorCode::kCancelled);
  EXPECT_FALSE(receiver().Test(Post()));
  ExpectNoHarm();
}

TEST_F(ProgressRetractTest, ALostNodeEndsTheWaitByItsName) {
  for (const ErrorCode error : {ErrorCode::kNodeUnreachable, ErrorCode::kLinkDown}) {
    StartWithoutReceiver();  // and no rank there can answer
    const uint32_t send = RtsAndCancel();
    ASSERT_TRUE(Eventually([&] { return plane(1).Nic().messages_received >= 2; }));
    EXPECT_FALSE(sender().Test(send));
    plane(0).NodeFailed(Incarnation(1), error);
    EXPECT_EQ(sender().Wait(send), error);
    Stop();
  }
}

TEST_F(ProgressRetractTest, ADeadReceiverEndsTheWait) {
  StartWithoutReceiver();
  const uint32_t send = RtsAndCancel();
  plane(1).RankEnded(kJob, 1, ErrorCode::kPeerDied);
  plane(0).RankEnded(kJob, 1, ErrorCode::kPeerDied);
  EXPECT_EQ(sender().Wait(send), ErrorCode::kPeerDied);
}

// A send is cancelled or received, never both and never neither, whichever is first.
TEST_F(ProgressRetractTest, MatchAndRetractionRace) {
  if (in_own_home) {
    GTEST_SKIP() << "the race is with the worker";
  }
  ASSERT_NO_FATAL_FAILURE(Start({1, 1}));
  std::mt19937 random(22);
  enum Order : uint32_t { kPostsFirst, kPostsThenCancels, kRaces, kOrders };
  uint32_t races_cancelled = 0;
  uint32_t races_received = 0;
  for (uint32_t round = 0; round < 300 || races_cancelled == 0 || races_received == 0; ++round) {
    ASSERT_LT(round, 30'000U) << races_cancelled << " cancelled, " << races_received << " received";
    const auto order = static_cast<Order>(random() % kOrders);
    uint32_t receive = order == kPostsFirst ? Post() : 0;
    const uint64_t before = plane(1).Nic().messages_received;
    uint32_t send = SentRts(2 * round, round % 2 == 0);
    receive = order == kPostsThenCancels ? Post() : receive;
    if (order != kRaces) {
      for (uint32_t turns = random() % 40; turns > 0; --turns) {
        ProgressAll();
      }
    }
    EXPECT_TRUE(sender().Cancel(send) || sender().Test(send));
    if (order == kRaces) {  // the RTS is there, and the retraction about to come
      ASSERT_TRUE(Eventually([&] { return plane(1).Nic().messages_received > before; }));
      for (uint32_t turns = random() % 400; turns > 0; --turns) {
        sender().Progress();
      }
      receive = Post();
    }
    const ErrorCode end = WaitTogether(0, send);
    ASSERT_TRUE(end == ErrorCode::kOk || end == ErrorCode::kCancelled) << static_cast<int>(end);
    if (end == ErrorCode::kCancelled) {
      races_cancelled += order == kRaces ? 1 : 0;
      ASSERT_EQ(StateOf(receive), shm::RequestState::kPosted) << "no part of it is received";
      send = SentRts(2 * round + 1);
      ASSERT_EQ(WaitTogether(1, receive), ErrorCode::kOk);
      ASSERT_EQ(WaitTogether(0, send), ErrorCode::kOk);
    } else {
      races_received += order == kRaces ? 1 : 0;
      ASSERT_EQ(WaitTogether(1, receive), ErrorCode::kOk);
    }
    ASSERT_TRUE(Arrived()) << round;
  }
  ExpectNoHarm();
}

// ---- What no correct rank says ------------------------------------------------------------------

shm::Descriptor Command(shm::DescriptorKind kind, uint32_t destination, const shm::RemoteRts& rts) {
  shm::Descriptor command = MakeCommand(kind, rts);
  command.destination = destination;
  command.tag = kTag;
  return command;
}

TEST_F(ProgressRetractTest, ARankGivesBackOnlyWhatIsRetracted) {
  ASSERT_NO_FATAL_FAILURE(Start({1, 1}));
  receiver().PushToDaemon(
      Command(shm::DescriptorKind::kRetracted, 0, {0, 0, uint64_t{77} << 32, {}}));  // no RTS
  (void)SentRts(1);
  const uint32_t other = Post();
  EXPECT_EQ(WaitTogether(1, other), ErrorCode::kOk);
  ExpectNoHarm();
  (void)SentRts(2);
  ASSERT_TRUE(Eventually([&] {
    receiver().Progress();
    return receiver().engine().receives().HasUnexpected();
  }));
  const uint64_t first_id_of_second_use = uint64_t{1} << 32;  // SlotMap
  receiver().PushToDaemon(
      Command(shm::DescriptorKind::kRetracted, 0, {0, 0, first_id_of_second_use, {}}));
  ExpectViolation("has not retracted it");
}

TEST_F(ProgressRetractTest, ARankRetractsOnlyItsRequests) {
  ASSERT_NO_FATAL_FAILURE(Start({2, 1}));
  const uint32_t send = rank(0).SendFrom(2, kTag, InHeap(0), kBytes);
  // The neighbour names the same request: it has announced nothing by its own, so nothing is said.
  rank(1).PushToDaemon(
      Command(shm::DescriptorKind::kRetract, 2, {send, rank(0).Slot(send).generation, 0, {}}));
  const uint32_t receive = rank(2).Receive(0, kTag, InHeap(0), kBytes);
  ExpectEnd({0, 2, send, receive});
  ExpectNoHarm();
  rank(1).PushToDaemon(Command(shm::DescriptorKind::kRetract, 2, {~0U, 1, 0, {}}));
  ExpectViolation("a retraction of request 4294967295");
}

}  // namespace
}  // namespace ferry::daemon
