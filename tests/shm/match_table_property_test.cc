// Random operations on the match table and on the reference model must have the same outcomes, and
// a holder that dies between any two of its stores must leave the state before or the state after.
#include <gtest/gtest.h>

#include "tests/shm/match_invariants.h"
#include "tests/shm/match_model.h"

namespace ferry::shm {
namespace {

struct Parameters {
  uint64_t seeds;
  uint32_t capacity;
  uint32_t operations;
  size_t colliding_keys;  // 0 = a small range of keys
};

class MatchTablePropertyTest : public testing::TestWithParam<Parameters> {};

TEST_P(MatchTablePropertyTest, BehavesLikeTheModel) {
  const Parameters& parameters = GetParam();
  const std::vector<Envelope> keys = parameters.colliding_keys > 0
                                         ? CollidingKeys(parameters.colliding_keys)
                                         : std::vector<Envelope>();
  uint32_t refused = 0;
  uint32_t matched = 0;
  for (uint64_t seed = 1; seed <= parameters.seeds; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const TestSession session(parameters.capacity);
    Journal journal = session.MakeJournal();
    MatchTable table(session.match(), &journal);
    MatchModel model{parameters.capacity};
    OperationSource source(seed);
    source.UseKeys(keys);
    for (uint32_t i = 0; i < parameters.operations; ++i) {
      const Operation operation = source.Next(model);
      const Outcome expected = model.Apply(operation);
      const Outcome outcome = Prepare(session, &journal, &table, operation);
      ASSERT_LE(journal.pending(), kMatchMaxStores + 1);
      ASSERT_TRUE(journal.Commit());
      ASSERT_EQ(outcome, expected) << "operation " << i;
      refused += outcome.refused ? 1 : 0;
      matched += outcome.id != 0 ? 1 : 0;
      if (i % 16 == 0) {
        ASSERT_TRUE(CheckInvariants(session)) << "after operation " << i;
        ASSERT_EQ(Contents(session), model) << "after operation " << i;
      }
    }
    ASSERT_TRUE(CheckInvariants(session));
    ASSERT_EQ(table.posted_count(), model.posted.size());
    ASSERT_EQ(table.unexpected_count(), model.unexpected.size());
    ASSERT_EQ(table.corrupt(), ErrorCode::kOk);
  }
  EXPECT_GT(refused, 0U) << "the pool was never used up";
  EXPECT_GT(matched, parameters.operations);
}

INSTANTIATE_TEST_SUITE_P(Keys, MatchTablePropertyTest,
                         testing::Values(Parameters{100, 24, 1000, 0}, Parameters{20, 200, 2000, 0},
                                         Parameters{60, 24, 1000, 6}),
                         [](const auto& info) {
                           return (info.param.colliding_keys > 0 ? "Colliding" : "Small") +
                                  std::to_string(info.param.capacity);
                         });

// Stores the first `count` entries of the journal, as Journal::Commit does before it is killed.
void ApplyByHand(const TestSession& session, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    const auto [place, value] = session.journal()->entries[i];
    std::byte* const segment = (place >> 63) != 0 ? session.inbox() : session.session();
    const bool wide = (place >> 62 & 1) != 0;
    std::memcpy(segment + (place & ((uint64_t{1} << 62) - 1)), &value, wide ? 8 : 4);
  }
}

// A successor, in another mapping, takes over and finds exactly `expected`; then it goes on
// working.
void ExpectRecoversTo(const TestSession& crashed, const MatchModel& expected, uint64_t operations,
                      TestSession* successor) {
  successor->CopyFrom(crashed);
  Journal journal = successor->MakeJournal();
  ASSERT_TRUE(journal.Recover());
  MatchTable table(successor->match(), &journal);
  ASSERT_EQ(successor->journal()->count, 0U);
  ASSERT_EQ(*successor->operations(), operations);
  ASSERT_TRUE(CheckInvariants(*successor));
  ASSERT_EQ(Contents(*successor), expected);

  MatchModel model = expected;
  for (const OperationKind kind : {OperationKind::kArrive, OperationKind::kReceive}) {
    const Operation next = {kind, {0, 1, 1}, 1'000'000};
    ASSERT_EQ(Prepare(*successor, &journal, &table, next), model.Apply(next));
    ASSERT_TRUE(journal.Commit());
  }
  ASSERT_TRUE(CheckInvariants(*successor));
  ASSERT_EQ(Contents(*successor), model);
}

class MatchTableCrashTest : public testing::TestWithParam<size_t> {};

TEST_P(MatchTableCrashTest, LeavesTheStateBeforeOrAfter) {
  constexpr uint32_t kCapacity = 12;
  const std::vector<Envelope> keys =
      GetParam() > 0 ? CollidingKeys(GetParam()) : std::vector<Envelope>();
  TestSession crashed(kCapacity);
  TestSession successor(kCapacity);
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const TestSession session(kCapacity);
    Journal journal = session.MakeJournal();
    MatchTable table(session.match(), &journal);
    MatchModel after{kCapacity};
    OperationSource source(seed);
    source.UseKeys(keys);
    for (uint64_t i = 0; i < 60; ++i) {
      SCOPED_TRACE(testing::Message() << "operation " << i);
      const MatchModel before = after;
      const Operation operation = source.Next(before);
      after.Apply(operation);
      Prepare(session, &journal, &table, operation);
      const uint32_t stores = journal.pending();

      ExpectRecoversTo(session, before, i, &successor);  // killed before the list counts
      for (uint32_t applied = 0; applied <= stores && !HasFatalFailure(); ++applied) {
        SCOPED_TRACE(testing::Message() << applied << " of " << stores << " stores done");
        crashed.CopyFrom(session);
        crashed.journal()->count = stores;
        ApplyByHand(crashed, applied);
        ExpectRecoversTo(crashed, after, i + 1, &successor);
        // The successor is killed too, somewhere in its recovery.
        ApplyByHand(crashed, source.Below(stores + 1));
        ExpectRecoversTo(crashed, after, i + 1, &successor);
      }
      ASSERT_TRUE(journal.Commit());
      ExpectRecoversTo(session, after, i + 1, &successor);
      if (HasFatalFailure()) {
        return;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Keys, MatchTableCrashTest, testing::Values(0, 5));

TEST(MatchTableTransactionTest, StoresNothingWhenAbandoned) {
  const TestSession session(12);
  Journal journal = session.MakeJournal();
  MatchTable table(session.match(), &journal);
  MatchModel model{12};
  OperationSource source(7);
  for (uint32_t i = 0; i < 500; ++i) {
    const Operation operation = source.Next(model);
    Prepare(session, &journal, &table, operation);
    journal.Abandon();
    ASSERT_TRUE(CheckInvariants(session));
    ASSERT_EQ(Contents(session), model);
    ASSERT_EQ(Prepare(session, &journal, &table, operation), model.Apply(operation));
    ASSERT_TRUE(journal.Commit());
  }
}

TEST(MatchTableTransactionTest, SetsNoWordTwice) {
  const TestSession session(12);
  Journal journal = session.MakeJournal();
  MatchTable table(session.match(), &journal);
  MatchModel model{12};
  OperationSource source(11);
  source.UseKeys(CollidingKeys(3));
  for (uint32_t i = 0; i < 2000; ++i) {
    const Operation operation = source.Next(model);
    model.Apply(operation);
    Prepare(session, &journal, &table, operation);
    std::set<uint64_t> words;  // of 4 bytes each
    for (uint32_t k = 0; k < journal.pending(); ++k) {
      const uint64_t place = session.journal()->entries[k].place;
      const uint64_t word = place & ~kJournalWide;
      ASSERT_TRUE(words.insert(word).second);
      if ((place & kJournalWide) != 0) {
        ASSERT_TRUE(words.insert(word + 4).second);
      }
    }
    ASSERT_TRUE(journal.Commit());
  }
}

}  // namespace
}  // namespace ferry::shm
