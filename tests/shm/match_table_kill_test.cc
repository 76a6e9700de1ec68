// A lease holder killed at any instruction of a matching step: its successor breaks the lease,
// recovers the journal, and finds the table as it was before the step or after it.
//
// With FERRY_KILL_STRIDE = 1 a process is really killed at every instruction (minutes); otherwise
// at every so many, and in between what lies in shared memory is recovered while the victim is
// stopped.
#include <gtest/gtest.h>

#include <vector>

#include "shm/lease.h"
#include "tests/shm/match_invariants.h"
#include "tests/shm/match_model.h"
#include "tests/shm/step_kill.h"

#ifndef FERRY_KILL_STRIDE
#define FERRY_KILL_STRIDE 41
#endif

namespace ferry::shm {
namespace {

constexpr uint32_t kCapacity = 10;
constexpr uint32_t kVictim = 1;
constexpr uint32_t kSuccessor = 2;

struct Scenario {
  const char* name;
  std::vector<Operation> before;
  Operation step;
};

Operation Receive(const Envelope& pattern, uint32_t id) {
  return {OperationKind::kReceive, pattern, id};
}
Operation Arrive(const Envelope& envelope, uint32_t id) {
  return {OperationKind::kArrive, envelope, id};
}
Operation Cancel(uint32_t id) { return {OperationKind::kCancel, {0, 0, 0}, id}; }

std::vector<Scenario> Scenarios() {
  const std::vector<Envelope> key = CollidingKeys(3);
  const Envelope any = {0, kAnySource, kAnyTag};
  const std::vector<Operation> three_posted = {Receive(key[0], 1), Receive(key[1], 2),
                                               Receive(key[2], 3)};
  const std::vector<Operation> three_arrived = {Arrive(key[0], 1), Arrive(key[1], 2),
                                                Arrive(key[2], 3)};
  // Three that came and went, so that the next entries are not fresh ones.
  std::vector<Operation> recycled;
  for (uint32_t id = 1; id <= 3; ++id) {
    recycled.push_back(Receive({5, 5, 5}, id));
  }
  for (uint32_t id = 4; id <= 6; ++id) {
    recycled.push_back(Arrive({5, 5, 5}, id));
  }
  recycled.push_back(Receive(key[0], 7));
  return {
      {"PostFirst", {}, Receive(key[0], 1)},
      {"PostBehindAnother", recycled, Receive(key[1], 8)},
      {"PostWildcard", recycled, Receive(any, 8)},
      {"ArriveUnexpectedFirst", {}, Arrive(key[0], 1)},
      {"ArriveUnexpectedInARecycledEntry", recycled, Arrive(key[1], 8)},
      {"ArriveUnexpectedBehindOthers", three_arrived, Arrive(key[1], 4)},
      {"ArriveAtTheOnlyReceive", {Receive(key[0], 1)}, Arrive(key[0], 2)},
      {"ArriveAtTheFirstReceive", three_posted, Arrive(key[0], 4)},
      {"ArriveAtTheMiddleReceive", three_posted, Arrive(key[1], 4)},
      {"ArriveAtTheLastReceive", three_posted, Arrive(key[2], 4)},
      {"ReceiveTheOnlyMessage", {Arrive(key[0], 1)}, Receive(any, 2)},
      {"ReceiveTheFirstMessage", three_arrived, Receive(any, 4)},
      {"ReceiveTheMiddleMessage", three_arrived, Receive(key[1], 4)},
      {"ReceiveTheLastMessage", three_arrived, Receive(key[2], 4)},
      {"CancelTheMiddleReceive",
       {Receive({0, 0, 1}, 1), Receive({0, 0, 1}, 2), Receive({0, 0, 1}, 3)},
       Cancel(2)},
  };
}

// A rank's actions under its lease for one matching step.
void RunStep(const TestSession& session, uint32_t holder, const Operation& operation) {
  Lease lease(session.lease());
  lease.TryAcquire(holder);
  Journal journal = session.MakeJournal();
  MatchTable table(session.match(), &journal);
  Prepare(session, &journal, &table, operation);
  journal.Commit();
  lease.Release(holder);
}

// The successor of a dead victim. Returns whether the step was done.
bool TakeOver(const TestSession& session, const MatchModel& before, const MatchModel& after,
              uint64_t operations_before) {
  Lease lease(session.lease());
  Journal journal = session.MakeJournal();
  if (lease.BreakDead(kVictim, kSuccessor)) {
    EXPECT_TRUE(journal.Recover());
  } else {
    EXPECT_TRUE(lease.TryAcquire(kSuccessor));
  }
  EXPECT_EQ(session.journal()->count, 0U);
  const uint64_t done = *session.operations() - operations_before;
  EXPECT_LE(done, 1U);
  EXPECT_TRUE(CheckInvariants(session));
  EXPECT_EQ(Contents(session), done == 0 ? before : after);
  lease.Release(kSuccessor);
  return done != 0;
}

// The table still works: fills its pool and empties it again.
void ExpectGoesOn(const TestSession& session, MatchModel model) {
  Journal journal = session.MakeJournal();
  MatchTable table(session.match(), &journal);
  std::vector<Operation> operations;
  for (uint32_t id = 100; id < 100 + kCapacity; ++id) {
    operations.push_back(Arrive({0, static_cast<int32_t>(id % 2), 1}, id));
  }
  for (uint32_t id = 200; id < 200 + 2 * kCapacity; ++id) {
    operations.push_back(Receive({0, kAnySource, kAnyTag}, id));
  }
  for (const Operation& operation : operations) {
    ASSERT_EQ(Prepare(session, &journal, &table, operation), model.Apply(operation));
    ASSERT_TRUE(journal.Commit());
  }
  ASSERT_TRUE(CheckInvariants(session));
  ASSERT_EQ(Contents(session), model);
}

class MatchTableKillTest : public testing::TestWithParam<Scenario> {
 protected:
  void SetUp() override {
    FERRY_REQUIRE_STEPPING();
    for (const Operation& operation : GetParam().before) {
      RunStep(prepared_, kSuccessor, operation);
      before_.Apply(operation);
    }
    operations_ = *prepared_.operations();
    after_ = before_;
    after_.Apply(GetParam().step);
    // Once here, so that the victim does not resolve symbols when it is stepped.
    session_.CopyFrom(prepared_);
    RunStep(session_, kVictim, GetParam().step);
    ASSERT_EQ(Contents(session_), after_);
  }

  void CheckTakeOver(const TestSession& session) {
    const bool done = TakeOver(session, before_, after_, operations_);
    ExpectGoesOn(session, done ? after_ : before_);
    ++(done ? points_after_ : points_before_);
  }

  TestSession prepared_{kCapacity};
  TestSession session_{kCapacity};
  MatchModel before_{kCapacity};
  MatchModel after_{kCapacity};
  uint64_t operations_ = 0;
  uint64_t points_before_ = 0;
  uint64_t points_after_ = 0;
};

TEST_P(MatchTableKillTest, EveryInstructionLeavesTheStateBeforeOrAfter) {
  TestSession seen(kCapacity);  // nothing yet
  TestSession copy(kCapacity);
  uint64_t points_pending = 0;
  session_.CopyFrom(prepared_);
  SteppedChild victim([this] { RunStep(session_, kVictim, GetParam().step); });
  do {
    if (session_.SameBytes(seen)) {
      continue;  // the instruction stored nothing in shared memory
    }
    seen.CopyFrom(session_);
    copy.CopyFrom(session_);
    points_pending += copy.journal()->count != 0 ? 1 : 0;
    const uint64_t points_before = points_before_;
    CheckTakeOver(copy);
    ASSERT_TRUE(points_after_ == 0 || points_before_ == points_before) << "a step was undone";
  } while (!HasFatalFailure() && victim.Step(1));
  EXPECT_GT(points_before_, 0U);
  EXPECT_GT(points_after_, points_pending) << "nothing was seen after the commit";
  EXPECT_GT(points_pending, 5U) << "the stores of the commit were not stepped through";
}

TEST_P(MatchTableKillTest, SuccessorOfAKilledHolderGoesOn) {
  ForEachInstruction(
      FERRY_KILL_STRIDE, [this] { session_.CopyFrom(prepared_); },
      [this] { RunStep(session_, kVictim, GetParam().step); },
      [this](SteppedChild& victim) {
        victim.Kill();
        CheckTakeOver(session_);
      });
  EXPECT_GT(points_before_, 0U);
  EXPECT_GT(points_after_, 0U);
}

INSTANTIATE_TEST_SUITE_P(Steps, MatchTableKillTest, testing::ValuesIn(Scenarios()),
                         [](const auto& info) { return info.param.name; });

// Random steps, each by a process that is killed after a random number of instructions; the table
// is never reset.
TEST(MatchTableKillSoakTest, OutlivesManyHolders) {
  FERRY_REQUIRE_STEPPING();
  constexpr uint32_t kVictims = FERRY_KILL_STRIDE == 1 ? 5000 : 60;
  const TestSession session(kCapacity);
  MatchModel model{kCapacity};
  OperationSource source(1);
  uint32_t done = 0;
  for (uint32_t i = 0; i < kVictims; ++i) {
    SCOPED_TRACE(testing::Message() << "victim " << i);
    const uint64_t operations = *session.operations();
    const Operation step = source.Next(model);
    MatchModel after = model;
    after.Apply(step);
    {
      SteppedChild victim([&] { RunStep(session, kVictim, step); });
      victim.Step(source.Below(1200));
      victim.Kill();
    }
    if (TakeOver(session, model, after, operations)) {
      model = after;
      ++done;
    }
    for (uint32_t k = 0; k < 3; ++k) {
      const Operation operation = source.Next(model);
      RunStep(session, kSuccessor, operation);
      model.Apply(operation);
    }
    ASSERT_FALSE(HasFailure());
  }
  EXPECT_GT(done, kVictims / 10);
  EXPECT_LT(done, kVictims * 9 / 10);
}

}  // namespace
}  // namespace ferry::shm
