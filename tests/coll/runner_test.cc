#include "coll/runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "coll/algorithms/algorithm.h"
#include "coll/schedule_builder.h"
#include "tests/coll/collective_case.h"
#include "tests/coll/simulated_world.h"

namespace ferry::collective {
namespace {

Range Output(size_t offset, size_t size) { return {Place::kOutput, offset, size}; }

std::shared_ptr<const Schedule> Finish(ScheduleBuilder* builder) {
  return std::make_shared<const Schedule>(builder->Finish());
}

// Two ranks: 0 sends `sent` bytes, 1 expects `expected`.
RunFailure Exchange(size_t sent, size_t expected) {
  SimulatedWorld world(2, 1);
  ScheduleBuilder sender;
  ScheduleBuilder receiver;
  sender.Send(1, Output(0, sent));
  receiver.Receive(0, Output(0, expected));
  std::unique_ptr<CollectiveRun> runs[] = {world.runner(0).Prepare(Finish(&sender)),
                                           world.runner(1).Prepare(Finish(&receiver))};
  char buffers[2][16] = {};
  EXPECT_TRUE(world.Play(
      [&](int rank) {
        world.runner(rank).Start(runs[rank].get(), {nullptr, buffers[rank], nullptr}, 0);
      },
      [&](int rank) { return runs[rank]->is_done(); }));
  EXPECT_EQ(runs[0]->failure().code, ErrorCode::kOk);
  return runs[1]->failure();
}

TEST(RunnerTest, MessageOfTheWrongSizeIsAFailure) {
  EXPECT_EQ(Exchange(8, 8).code, ErrorCode::kOk);
  const RunFailure less = Exchange(4, 8);
  EXPECT_EQ(less.code, ErrorCode::kTruncated);
  EXPECT_EQ(less.mismatch, RunFailure::Mismatch::kSize);
  EXPECT_EQ(less.peer, 0);
  EXPECT_EQ(less.expected_bytes, 8u);
  EXPECT_EQ(less.received_bytes, 4u);
  EXPECT_EQ(Exchange(12, 8).mismatch, RunFailure::Mismatch::kSize);
}

// Starts of one run may need it in host memory or on devices.
TEST(RunnerTest, ScratchMemoryLiesWhereTheReductionIs) {
  SimulatedWorld world(1, 1);
  ScheduleBuilder builder;
  const Range scratch = builder.Scratch(8);
  builder.Copy(Output(0, 8), scratch);
  builder.Copy(scratch, Output(8, 8));
  const auto run = world.runner(0).Prepare(Finish(&builder));
  for (const int device : {kHostMemory, kHostMemory, 0, 0, 1, kHostMemory}) {
    char buffer[16] = "1234567";
    world.runner(0).Start(run.get(), {.output = buffer, .device = device}, 0);
    ASSERT_TRUE(run->is_done());
    EXPECT_EQ(run->failure().code, ErrorCode::kOk);
    EXPECT_STREQ(buffer + 8, "1234567");
    EXPECT_EQ(world.scratch_blocks(), 1u);
  }
  EXPECT_THAT(world.scratch_devices(), testing::ElementsAre(kHostMemory, 0, 1, kHostMemory));
}

TEST(RunnerTest, KnowsWhoseMessagesAreMissing) {
  SimulatedWorld world(3, 1);
  ScheduleBuilder builder;
  builder.Send(1, Output(0, 8));
  builder.Receive(2, Output(8, 8));
  Runner& runner = world.runner(0);
  const auto run = runner.Prepare(Finish(&builder));
  char buffer[16] = {};
  EXPECT_FALSE(runner.WaitsForMessageFrom(2));
  runner.Start(run.get(), {.output = buffer}, 0);
  EXPECT_TRUE(runner.WaitsForMessageFrom(2));
  EXPECT_FALSE(runner.WaitsForMessageFrom(1)) << "it is only sent to";
}

TEST(RunnerTest, RunWithoutStepsIsDoneAtOnce) {
  SimulatedWorld world(1, 1);
  ScheduleBuilder builder;
  const auto run = world.runner(0).Prepare(Finish(&builder));
  world.runner(0).Start(run.get(), {}, 0);
  EXPECT_TRUE(run->is_done());
  EXPECT_FALSE(world.runner(0).is_busy());
}

TEST(RunnerTest, ScratchIsKeptForTheNextStartAndFreedWithTheRun) {
  SimulatedWorld world(1, 1);
  ScheduleBuilder builder;
  const Range scratch = builder.Scratch(8);
  builder.Copy(Output(0, 8), scratch);
  builder.Copy(scratch, Output(8, 8));
  auto run = world.runner(0).Prepare(Finish(&builder));
  char buffer[] = "abcdefgh--------";
  for (int i = 0; i < 3; ++i) {
    world.runner(0).Start(run.get(), {nullptr, buffer, nullptr}, 0);
    EXPECT_EQ(world.scratch_blocks(), 1u);
  }
  EXPECT_STREQ(buffer, "abcdefghabcdefgh");
  run.reset();
  EXPECT_EQ(world.scratch_blocks(), 0u);
}

// A messenger that has room for so many sends, each of which is over at once.
class NarrowMessenger : public Messenger {
 public:
  ErrorCode StartSend(int peer, uint32_t /*tag*/, const void* /*data*/, size_t /*size_bytes*/,
                      Ticket* /*ticket*/) override {
    if (room == 0) {
      return ErrorCode::kWouldBlock;
    }
    --room;
    sent.push_back(peer);
    return ErrorCode::kOk;
  }
  ErrorCode StartReceive(int, uint32_t, void*, size_t, Ticket*, size_t*) override {
    return ErrorCode::kUnsupported;
  }
  ErrorCode Test(Ticket, size_t*) override { return ErrorCode::kUnsupported; }
  ErrorCode Copy(void* to, const void* from, size_t size_bytes) override {
    std::memcpy(to, from, size_bytes);
    return ErrorCode::kOk;
  }
  void* AllocateScratch(size_t, int) override { return nullptr; }
  void FreeScratch(void*) override {}

  size_t room = 0;
  std::vector<int> sent;  // to whom
};

TEST(RunnerTest, MessagesThatFindNoRoomWaitInOrder) {
  NarrowMessenger messenger;
  messenger.room = 1;
  Runner runner(&messenger);
  ScheduleBuilder builder;
  for (const int peer : {1, 2, 3}) {
    builder.Send(peer, Output(0, 4));
  }
  builder.Fence();
  builder.Send(4, Output(0, 4));
  ScheduleBuilder other;
  other.Copy(Output(0, 4), Output(4, 4));
  other.Send(5, Output(4, 4));
  const auto run = runner.Prepare(Finish(&builder));
  const auto second = runner.Prepare(Finish(&other));
  char buffer[] = "abcd----";
  runner.Start(run.get(), {.output = buffer}, 0);
  runner.Start(second.get(), {.output = buffer}, 1);
  EXPECT_THAT(messenger.sent, testing::ElementsAre(1));
  EXPECT_STREQ(buffer, "abcdabcd") << "a copy needs no room";
  EXPECT_FALSE(runner.Advance());
  EXPECT_TRUE(runner.is_busy());
  EXPECT_FALSE(runner.waits_for_one());
  messenger.room = 1;
  EXPECT_TRUE(runner.Advance());
  EXPECT_THAT(messenger.sent, testing::ElementsAre(1, 2));
  messenger.room = 3;
  EXPECT_TRUE(runner.Advance());
  EXPECT_THAT(messenger.sent, testing::ElementsAre(1, 2, 3, 5, 4));
  EXPECT_TRUE(run->is_done());
  EXPECT_TRUE(second->is_done());
  EXPECT_FALSE(runner.is_busy());
  EXPECT_EQ(runner.ended_runs(), 2u);
}

// A messenger to which nothing comes. Sends are over at once.
class SilentMessenger : public NarrowMessenger {
 public:
  ErrorCode StartSend(int peer, uint32_t tag, const void* data, size_t size_bytes,
                      Ticket* ticket) override {
    room = 1;
    sizes.push_back(size_bytes);
    return NarrowMessenger::StartSend(peer, tag, data, size_bytes, ticket);
  }
  ErrorCode StartReceive(int peer, uint32_t, void*, size_t, Ticket* ticket, size_t*) override {
    *ticket = static_cast<Ticket>(peer);
    return ErrorCode::kOk;
  }
  ErrorCode Test(Ticket ticket, size_t*) override {
    return cancelled.erase(ticket) != 0 ? ErrorCode::kCancelled : ErrorCode::kWouldBlock;
  }
  void Cancel(Ticket ticket) override { cancelled.insert(ticket); }

  std::set<Ticket> cancelled;
  std::vector<size_t> sizes;  // of what was sent
};

// The run ends, and tells the others that it has failed: by a message of another size.
TEST(RunnerTest, APeerThatTakesNoPartIsCancelled) {
  SilentMessenger messenger;
  Runner runner(&messenger);
  ScheduleBuilder builder;
  builder.Receive(1, Output(0, 4));
  builder.Fence();
  builder.Send(2, Output(0, 4));
  const auto run = runner.Prepare(Finish(&builder));
  char buffer[8] = {};
  runner.Start(run.get(), {.output = buffer}, 0);
  runner.CancelMessagesWith(2);
  EXPECT_FALSE(runner.Advance());
  EXPECT_TRUE(runner.WaitsForMessageFrom(1));
  runner.CancelMessagesWith(1);
  EXPECT_TRUE(runner.Advance());
  EXPECT_TRUE(run->is_done());
  EXPECT_EQ(run->failure().code, ErrorCode::kCancelled);
  EXPECT_EQ(run->failure().peer, 1);
  EXPECT_THAT(messenger.sent, testing::ElementsAre(2));
  EXPECT_THAT(messenger.sizes, testing::ElementsAre(0u));
}

TEST(RunnerTest, RunsOfOneCommunicatorDoNotMix) {
  constexpr int kSize = 5;
  constexpr uint32_t kAtOnce = 6;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SimulatedWorld world(kSize, seed);
    std::vector<std::vector<CaseRank>> cases;
    std::vector<Runs> runs;
    CaseReducer reducer(false);
    const Algorithm* const algorithm = FindAlgorithm(Collective::kAllreduce, "recursive_doubling");
    for (uint32_t i = 0; i < kAtOnce; ++i) {
      cases.push_back(MakeCase({.collective = Collective::kAllreduce,
                                .size = kSize,
                                .count = 4,
                                .commutative = false,
                                .seed = seed * 100 + i}));
      runs.push_back(PrepareRuns(&world, *algorithm, cases.back()));
    }
    ASSERT_TRUE(world.Play(
        [&](int rank) {
          for (uint32_t i = 0; i < kAtOnce; ++i) {
            CaseRank& mine = cases[i][rank];
            world.runner(rank).Start(runs[i][rank].get(),
                                     {mine.input.data(), mine.output.data(), &reducer}, i);
          }
        },
        [&](int rank) {
          return std::all_of(runs.begin(), runs.end(),
                             [rank](const Runs& each) { return each[rank]->is_done(); });
        }));
    for (uint32_t i = 0; i < kAtOnce; ++i) {
      for (const CaseRank& rank : cases[i]) {
        EXPECT_EQ(rank.output, rank.expected);
      }
    }
  }
}

// ---- Failures -----------------------------------------------------------------------------------

struct Outcome {
  bool ended = false;
  int failed_ranks = 0;
  size_t left_over = 0;
  size_t faults = 0;  // how many faults there could have been
};

// Fails the `at`-th action of `victim`; SIZE_MAX: none.
Outcome PlayWithFault(const Algorithm& algorithm, const CaseSpec& spec, int victim, size_t at) {
  SimulatedWorld world(spec.size, spec.seed);
  CaseReducer reducer(spec.commutative);
  std::vector<CaseRank> ranks = MakeCase(spec);
  const Runs runs = PrepareRuns(&world, algorithm, ranks);
  Outcome outcome;
  world.fault = [&](int rank) {
    return rank == victim && outcome.faults++ == at ? ErrorCode::kPeerDied : ErrorCode::kOk;
  };
  outcome.ended = PlayRuns(&world, runs, &ranks, &reducer, 7);
  for (const auto& run : runs) {
    outcome.failed_ranks += run->failure().code != ErrorCode::kOk ? 1 : 0;
  }
  outcome.left_over = world.left_over();
  return outcome;
}

class FailureTest : public testing::TestWithParam<Collective> {};

TEST_P(FailureTest, NobodyWaitsForEverWhateverFails) {
  constexpr int kSize = 5;
  for (const Algorithm& algorithm : AlgorithmsOf(GetParam())) {
    CaseSpec spec{.collective = GetParam(), .size = kSize, .count = 20, .root = 1};
    spec.segment_bytes = 64;
    spec.node_of = {0, 0, 1, 1, 1};
    if (!Fits(algorithm, MakeCase(spec)[0].problem)) {
      continue;
    }
    for (int victim = 0; victim < kSize; ++victim) {
      size_t faults = 1;
      for (size_t at = 0; at < faults; ++at) {
        const Outcome outcome = PlayWithFault(algorithm, spec, victim, at);
        faults = std::max(faults, outcome.faults);
        ASSERT_TRUE(outcome.ended) << algorithm.name << " victim " << victim << " at " << at;
        if (at < outcome.faults) {
          EXPECT_GE(outcome.failed_ranks, 1) << algorithm.name;
        }
        EXPECT_EQ(outcome.left_over, 0u) << algorithm.name << " victim " << victim << " at " << at;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, FailureTest,
                         testing::Values(Collective::kBarrier, Collective::kBcast,
                                         Collective::kGather, Collective::kScatter,
                                         Collective::kAllgather, Collective::kAlltoall,
                                         Collective::kReduce, Collective::kAllreduce,
                                         Collective::kReduceScatter, Collective::kScan,
                                         Collective::kExscan),
                         [](const testing::TestParamInfo<Collective>& info) {
                           return std::string(CollectiveName(info.param));
                         });

// All depend on all: if one rank cannot allocate, every rank learns of it.
TEST(RunnerTest, LackOfScratchFailsTheCollectiveEverywhere) {
  const CaseSpec spec{.collective = Collective::kAllreduce, .size = 4, .count = 8};
  const Algorithm* algorithm = FindAlgorithm(Collective::kAllreduce, "recursive_doubling");
  const Outcome outcome = PlayWithFault(*algorithm, spec, 2, 0);
  EXPECT_TRUE(outcome.ended);
  EXPECT_EQ(outcome.failed_ranks, 4);
  EXPECT_EQ(outcome.left_over, 0u);
}

TEST(RunnerTest, ARunThatFailedCanBeStartedAgain) {
  SimulatedWorld world(2, 3);
  const CaseSpec spec{.collective = Collective::kAllreduce, .size = 2, .count = 8};
  const Algorithm* algorithm = FindAlgorithm(Collective::kAllreduce, "recursive_doubling");
  std::vector<CaseRank> ranks = MakeCase(spec);
  CaseReducer reducer(true);
  const Runs runs = PrepareRuns(&world, *algorithm, ranks);
  bool is_to_fail = true;
  world.fault = [&](int rank) {
    return rank == 0 && std::exchange(is_to_fail, false) ? ErrorCode::kNodeUnreachable
                                                         : ErrorCode::kOk;
  };
  ASSERT_TRUE(PlayRuns(&world, runs, &ranks, &reducer, 0));
  EXPECT_NE(runs[0]->failure().code, ErrorCode::kOk);
  world.fault = nullptr;
  ASSERT_TRUE(PlayRuns(&world, runs, &ranks, &reducer, 1));
  for (const int rank : {0, 1}) {
    EXPECT_EQ(runs[rank]->failure().code, ErrorCode::kOk);
    EXPECT_EQ(ranks[rank].output, ranks[rank].expected);
  }
}

}  // namespace
}  // namespace ferry::collective
