#include "engine/program/program_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <optional>

#include "tests/engine/program/recording_executor.h"

namespace ferry::engine {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ProgramEngineTest : public testing::Test {
 protected:
  // An operation with `body` that waits for `trigger` to grow by `threshold` and adds to `done`.
  static Operation Step(uint64_t body, uint32_t trigger, uint64_t threshold, uint32_t done) {
    Operation operation;
    operation.body = body;
    operation.trigger = {trigger, threshold};
    operation.local_done = done;
    return operation;
  }
  // The first step, which begins as soon as the program is started.
  static Operation First(uint64_t body, uint32_t done) { return Step(body, kNoCounter, 1, done); }

  // A program over words_[0..counters).
  ProgramSpec Spec(uint32_t counters, std::vector<Operation> operations) {
    ProgramSpec spec;
    for (uint32_t i = 0; i < counters; ++i) {
      spec.counters.push_back({&words_[i], 0});
    }
    spec.operations = std::move(operations);
    return spec;
  }
  ProgramId Install(const ProgramSpec& spec) {
    StatusOr<ProgramId> program = engine_.Install(spec);
    EXPECT_TRUE(program.ok()) << program.status().ToString();
    return program.ok() ? *program : ProgramId{};
  }
  void End(RecordingExecutor& executor, ErrorCode error = ErrorCode::kOk) {
    ASSERT_FALSE(executor.under_way.empty());
    engine_.Completed(executor.Take(0), error);
  }
  uint64_t Value(uint32_t word) { return shm::Counter(&words_[word]).Value(); }
  ErrorCode Error(uint32_t word) { return shm::Counter(&words_[word]).error(); }

  std::array<shm::CounterLayout, 8> words_{};
  RecordingExecutor daemon_;
  RecordingExecutor nic_;
  ProgramEngine engine_{ProgramEngine::Executors{nullptr, nullptr, &nic_, &daemon_}};
};

TEST_F(ProgramEngineTest, RunsWhatItsTriggersAllow) {
  const ProgramId program = Install(Spec(2, {First(10, 0), First(11, 0), Step(12, 0, 2, 1)}));
  EXPECT_THAT(daemon_.begun, IsEmpty());
  EXPECT_EQ(engine_.Start(program), ErrorCode::kOk);
  EXPECT_THAT(daemon_.begun, ElementsAre(10, 11));
  End(daemon_);
  EXPECT_THAT(daemon_.begun, ElementsAre(10, 11));
  End(daemon_);
  EXPECT_THAT(daemon_.begun, ElementsAre(10, 11, 12));
  EXPECT_TRUE(engine_.IsBusy(program));
  End(daemon_);
  EXPECT_EQ(Value(1), 1U);
  EXPECT_FALSE(engine_.IsBusy(program));
}

TEST_F(ProgramEngineTest, StartsMadeAheadRunOneAfterAnother) {
  const ProgramId program = Install(Spec(2, {First(10, 0), Step(11, 0, 1, 1)}));
  engine_.Start(program);
  engine_.Start(program);
  engine_.Start(program);
  EXPECT_THAT(daemon_.begun, ElementsAre(10));
  for (int i = 0; i < 6; ++i) {
    End(daemon_);
  }
  EXPECT_THAT(daemon_.begun, testing::UnorderedElementsAre(10, 10, 10, 11, 11, 11));
  EXPECT_EQ(Value(1), 3U);
  EXPECT_THAT(daemon_.under_way, IsEmpty());
  EXPECT_FALSE(engine_.IsBusy(program));
}

TEST_F(ProgramEngineTest, CountsFromWhatCountersAreAt) {
  shm::Counter(&words_[0]).Add(1000);
  const ProgramId program = Install(Spec(1, {First(10, 0), Step(11, 0, 1, kNoCounter)}));
  engine_.Start(program);
  EXPECT_THAT(daemon_.begun, ElementsAre(10));
  End(daemon_);
  EXPECT_THAT(daemon_.begun, ElementsAre(10, 11));
}

TEST_F(ProgramEngineTest, WaitsForWhatOthersAdd) {
  ProgramSpec spec = Spec(1, {Step(10, 0, 4, kNoCounter)});
  spec.counters[0].per_start = 4;  // four partitions
  const ProgramId program = Install(spec);
  shm::Counter partitions(&words_[0]);
  partitions.Add(4);
  engine_.Poll(1);
  EXPECT_THAT(daemon_.begun, IsEmpty()) << "nobody has started it";
  engine_.Start(program);
  EXPECT_THAT(daemon_.begun, ElementsAre(10));
  End(daemon_);
  engine_.Start(program);
  partitions.Add(3);
  engine_.Poll(2);
  EXPECT_THAT(daemon_.begun, ElementsAre(10));
  partitions.Add(1);
  EXPECT_EQ(engine_.Poll(3), 1U);
  EXPECT_THAT(daemon_.begun, ElementsAre(10, 10));
}

TEST_F(ProgramEngineTest, ADoorbellStartsIt) {
  ProgramSpec spec = Spec(1, {First(10, 0)});
  spec.start = &words_[7];
  Install(spec);
  shm::Counter(&words_[7]).Add(2);
  engine_.Poll(1);
  EXPECT_THAT(daemon_.begun, ElementsAre(10));
  End(daemon_);
  EXPECT_THAT(daemon_.begun, ElementsAre(10, 10));
}

TEST_F(ProgramEngineTest, AFailureEndsAllThatWaitsOnIt) {
  Operation last = Step(12, 1, 1, 2);
  last.remote_done = 77;
  const ProgramId program = Install(Spec(3, {First(10, 0), Step(11, 0, 1, 1), last}));
  // Another program that waits on a counter of the first.
  ProgramSpec other = Spec(4, {Step(20, 2, 1, 3)});
  other.counters[2].per_start = 1;
  const ProgramId waiting = Install(other);
  engine_.Start(waiting);
  engine_.Start(program);
  End(daemon_, ErrorCode::kPeerDied);
  for (uint32_t word = 0; word < 4; ++word) {
    EXPECT_EQ(Error(word), ErrorCode::kPeerDied) << word;
  }
  EXPECT_THAT(daemon_.begun, ElementsAre(10));
  EXPECT_THAT(daemon_.renounced,
              ElementsAre(RecordingExecutor::Renounced{77, ErrorCode::kPeerDied}));
  EXPECT_FALSE(engine_.IsBusy(program));
  EXPECT_FALSE(engine_.IsBusy(waiting));
  EXPECT_EQ(engine_.Start(program), ErrorCode::kPeerDied);
  EXPECT_EQ(engine_.counts().failed, 4U);
}

TEST_F(ProgramEngineTest, AFailureOfWhatOthersAddEndsIt) {
  ProgramSpec spec = Spec(2, {Step(10, 0, 1, 1)});
  spec.counters[0].per_start = 1;
  const ProgramId program = Install(spec);
  engine_.Start(program);
  shm::Counter(&words_[0]).Fail(ErrorCode::kLinkDown);
  engine_.Poll(1);
  EXPECT_EQ(Error(1), ErrorCode::kLinkDown);
  EXPECT_FALSE(engine_.IsBusy(program));
}

TEST_F(ProgramEngineTest, AStartThatFailsEndsWhatWaitsForOtherCounters) {
  ProgramSpec spec = Spec(2, {Step(10, 0, 1, 1)});
  spec.counters[0].per_start = 1;
  spec.start = &words_[7];
  Install(spec);
  shm::Counter(&words_[7]).Fail(ErrorCode::kAborted);
  engine_.Poll(1);
  EXPECT_EQ(Error(1), ErrorCode::kAborted);
  shm::Counter(&words_[0]).Add(1);
  engine_.Poll(2);
  EXPECT_THAT(daemon_.begun, IsEmpty());
}

TEST_F(ProgramEngineTest, AnExecutorMayRefuse) {
  daemon_.refusal = ErrorCode::kUnsupported;
  const ProgramId program = Install(Spec(1, {First(10, 0)}));
  engine_.Start(program);
  EXPECT_EQ(Error(0), ErrorCode::kUnsupported);
}

TEST_F(ProgramEngineTest, OverflowsToTheDaemonAndCountsIt) {
  nic_.room = 1;
  Operation first = First(10, 0);
  Operation second = First(11, 0);
  first.placement = second.placement = Placement::kNic;
  Operation copy = First(12, 0);
  copy.placement = Placement::kStream;  // this process has none
  engine_.Start(Install(Spec(1, {first, second, copy})));
  EXPECT_THAT(nic_.begun, ElementsAre(10));
  EXPECT_THAT(daemon_.begun, ElementsAre(11, 12));
  EXPECT_THAT(engine_.counts().begun, ElementsAre(0, 0, 1, 2));
  EXPECT_EQ(engine_.counts().overflowed, 2U);
}

TEST_F(ProgramEngineTest, WhatFindsNoRoomWaitsInOrder) {
  daemon_.room = 1;
  engine_.Start(Install(Spec(1, {First(10, 0), First(11, 0), First(12, 0)})));
  EXPECT_THAT(daemon_.begun, ElementsAre(10));
  engine_.Poll(1);
  EXPECT_THAT(daemon_.begun, ElementsAre(10));
  End(daemon_);
  EXPECT_THAT(daemon_.begun, ElementsAre(10)) << "room is looked for by Poll";
  engine_.Poll(2);
  EXPECT_THAT(daemon_.begun, ElementsAre(10, 11));
  End(daemon_);
  engine_.Poll(3);
  EXPECT_THAT(daemon_.begun, ElementsAre(10, 11, 12));
}

TEST_F(ProgramEngineTest, ADeadlineRunsFromTheTrigger) {
  Operation slow = Step(11, 0, 1, 1);
  slow.timeout_ns = 100;
  const ProgramId program = Install(Spec(2, {First(10, 0), slow}));
  engine_.Start(program);
  engine_.Poll(5000);  // the wait for its trigger does not count
  End(daemon_);
  engine_.Poll(6000);
  EXPECT_EQ(engine_.next_deadline_ns(), 6100U);
  engine_.Poll(6099);
  EXPECT_EQ(Error(1), ErrorCode::kOk);
  const Token late = daemon_.under_way.front().token;
  engine_.Poll(6100);
  EXPECT_EQ(Error(1), ErrorCode::kTimeout);
  EXPECT_THAT(daemon_.abandoned, ElementsAre(11));
  EXPECT_EQ(engine_.next_deadline_ns(), UINT64_MAX);
  engine_.Completed(late, ErrorCode::kOk);  // is ignored now
  EXPECT_EQ(Error(1), ErrorCode::kTimeout);
  EXPECT_FALSE(engine_.IsBusy(program));
}

TEST_F(ProgramEngineTest, FreeCancelsWhatHasNotBegunAndLetsTheRestEnd) {
  const ProgramId program = Install(Spec(2, {First(10, 0), Step(11, 0, 1, 1)}));
  engine_.Start(program);
  engine_.Free(program);
  EXPECT_EQ(Error(1), ErrorCode::kCancelled);
  EXPECT_EQ(engine_.Start(program), ErrorCode::kNotFound);
  EXPECT_EQ(engine_.program_count(), 1U) << "an operation is under way";
  End(daemon_);
  EXPECT_EQ(Value(0), 1U);
  EXPECT_EQ(engine_.program_count(), 0U);
  engine_.Free(program);  // belongs to the freed program: nothing happens
}

TEST_F(ProgramEngineTest, FreeEndsWhatOthersWaitFor) {
  const ProgramId program = Install(Spec(1, {First(10, 0)}));
  ProgramSpec other = Spec(2, {Step(20, 0, 1, 1)});
  other.counters[0].per_start = 1;
  const ProgramId waiting = Install(other);
  engine_.Start(waiting);
  engine_.Free(program);
  EXPECT_EQ(Error(1), ErrorCode::kCancelled);
  EXPECT_FALSE(engine_.IsBusy(waiting));
}

TEST_F(ProgramEngineTest, FreeOfAProgramAtRestDisturbsNobody) {
  const ProgramId program = Install(Spec(1, {First(10, 0)}));
  engine_.Start(program);
  End(daemon_);
  engine_.Free(program);
  EXPECT_EQ(engine_.program_count(), 0U);
  EXPECT_EQ(Value(0), 1U);
  EXPECT_EQ(Error(0), ErrorCode::kOk);
}

TEST_F(ProgramEngineTest, SaysWhatIsWrongWithAProgram) {
  const auto refusal = [this](const ProgramSpec& spec) { return engine_.Install(spec).status(); };
  EXPECT_THAT(refusal(Spec(1, {First(1, 5)})).message(),
              HasSubstr("operation 0 refers to a counter that the program does not have"));
  EXPECT_THAT(refusal(Spec(1, {First(1, 0), Step(2, 0, 2, kNoCounter)})).message(),
              HasSubstr("operation 1 waits for counter 0 to grow by 2, but it grows by 1"));
  EXPECT_THAT(refusal(Spec(2, {Step(1, 0, 1, 1), Step(2, 1, 1, 0)})).message(),
              HasSubstr("operation 0 waits for counter 0, which waits for it"));
  EXPECT_THAT(refusal(Spec(1, {Step(1, 0, 0, kNoCounter)})).message(),
              HasSubstr("operation 0 has a threshold of 0"));
  ProgramSpec wordless = Spec(1, {});
  wordless.counters[0].word = nullptr;
  EXPECT_THAT(refusal(wordless).message(), HasSubstr("counter 0 has no word"));
  EXPECT_EQ(engine_.program_count(), 0U);
}

}  // namespace
}  // namespace ferry::engine
