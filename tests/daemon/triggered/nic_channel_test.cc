// Matched pairs on a NIC with deferred work: two endpoints of `sockets` in one process, each with
// the channels of a daemon.
#include "daemon/triggered/nic_channel.h"

#include <gtest/gtest.h>

#include <string>

#include "common/clock.h"
#include "shm/atomic.h"
#include "shm/counter.h"
#include "tests/daemon/triggered/nic_pairs.h"

namespace ferry::daemon {
namespace {

// Starts rounds in turn and checks each message; the side that starts first alternates.
void RunRounds(Pairs& pairs, uint64_t rounds) {
  for (uint64_t round = 1; round <= rounds; ++round) {
    pairs.Fill(0, round);
    if (round % 2 == 0 && !pairs.options_.ready) {
      pairs.sends[0]->RingTo(round);
      pairs.receives[0]->RingTo(round);
    } else {
      pairs.receives[0]->RingTo(round);
      pairs.sends[0]->RingTo(round);
    }
    ASSERT_TRUE(pairs.PollUntil([&] { return pairs.Done(0, round); })) << "round " << round;
    ASSERT_TRUE(pairs.Arrived(0)) << "round " << round;
    ASSERT_EQ(pairs.send_memory_.DoneOf(0), round);
    ASSERT_EQ(pairs.receive_memory_.DoneOf(0), round);
  }
  ASSERT_TRUE(pairs.PollUntil([&] {
    return pairs.sends[0]->rounds_done() == rounds && pairs.receives[0]->rounds_done() == rounds;
  }));
}

struct Shape {
  const char* name;
  uint64_t bytes;
  bool ready;
  uint32_t entries;
  bool all_on_nic;
};
void PrintTo(const Shape& shape, std::ostream* out) { *out << shape.name; }

class NicChannelShapesTest : public testing::TestWithParam<Shape> {};

TEST_P(NicChannelShapesTest, RoundsCarryTheirMessages) {
  const Shape& shape = GetParam();
  Pairs pairs({.bytes = shape.bytes, .ready = shape.ready, .entries = shape.entries});
  RunRounds(pairs, shape.bytes > kNicPartBytes ? 4 : 20);
  const DeferredPool::Counts& sent = pairs.sender_->pool().counts();
  const DeferredPool::Counts& received = pairs.receiver_->pool().counts();
  if (shape.all_on_nic) {
    EXPECT_EQ(sent.in_software + received.in_software, 0U);
    EXPECT_GT(sent.on_nic, 0U);
  } else {
    EXPECT_GT(sent.in_software, 0U);
    EXPECT_GT(received.in_software, 0U);
  }
  EXPECT_EQ(pairs.sender_->pool().in_use(), 0U) << "nothing is wanted that is not done";
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, NicChannelShapesTest,
    testing::Values(Shape{"Ready", 4096, true, 504, true}, Shape{"Regular", 4096, false, 504, true},
                    Shape{"OneByte", 1, false, 504, true}, Shape{"Empty", 0, false, 504, true},
                    Shape{"EmptyReady", 0, true, 504, true},
                    Shape{"Long", 2 * kNicPartBytes + 5, false, 504, true},
                    Shape{"LongInSoftwarePartly", 2 * kNicPartBytes + 5, false, 1, false},
                    Shape{"InSoftwarePartly", 4096, false, 1, false},
                    Shape{"EmptyInSoftwarePartly", 0, false, 1, false}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(NicChannelTest, NothingIsArmedBeforeItIsWanted) {
  Pairs pairs({.ahead = 3});
  EXPECT_EQ(pairs.sender_->pool().in_use(), 0U);
  pairs.sends[0]->Want(2);
  EXPECT_EQ(pairs.sender_->pool().in_use(), 4U);
  pairs.sends[0]->Want(100);
  EXPECT_EQ(pairs.sender_->pool().in_use(), 6U) << "three rounds ahead";
  pairs.receives[0]->Want(100);
  RunRounds(pairs, 10);
  EXPECT_EQ(pairs.sender_->pool().in_use(), 6U);
  pairs.sender_->Remove(pairs.sends[0]);
  EXPECT_EQ(pairs.sender_->pool().in_use(), 0U);
}

TEST(NicChannelTest, RegularSendWaitsForItsReceiver) {
  Pairs pairs({});
  pairs.Fill(0, 1);
  pairs.sends[0]->RingTo(1);
  const uint64_t until_ns = MonotonicNs() + 20'000'000;
  ASSERT_TRUE(pairs.PollUntil([&] { return MonotonicNs() > until_ns; }));
  EXPECT_EQ(pairs.send_memory_.DoneOf(0), 0U);
  EXPECT_FALSE(pairs.Arrived(0));
  pairs.receives[0]->RingTo(1);
  ASSERT_TRUE(pairs.PollUntil([&] { return pairs.Done(0, 1); }));
}

// All of far more requests than entries start at once: none is lost, none waits for ever.
TEST(NicChannelTest, RequestsBeyondTheEntriesRunInSoftware) {
  constexpr size_t kChannels = 1000;
  constexpr uint64_t kRounds = 10;
  Pairs pairs({.channels = kChannels, .bytes = 64, .entries = 16});
  for (uint64_t round = 1; round <= kRounds; ++round) {
    for (size_t i = 0; i < kChannels; ++i) {
      pairs.Fill(i, round);
      pairs.receives[i]->RingTo(round);
      pairs.sends[i]->RingTo(round);
    }
    ASSERT_LE(pairs.sender_->pool().in_use(), 16U);
    for (size_t i = 0; i < kChannels; ++i) {
      ASSERT_TRUE(pairs.PollUntil([&] { return pairs.Done(i, round); }))
          << "channel " << i << " round " << round;
      ASSERT_TRUE(pairs.Arrived(i)) << "channel " << i << " round " << round;
    }
  }
  const DeferredPool::Counts& counts = pairs.sender_->pool().counts();
  EXPECT_EQ(counts.on_nic + counts.in_software, 2 * kChannels * kRounds);
  EXPECT_GT(counts.on_nic, kRounds);
  EXPECT_GT(counts.in_software, counts.on_nic);
  for (size_t i = 0; i < kChannels; ++i) {
    EXPECT_EQ(pairs.send_memory_.DoneOf(i), kRounds);
    EXPECT_EQ(pairs.receive_memory_.DoneOf(i), kRounds);
  }
}

// ---- Failures

TEST(NicChannelTest, OperationThatTheNicLosesFailsAtItsDeadline) {
  // Armed operations: the write and the increment of round 1, those of round 2, ...
  Pairs pairs({.timeout_ns = 300'000'000, .sender_fault = "nic.arm:3:lose"});
  RunRounds(pairs, 1);
  pairs.receives[0]->RingTo(2);
  pairs.sends[0]->RingTo(2);
  ASSERT_TRUE(pairs.PollUntil([&] { return HasFailed(pairs.send_memory_.DoneOf(0)); }));
  EXPECT_EQ(pairs.sends[0]->error(), ErrorCode::kTimeout);
  EXPECT_EQ(shm::Counter(&pairs.send_memory_.done[0]).error(), ErrorCode::kTimeout);
  EXPECT_EQ(pairs.sends[0]->rounds_done(), 1U);
  EXPECT_EQ(pairs.sender_->pool().in_use(), 0U);
  EXPECT_EQ(pairs.receives[0]->error(), ErrorCode::kOk) << "its owner hears of it otherwise";
  pairs.receives[0]->Fail(ErrorCode::kTimeout);
  EXPECT_TRUE(HasFailed(pairs.receive_memory_.DoneOf(0)));
}

TEST(NicChannelTest, DeadlineRunsFromTheTriggerNotFromArming) {
  Pairs pairs({.timeout_ns = 100'000'000});
  pairs.sends[0]->Want(1);
  pairs.receives[0]->Want(1);
  pairs.sends[0]->RingTo(1);  // the receiver does not come
  uint64_t now_ns = MonotonicNs();
  for (int i = 0; i < 10; ++i) {
    now_ns += 100'000'000;
    pairs.sender_->Poll(now_ns);
  }
  EXPECT_EQ(pairs.sends[0]->error(), ErrorCode::kOk);
  EXPECT_EQ(pairs.sends[0]->next_deadline_ns(), UINT64_MAX);
}

TEST(NicChannelTest, WrongKeyFailsTheChannel) {
  Pairs pairs({.ready = true});
  const NicPlace right = pairs.receives[0]->target();
  NicChannelSpec spec = pairs.Spec(0, /*is_send=*/true);
  spec.name = 77;
  NicChannel* wrong = pairs.sender_->Open(spec);
  wrong->Connect({right.address, right.key + 1});
  wrong->RingTo(1);
  ASSERT_TRUE(pairs.PollUntil([&] { return HasFailed(pairs.send_memory_.DoneOf(0)); }));
  EXPECT_NE(wrong->error(), ErrorCode::kOk);
  EXPECT_NE(wrong->error(), ErrorCode::kTimeout);
}

TEST(NicChannelTest, PeerThatIsGoneFailsTheChannel) {
  Pairs pairs({.ready = true, .timeout_ns = 300'000'000});
  RunRounds(pairs, 2);
  pairs.receiver_.reset();
  pairs.sends[0]->RingTo(3);
  ASSERT_TRUE(pairs.PollUntil([&] { return HasFailed(pairs.send_memory_.DoneOf(0)); }));
  EXPECT_NE(pairs.sends[0]->error(), ErrorCode::kOk);
  EXPECT_EQ(pairs.sends[0]->rounds_done(), 2U);
}

// The even-count rule rests on starts that take turns.
TEST(NicChannelTest, StartBeforeTheLastRoundIsDoneIsRefused) {
  Pairs pairs({.timeout_ns = 50'000'000});
  pairs.sends[0]->RingTo(1);
  pairs.sends[0]->RingTo(2);
  ASSERT_TRUE(pairs.PollUntil([&] { return HasFailed(pairs.send_memory_.DoneOf(0)); }));
  EXPECT_EQ(pairs.sends[0]->error(), ErrorCode::kInvalidRequest);
  EXPECT_FALSE(HasFailed(pairs.receive_memory_.DoneOf(0)));
}

TEST(NicChannelTest, FailureStaysWhateverTheNicWrites) {
  Pairs pairs({});
  pairs.sends[0]->Fail(ErrorCode::kPeerDied);
  EXPECT_TRUE(HasFailed(pairs.send_memory_.DoneOf(0)));
  shm::StoreRelease(pairs.send_memory_.done[0].value,
                    1);  // an increment that was read before the failure
  pairs.sender_->Poll();
  EXPECT_TRUE(HasFailed(pairs.send_memory_.DoneOf(0)));
  EXPECT_EQ(shm::Counter(&pairs.send_memory_.done[0]).error(), ErrorCode::kPeerDied);
  pairs.sends[0]->Fail(ErrorCode::kTimeout);
  EXPECT_EQ(pairs.sends[0]->error(), ErrorCode::kPeerDied) << "the first one stays";
  pairs.sends[0]->RingTo(1);
  EXPECT_EQ(pairs.sender_->pool().in_use(), 0U);
}

TEST(NicChannelTest, ClosedChannelLetsGoOfItsMemory) {
  Pairs pairs({});
  pairs.sends[0]->Want(5);
  pairs.receives[0]->Want(5);
  EXPECT_EQ(
      pairs.sender_->transport().DeregisterMemory(pairs.send_memory_.data_region.handle).code(),
      ErrorCode::kWouldBlock);
  pairs.sender_->Remove(pairs.sends[0]);
  pairs.sender_->Poll();
  EXPECT_TRUE(
      pairs.sender_->transport().DeregisterMemory(pairs.send_memory_.data_region.handle).ok());
  EXPECT_EQ(pairs.sender_->transport().deferred_work()->in_use(), 0U);
  EXPECT_EQ(pairs.send_memory_.DoneOf(0), 0U) << "closing is no failure";
}

TEST(NicChannelTest, WrongSpecsAreRefused) {
  Pairs pairs({});
  const auto refused = [&](auto change) {
    NicChannelSpec spec = pairs.Spec(0, /*is_send=*/true);
    change(&spec);
    return NicChannel::Open(pairs.sender_->resources(), spec).status().code() ==
           ErrorCode::kInvalidArgument;
  };
  EXPECT_TRUE(refused([](NicChannelSpec* s) { s->name = 0; }));
  EXPECT_TRUE(refused([](NicChannelSpec* s) { s->name = kMostNicChannelName + 1; }));
  EXPECT_TRUE(refused([](NicChannelSpec* s) { s->done = nullptr; }));
  EXPECT_TRUE(refused([](NicChannelSpec* s) { s->memory = nullptr; }));
  EXPECT_TRUE(refused([](NicChannelSpec* s) { s->ahead = 0; }));
  EXPECT_TRUE(refused([](NicChannelSpec* s) { s->timeout_ns = 0; }));
  EXPECT_FALSE(refused([](NicChannelSpec*) {}));
}

}  // namespace
}  // namespace ferry::daemon
