#include "daemon/triggered/nic_mover.h"

#include <gtest/gtest.h>

#include <string>

#include "common/clock.h"
#include "shm/atomic.h"
#include "shm/counter.h"
#include "tests/daemon/triggered/nic_nodes.h"

namespace ferry::daemon {
namespace {

// Starts rounds in turn and checks each message; the side that starts first alternates.
void RunRounds(NicNodes& nodes, uint64_t rounds, bool is_ready = false) {
  for (uint64_t round = 1; round <= rounds; ++round) {
    if (round % 2 == 0 && !is_ready) {
      nodes.Fill(0, round);
      nodes.sends[0].Start(round);
      nodes.receives[0].Start(round);
    } else {
      nodes.Start(0, round);
    }
    ASSERT_NO_FATAL_FAILURE(nodes.ExpectArrives(0, round));
  }
  ASSERT_TRUE(nodes.PollUntil([&] {
    return nodes.sends[0].pair().rounds == rounds && nodes.receives[0].pair().rounds == rounds;
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

class NicMoverShapesTest : public testing::TestWithParam<Shape> {};

TEST_P(NicMoverShapesTest, RoundsCarryTheirMessages) {
  const Shape& shape = GetParam();
  NicNodes nodes({.entries = shape.entries}, {.entries = shape.entries});
  nodes.Add(shape.bytes, shape.ready);
  RunRounds(nodes, shape.bytes > kNicChunkBytes ? 4 : 20, shape.ready);
  const DeferredPool::Counts sent = nodes.a->counts();
  const DeferredPool::Counts received = nodes.b->counts();
  if (shape.all_on_nic) {
    EXPECT_EQ(sent.in_software + received.in_software, 0U);
    EXPECT_GT(sent.on_nic, 0U);
  } else {
    EXPECT_GT(sent.in_software, 0U);
    EXPECT_GT(received.in_software, 0U);
  }
  EXPECT_EQ(nodes.a->pool().in_use(), 0U) << "nothing is wanted that is not done";
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, NicMoverShapesTest,
    testing::Values(Shape{"Ready", 4096, true, 504, true}, Shape{"Regular", 4096, false, 504, true},
                    Shape{"OneByte", 1, false, 504, true}, Shape{"Empty", 0, false, 504, true},
                    Shape{"EmptyReady", 0, true, 504, true},
                    Shape{"Long", 2 * kNicChunkBytes + 5, false, 504, true},
                    Shape{"LongInSoftwarePartly", 2 * kNicChunkBytes + 5, false, 1, false},
                    Shape{"InSoftwarePartly", 4096, false, 1, false},
                    Shape{"EmptyInSoftwarePartly", 0, false, 1, false}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(NicMoverTest, NothingIsArmedBeforeItIsWanted) {
  NicNodes nodes;
  nodes.Add(4096);
  ASSERT_TRUE(nodes.Settle());
  nodes.a->Poll();
  EXPECT_EQ(nodes.a->pool().in_use(), 0U);
  nodes.sends[0].Announce(1);
  nodes.a->Poll();
  EXPECT_EQ(nodes.a->pool().in_use(), 2U);
  nodes.sends[0].Announce(100);
  nodes.a->Poll();
  EXPECT_EQ(nodes.a->pool().in_use(), 2 * kRoundsAhead);
  nodes.receives[0].Announce(100);
  for (uint64_t round = 1; round <= 10; ++round) {
    shm::StoreRelease(nodes.sends[0].words->start.value, round);
    shm::StoreRelease(nodes.receives[0].words->start.value, round);
    ASSERT_NO_FATAL_FAILURE(nodes.ExpectArrives(0, round));
  }
  ASSERT_TRUE(nodes.PollUntil([&] { return nodes.sends[0].pair().rounds == 10; }));
  EXPECT_EQ(nodes.a->pool().in_use(), 2 * kRoundsAhead);
  nodes.a->Close(1);
  EXPECT_EQ(nodes.a->pool().in_use(), 0U);
}

TEST(NicMoverTest, RegularSendWaitsForItsReceiver) {
  NicNodes nodes;
  nodes.Add(4096);
  ASSERT_TRUE(nodes.Settle());
  nodes.Fill(0, 1);
  nodes.sends[0].Start(1);
  const uint64_t until_ns = MonotonicNs() + 20'000'000;
  ASSERT_TRUE(nodes.PollUntil([&] { return MonotonicNs() > until_ns; }));
  EXPECT_EQ(nodes.sends[0].Done(), 0U);
  EXPECT_FALSE(nodes.Arrived(0));
  nodes.receives[0].Start(1);
  ASSERT_NO_FATAL_FAILURE(nodes.ExpectArrives(0, 1));
}

// All of far more requests than entries start at once: none is lost, none waits for ever.
TEST(NicMoverTest, RequestsBeyondTheEntriesRunInSoftware) {
  constexpr size_t kPairs = 1000;
  constexpr uint64_t kRounds = 10;
  NicNodes nodes({.entries = 16}, {.entries = 16});
  for (size_t i = 0; i < kPairs; ++i) {
    nodes.Add(64);
  }
  for (uint64_t round = 1; round <= kRounds; ++round) {
    for (size_t i = 0; i < kPairs; ++i) {
      nodes.Start(i, round);
    }
    nodes.a->Poll();
    ASSERT_LE(nodes.a->pool().in_use(), 16U);
    for (size_t i = 0; i < kPairs; ++i) {
      ASSERT_NO_FATAL_FAILURE(nodes.ExpectArrives(i, round));
    }
  }
  const DeferredPool::Counts counts = nodes.a->counts();
  EXPECT_EQ(counts.on_nic + counts.in_software, 2 * kPairs * kRounds);
  EXPECT_GT(counts.on_nic, kRounds);
  EXPECT_GT(counts.in_software, counts.on_nic);
}

// ---- Coming and going ---------------------------------------------------------------------------

// The first round is started before anything is connected.
TEST(NicMoverTest, RanksOnlyWriteDoorbells) {
  constexpr size_t kPairs = 6;
  constexpr uint64_t kRounds = 10;
  NicNodes nodes;
  for (size_t i = 0; i < kPairs; ++i) {
    nodes.Add(i * 1000, /*is_ready=*/i % 2 == 1);
  }
  for (uint64_t round = 1; round <= kRounds; ++round) {
    for (size_t i = 0; i < kPairs; ++i) {
      nodes.Start(i, round);
    }
    for (size_t i = 0; i < kPairs; ++i) {
      ASSERT_NO_FATAL_FAILURE(nodes.ExpectArrives(i, round));
    }
  }
  EXPECT_EQ(nodes.a->opened.size(), kPairs);
  ASSERT_TRUE(nodes.PollUntil([&] { return !nodes.a->watches_any() && !nodes.b->watches_any(); }))
      << "nothing is due, nor armed";
  EXPECT_EQ(nodes.sends[0].pair().rounds, kRounds);
  EXPECT_EQ(nodes.receives[kPairs - 1].pair().rounds, kRounds);
  EXPECT_EQ(nodes.a->counts().in_software, 0U);
  EXPECT_TRUE(nodes.a->failed.empty());
  nodes.sends[0].Announce(kRounds + 1);
  nodes.a->Poll();
  EXPECT_TRUE(nodes.a->watches_any()) << "a stream may start it at any moment";
}

// A stream stores once, the daemon adds once, and the NIC has one counter for all of them.
TEST(NicMoverTest, ReadySendsOfOneDoorbellHaveOneTrigger) {
  constexpr size_t kPairs = 6;
  constexpr uint64_t kRounds = 10;
  NicNodes nodes;
  for (size_t i = 0; i < kPairs; ++i) {
    nodes.Add(3000, /*is_ready=*/true);
    nodes.sends[i].Share(NicNodes::kDoorbell);
  }
  const auto& work = nodes.a->deferred().statistics();
  for (uint64_t round = 1; round <= kRounds; ++round) {
    for (size_t i = 0; i < kPairs; ++i) {
      nodes.Fill(i, round);
      nodes.receives[i].Start(round);
      nodes.sends[i].Announce(round);
    }
    shm::StoreRelease(nodes.doorbell().value, round);  // in the first round before all are open
    for (size_t i = 0; i < kPairs; ++i) {
      ASSERT_NO_FATAL_FAILURE(nodes.ExpectArrives(i, round));
    }
  }
  EXPECT_EQ(work.rings, kRounds);
  EXPECT_EQ(work.counters, 2 * kPairs + 1) << "two for the ends of each, and the trigger";
  EXPECT_EQ(nodes.a->counts().in_software, 0U);
  for (size_t i = 0; i < kPairs; ++i) {
    nodes.a->Close(kPairs - i);
  }
  ASSERT_TRUE(nodes.PollUntil([&] { return nodes.a->leaving.empty() && work.counters == 0; }));
}

TEST(NicMoverTest, DoorbellThatIsNoneBreaksThePair) {
  NicNodes nodes;
  nodes.Add(100, /*is_ready=*/true);
  nodes.sends[0].Share(/*doorbell=*/1 << 20);
  nodes.sends[0].Start(1);
  ASSERT_TRUE(nodes.PollUntil([&] { return nodes.a->failed.contains(1); }));
  EXPECT_EQ(nodes.a->failed.at(1), ErrorCode::kCorrupt);
}

TEST(NicMoverTest, DoorbellWhoseStreamHasFailedBreaksThePair) {
  NicNodes nodes;
  nodes.Add(100);
  nodes.sends[0].Announce(1);
  shm::Counter(&nodes.sends[0].words->start).Fail(ErrorCode::kCancelled);
  ASSERT_TRUE(nodes.PollUntil([&] { return nodes.a->failed.contains(1); }));
  EXPECT_EQ(nodes.a->failed.at(1), ErrorCode::kCancelled);
}

TEST(NicMoverTest, ClosedEndsGiveTheirMemoryBack) {
  NicNodes nodes;
  nodes.Add(5000);
  ASSERT_NO_FATAL_FAILURE(RunRounds(nodes, 1));
  nodes.sends[0].Start(2);
  nodes.a->Poll();  // armed, and waits for its receiver
  EXPECT_GT(nodes.a->pool().in_use(), 0U);
  nodes.a->Close(1);
  nodes.b->Close(1);
  ASSERT_TRUE(nodes.PollUntil([&] {
    return nodes.a->leaving.empty() && nodes.b->leaving.empty() &&
           nodes.sends[0].message.use_count() == 1 && nodes.receives[0].message.use_count() == 1;
  }));
  EXPECT_EQ(nodes.a->pool().in_use(), 0U);
  EXPECT_EQ(nodes.a->deferred().in_use(), 0U);
  EXPECT_EQ(nodes.a->gate->pinned.load(), 1U) << "but for the eight bytes of DeferredNic itself";
  EXPECT_EQ(nodes.sends[0].Done(), 1U) << "closing is no failure";
}

TEST(NicMoverTest, EndsThatWaitForEachOtherLetGoOfTheirMemory) {
  NicNodes nodes;
  nodes.Add(4096);
  ASSERT_TRUE(nodes.Settle());
  nodes.sends[0].Announce(5);
  nodes.receives[0].Announce(5);
  nodes.a->Poll();
  nodes.b->Poll();
  EXPECT_GT(nodes.a->deferred().in_use(), 0U);
  nodes.a->Close(1);
  ASSERT_TRUE(nodes.PollUntil(
      [&] { return nodes.a->leaving.empty() && nodes.sends[0].message.use_count() == 1; }));
  EXPECT_EQ(nodes.a->deferred().in_use(), 0U);
  EXPECT_EQ(nodes.sends[0].Done(), 0U) << "closing is no failure";
}

TEST(NicMoverTest, EndMayBeClosedWhileItsMemoryIsPinned) {
  NicNodes nodes;
  nodes.a->gate->pins_slowly = true;
  nodes.Make(100);
  ASSERT_TRUE(nodes.Open(nodes.sends[0], /*is_send=*/true, /*is_ready=*/false));
  nodes.a->gate->pinning.wait(0);
  nodes.a->Close(1);
  nodes.a->Poll();
  EXPECT_EQ(nodes.a->gate->pinning.load(), 1U);
  nodes.a->gate->PinAtOnce();
  ASSERT_TRUE(nodes.PollUntil([&] {
    return nodes.a->leaving.empty() && nodes.a->gate->begun.load() == 2 &&
           nodes.a->gate->pinning.load() == 0 && nodes.a->gate->pinned.load() == 1;
  })) << "the eight bytes of DeferredNic itself stay";
  EXPECT_TRUE(nodes.a->opened.empty());
}

TEST(NicMoverTest, MemoryThatTheNicDoesNotTakeIsRefusedBeforeAnythingMoves) {
  NicNodes nodes;
  nodes.a->gate->refuses = true;
  nodes.Make(100);
  ASSERT_TRUE(nodes.Open(nodes.sends[0], /*is_send=*/true, /*is_ready=*/false));
  nodes.sends[0].Start(1);
  ASSERT_TRUE(nodes.PollUntil([&] { return !nodes.a->refused.empty(); }));
  EXPECT_TRUE(nodes.a->opened.empty());
  EXPECT_EQ(nodes.sends[0].Done(), 0U) << "its messages may still be moved otherwise";
}

// ---- Failures -----------------------------------------------------------------------------------

TEST(NicMoverTest, OperationThatTheNicLosesFailsAtItsDeadline) {
  // Armed operations: the write and the increment of round 1, those of round 2, ...
  NicNodes nodes({.fault = "nic.arm:3:lose", .timeout_ns = 300'000'000});
  nodes.Add(4096);
  RunRounds(nodes, 1);
  nodes.Start(0, 2);
  ASSERT_TRUE(nodes.PollUntil([&] { return HasFailed(nodes.sends[0].Done()); }));
  EXPECT_EQ(nodes.a->failed.at(1), ErrorCode::kTimeout);
  EXPECT_EQ(nodes.sends[0].error(), ErrorCode::kTimeout);
  EXPECT_EQ(nodes.sends[0].pair().rounds, 1U);
  EXPECT_EQ(nodes.a->pool().in_use(), 0U);
  EXPECT_TRUE(nodes.b->failed.empty()) << "its daemon hears of it otherwise";
  nodes.b->Fail(1, ErrorCode::kTimeout);
  EXPECT_TRUE(HasFailed(nodes.receives[0].Done()));
}

TEST(NicMoverTest, DeadlineRunsFromTheTriggerNotFromArming) {
  NicNodes nodes({.timeout_ns = 100'000'000});
  nodes.Add(4096);
  ASSERT_TRUE(nodes.Settle());
  nodes.receives[0].Announce(1);
  nodes.sends[0].Start(1);  // the receiver does not come
  uint64_t now_ns = MonotonicNs();
  for (int i = 0; i < 10; ++i) {
    now_ns += 100'000'000;
    nodes.a->Poll(now_ns);
  }
  EXPECT_TRUE(nodes.a->failed.empty());
  EXPECT_EQ(nodes.sends[0].pair().deadline_ns, UINT64_MAX);
}

TEST(NicMoverTest, WrongKeyBreaksThePair) {
  NicNodes nodes;
  nodes.Add(4096, /*is_ready=*/true);
  ASSERT_TRUE(nodes.Settle());
  nodes.a->other = nullptr;
  nodes.Make(4096);
  ASSERT_TRUE(nodes.Open(nodes.sends[1], /*is_send=*/true, /*is_ready=*/true));
  const NicPlace right = nodes.b->opened.at(1);
  nodes.a->Connect(2, {right.address, right.key + 1});
  nodes.sends[1].Start(1);
  ASSERT_TRUE(nodes.PollUntil([&] { return HasFailed(nodes.sends[1].Done()); }));
  EXPECT_NE(nodes.a->failed.at(2), ErrorCode::kTimeout);
}

TEST(NicMoverTest, FailureIsToldOnceAndInTheDoneWord) {
  NicNodes nodes;
  nodes.a->other = nullptr;
  nodes.Make(100);
  ASSERT_TRUE(nodes.Open(nodes.sends[0], /*is_send=*/true, /*is_ready=*/true));
  nodes.a->Connect(1, {0, 12345});  // there is no such key
  nodes.sends[0].Start(1);
  ASSERT_TRUE(nodes.PollUntil([&] { return nodes.a->failed.contains(1); }));
  EXPECT_TRUE(nodes.a->opened.contains(1));
  EXPECT_TRUE(HasFailed(nodes.sends[0].Done()));
  EXPECT_EQ(nodes.sends[0].error(), nodes.a->failed.at(1));
  nodes.a->Close(1);
  ASSERT_TRUE(nodes.PollUntil([&] { return nodes.a->leaving.empty(); }));
}

TEST(NicMoverTest, PeerThatIsGoneBreaksThePair) {
  NicNodes nodes({.timeout_ns = 300'000'000});
  nodes.Add(4096, /*is_ready=*/true);
  RunRounds(nodes, 2, /*is_ready=*/true);
  nodes.a->other = nullptr;
  nodes.b.reset();
  nodes.sends[0].Start(3);
  ASSERT_TRUE(nodes.PollUntil([&] { return HasFailed(nodes.sends[0].Done()); }));
  EXPECT_TRUE(nodes.a->failed.contains(1));
  EXPECT_EQ(nodes.sends[0].pair().rounds, 2U);
}

// The even-count rule rests on starts that take turns.
TEST(NicMoverTest, StartBeforeTheLastRoundIsDoneIsRefused) {
  NicNodes nodes({.timeout_ns = 50'000'000});
  nodes.Add(4096);
  ASSERT_TRUE(nodes.Settle());
  nodes.sends[0].Start(1);
  nodes.a->Poll();
  nodes.sends[0].Start(2);
  ASSERT_TRUE(nodes.PollUntil([&] { return HasFailed(nodes.sends[0].Done()); }));
  EXPECT_EQ(nodes.a->failed.at(1), ErrorCode::kInvalidRequest);
  EXPECT_FALSE(HasFailed(nodes.receives[0].Done()));
}

TEST(NicMoverTest, FailureStaysWhateverTheNicWrites) {
  NicNodes nodes;
  nodes.Add(4096);
  ASSERT_TRUE(nodes.Settle());
  nodes.a->Fail(1, ErrorCode::kPeerDied);
  EXPECT_TRUE(HasFailed(nodes.sends[0].Done()));
  // An increment that was read before the failure.
  shm::StoreRelease(nodes.sends[0].words->done.value, 1);
  nodes.a->Poll();
  EXPECT_TRUE(HasFailed(nodes.sends[0].Done()));
  EXPECT_EQ(nodes.sends[0].error(), ErrorCode::kPeerDied);
  nodes.sends[0].Start(1);
  nodes.a->Poll();
  EXPECT_EQ(nodes.a->pool().in_use(), 0U);
}

}  // namespace
}  // namespace ferry::daemon
