// The match table's results, how it treats damage, and how many entries it looks at. Random
// operations: match_table_property_test.cc; killed holders: match_table_kill_test.cc.
#include "shm/match_table.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/shm/match_invariants.h"
#include "tests/shm/match_model.h"

namespace ferry::shm {
namespace {

class MatchTableTest : public testing::Test {
 protected:
  static constexpr uint32_t kCapacity = 16;

  uint32_t Post(const Envelope& pattern, uint32_t request = 1) {
    const uint32_t entry = table_.Post(pattern, request);
    EXPECT_TRUE(journal_.Commit());
    return entry;
  }
  uint32_t Arrive(const Envelope& envelope, uint32_t id = 1) {
    const uint32_t entry = table_.AddUnexpected(MakeDescriptor(envelope, id), id % 7);
    EXPECT_TRUE(journal_.Commit());
    return entry;
  }
  void Remove(uint32_t entry) {
    table_.Remove(entry);
    EXPECT_TRUE(journal_.Commit());
  }

  TestSession session_{kCapacity};
  Journal journal_ = session_.MakeJournal();
  MatchTable table_{session_.match(), &journal_};
};

TEST_F(MatchTableTest, FindsNothingWhenEmpty) {
  EXPECT_EQ(table_.FindPosted({0, 0, 0}), 0U);
  EXPECT_EQ(table_.FindUnexpected({0, kAnySource, kAnyTag}), 0U);
  EXPECT_EQ(table_.NextPostedFrom(0, 0), 0U);
  EXPECT_TRUE(CheckInvariants(session_));
}

TEST_F(MatchTableTest, EveryWordOfTheEnvelopeCounts) {
  const uint32_t posted = Post({1, 2, 3});
  EXPECT_EQ(table_.FindPosted({1, 2, 3}), posted);
  EXPECT_EQ(table_.FindPosted({0, 2, 3}), 0U);
  EXPECT_EQ(table_.FindPosted({1, 0, 3}), 0U);
  EXPECT_EQ(table_.FindPosted({1, 2, 0}), 0U);

  const uint32_t arrived = Arrive({1, 2, 3});
  EXPECT_EQ(table_.FindUnexpected({1, 2, 3}), arrived);
  EXPECT_EQ(table_.FindUnexpected({1, kAnySource, 3}), arrived);
  EXPECT_EQ(table_.FindUnexpected({1, 2, kAnyTag}), arrived);
  EXPECT_EQ(table_.FindUnexpected({1, kAnySource, kAnyTag}), arrived);
  EXPECT_EQ(table_.FindUnexpected({0, kAnySource, kAnyTag}), 0U);
  EXPECT_EQ(table_.FindUnexpected({1, 0, kAnyTag}), 0U);
  EXPECT_EQ(table_.FindUnexpected({1, kAnySource, 0}), 0U);
}

TEST_F(MatchTableTest, TakesTheEarliestReceiveOfAllPatternKinds) {
  const Envelope patterns[] = {
      {0, kAnySource, kAnyTag}, {0, 4, 5}, {0, kAnySource, 5}, {0, 4, kAnyTag}, {0, 4, 5}};
  std::vector<uint32_t> entries;
  for (const Envelope& pattern : patterns) {
    entries.push_back(Post(pattern));
  }
  for (const uint32_t entry : entries) {
    ASSERT_EQ(table_.FindPosted({0, 4, 5}), entry);
    Remove(entry);
  }
  EXPECT_EQ(table_.FindPosted({0, 4, 5}), 0U);
}

TEST_F(MatchTableTest, DoesNotLetMessagesOvertake) {
  const uint32_t first = Arrive({0, 1, 9}, 1);
  const uint32_t second = Arrive({0, 2, 9}, 2);
  const uint32_t third = Arrive({0, 1, 8}, 3);
  EXPECT_EQ(table_.FindUnexpected({0, kAnySource, 9}), first);
  EXPECT_EQ(table_.FindUnexpected({0, 1, kAnyTag}), first);
  Remove(first);
  EXPECT_EQ(table_.FindUnexpected({0, kAnySource, kAnyTag}), second);
  EXPECT_EQ(table_.FindUnexpected({0, 1, kAnyTag}), third);
}

TEST_F(MatchTableTest, KeepsWhatCameWithTheMessageAndTheReceive) {
  const uint32_t arrived = Arrive({3, 4, 5}, 77);
  EXPECT_TRUE(CarriesDescriptor(table_.Entry(arrived)));
  EXPECT_EQ(UnexpectedId(table_.Entry(arrived)), 77U);
  const uint32_t posted = Post({3, kAnySource, 6}, 88);
  EXPECT_EQ(table_.Entry(posted).request, 88U);
  EXPECT_EQ(table_.Entry(posted).source, kAnySource);
  EXPECT_EQ(table_.posted_count(), 1U);
  EXPECT_EQ(table_.unexpected_count(), 1U);
}

TEST_F(MatchTableTest, UsesEveryEntryButTheZerothAndTheFreedOnesAgain) {
  std::set<uint32_t> entries;
  for (uint32_t i = 1; i < kCapacity; ++i) {
    entries.insert(i % 2 == 0 ? Post({0, 0, 0}) : Arrive({0, 0, 0}));
  }
  EXPECT_EQ(entries.size(), kCapacity - 1);
  EXPECT_EQ(*entries.begin(), 1U);
  EXPECT_EQ(*entries.rbegin(), kCapacity - 1);

  const TestSession full(session_);
  EXPECT_EQ(table_.Post({0, 0, 0}, 1), 0U);
  EXPECT_EQ(table_.AddUnexpected(MakeDescriptor({0, 0, 0}, 1), 0), 0U);
  EXPECT_EQ(journal_.pending(), 0U);
  EXPECT_TRUE(session_.SameBytes(full));
  EXPECT_EQ(table_.corrupt(), ErrorCode::kOk);

  Remove(5);
  EXPECT_EQ(Arrive({0, 0, 0}), 5U);
  EXPECT_TRUE(CheckInvariants(session_));
}

TEST_F(MatchTableTest, APoolWithoutEntriesIsAlwaysUsedUp) {
  for (const uint32_t capacity : {0U, 1U}) {
    const TestSession session(capacity);
    Journal journal = session.MakeJournal();
    MatchTable table(session.match(), &journal);
    EXPECT_EQ(table.Post({0, 0, 0}, 1), 0U);
    EXPECT_EQ(table.corrupt(), ErrorCode::kOk);
  }
}

TEST_F(MatchTableTest, FindsTheReceivesThatADeadPeerLeavesBehind) {
  const uint32_t from_peer = Post({0, 3, 1});
  Post({0, 4, 1});
  Arrive({0, 3, 2});
  const uint32_t from_any = Post({0, kAnySource, 1});
  const uint32_t from_peer_too = Post({1, 3, kAnyTag});
  std::vector<uint32_t> found;
  for (uint32_t entry = table_.NextPostedFrom(3, 0); entry != 0;
       entry = table_.NextPostedFrom(3, entry + 1)) {
    found.push_back(entry);
  }
  EXPECT_EQ(found, (std::vector<uint32_t>{from_peer, from_any, from_peer_too}));
  EXPECT_EQ(table_.NextPostedFrom(3, kCapacity), 0U);
  EXPECT_EQ(table_.NextPostedFrom(3, ~0U), 0U);
}

TEST_F(MatchTableTest, KeepsCollidingKeysApart) {
  const std::vector<Envelope> keys = CollidingKeys(4);
  std::vector<uint32_t> entries;
  for (const Envelope& key : keys) {
    entries.push_back(Post(key));
  }
  for (size_t i = 0; i < keys.size(); ++i) {
    EXPECT_EQ(table_.FindPosted(keys[i]), entries[i]);
  }
  Remove(entries[1]);
  Remove(entries[3]);
  Remove(entries[0]);
  EXPECT_EQ(table_.FindPosted(keys[0]), 0U);
  EXPECT_EQ(table_.FindPosted(keys[2]), entries[2]);
  EXPECT_TRUE(CheckInvariants(session_));
}

TEST_F(MatchTableTest, AMessageWithWildcardsInItsEnvelopeHarmsNothing) {
  const uint32_t odd = Arrive({0, kAnySource, kAnyTag});
  const uint32_t good = Arrive({0, 1, 1});
  EXPECT_EQ(table_.FindUnexpected({0, 1, 1}), good);
  EXPECT_EQ(table_.FindPosted({0, kAnySource, kAnyTag}), 0U);
  EXPECT_TRUE(CheckInvariants(session_));
  Remove(odd);
  EXPECT_EQ(table_.FindUnexpected({0, kAnySource, kAnyTag}), good);
  EXPECT_TRUE(CheckInvariants(session_));
}

// --- Depth: by hash, not by walking.

class MatchTableDepthTest : public testing::TestWithParam<std::array<int32_t, 2>> {};

TEST_P(MatchTableDepthTest, LooksAtFewOfTenThousandEntries) {
  constexpr uint32_t kEntries = 10'000;
  const auto [source_stride, tag_stride] = GetParam();
  const TestSession session(2 * kEntries + 1);
  Journal journal = session.MakeJournal();
  MatchTable table(session.match(), &journal);
  const auto key = [&](uint32_t i) {
    return Envelope{1, static_cast<int32_t>(i) * source_stride,
                    static_cast<int32_t>(i) * tag_stride};
  };
  for (uint32_t i = 0; i < kEntries; ++i) {
    ASSERT_NE(table.Post(key(i), i), 0U);
    journal.Commit();
    ASSERT_NE(table.AddUnexpected(MakeDescriptor(key(i), i), 0), 0U);
    journal.Commit();
  }
  // 10,000 entries in 1,024 buckets: about ten in each, of which half come before the one looked
  // for.
  constexpr uint64_t kMaxAverage = 10;
  uint64_t steps = table.traversal_steps();
  for (uint32_t i = 0; i < kEntries; ++i) {
    ASSERT_EQ(table.Entry(table.FindPosted(key(i))).request, i);
  }
  EXPECT_LE((table.traversal_steps() - steps) / kEntries, kMaxAverage);
  steps = table.traversal_steps();
  for (uint32_t i = 0; i < kEntries; ++i) {
    ASSERT_EQ(UnexpectedId(table.Entry(table.FindUnexpected(key(i)))), i);
  }
  EXPECT_LE((table.traversal_steps() - steps) / kEntries, kMaxAverage);
  steps = table.traversal_steps();
  EXPECT_NE(table.FindUnexpected({1, kAnySource, kAnyTag}), 0U);
  EXPECT_EQ(table.traversal_steps() - steps, 1U);
}

INSTANTIATE_TEST_SUITE_P(Strides, MatchTableDepthTest,
                         testing::Values(std::array{0, 1}, std::array{1, 0}, std::array{1, 1},
                                         std::array{0, 1024}, std::array{0, 65536},
                                         std::array{64, 1}, std::array{1, 4096}, std::array{3, 100},
                                         std::array{1024, 0}));

// --- Damage: whatever stands in the table, the answer is kCorrupt and not a hang or a wild access.

// A table with three receives in one chain, three messages and three free entries.
class MatchTableDamageTest : public MatchTableTest {
 protected:
  MatchTableDamageTest() {
    for (uint32_t i = 0; i < 3; ++i) {
      posted_[i] = Post(keys_[i], i);
      unexpected_[i] = Arrive(keys_[i], i);
      free_[i] = Post({9, 9, 9});
    }
    for (const uint32_t entry : free_) {
      Remove(entry);
    }
    for (MatchBucket& bucket : session_.match()->posted) {
      bucket_ = bucket.first != 0 ? &bucket : bucket_;
    }
  }

  // Damage was met; from now on the table finds nothing and changes nothing.
  void ExpectCorrupt() {
    EXPECT_EQ(table_.corrupt(), ErrorCode::kCorrupt);
    EXPECT_LE(table_.traversal_steps(), kCapacity);
    EXPECT_EQ(journal_.pending(), 0U);
    const TestSession damaged(session_);
    EXPECT_EQ(table_.FindPosted(keys_[0]), 0U);
    EXPECT_EQ(table_.FindUnexpected(keys_[0]), 0U);
    EXPECT_EQ(table_.Post(keys_[0], 1), 0U);
    EXPECT_EQ(table_.AddUnexpected(MakeDescriptor(keys_[0], 1), 0), 0U);
    table_.Remove(posted_[0]);
    EXPECT_EQ(table_.NextPostedFrom(0, 0), 0U);
    EXPECT_TRUE(journal_.Commit());
    EXPECT_TRUE(session_.SameBytes(damaged));
  }

  const std::vector<Envelope> keys_ = CollidingKeys(4);
  const Envelope absent_ = keys_[3];  // hashes to the same bucket
  std::array<uint32_t, 3> posted_;
  std::array<uint32_t, 3> unexpected_;
  std::array<uint32_t, 3> free_;
  MatchBucket* bucket_ = nullptr;
};

TEST_F(MatchTableDamageTest, CycleOfOne) {
  session_.entries()[posted_[1]].next[0] = posted_[1];
  EXPECT_EQ(table_.FindPosted(absent_), 0U);
  ExpectCorrupt();
}

TEST_F(MatchTableDamageTest, CycleOfThree) {
  session_.entries()[posted_[2]].next[0] = posted_[0];
  EXPECT_EQ(table_.FindPosted(absent_), 0U);
  ExpectCorrupt();
}

TEST_F(MatchTableDamageTest, CycleOfMessages) {
  for (MatchEntry* entry = session_.entries(); entry != session_.entries() + kCapacity; ++entry) {
    std::fill_n(entry->next, kPatternKinds, unexpected_[0]);
  }
  EXPECT_EQ(table_.FindUnexpected(absent_), 0U);
  ExpectCorrupt();
}

TEST_F(MatchTableDamageTest, NextOutOfRange) {
  session_.entries()[posted_[0]].next[0] = kCapacity;
  EXPECT_EQ(table_.FindPosted(absent_), 0U);
  ExpectCorrupt();
}

TEST_F(MatchTableDamageTest, DamageInALaterChainTakesBackAnEarlierFind) {
  const uint32_t any = Post({0, kAnySource, kAnyTag});
  ASSERT_EQ(table_.FindPosted(keys_[0]), posted_[0]);
  for (MatchBucket& bucket : session_.match()->posted) {
    bucket.first = bucket.first == any ? ~0U : bucket.first;
  }
  EXPECT_EQ(table_.FindPosted(keys_[0]), 0U);
  ExpectCorrupt();
}

TEST_F(MatchTableDamageTest, FirstOutOfRange) {
  bucket_->first = ~0U;
  EXPECT_EQ(table_.FindPosted(absent_), 0U);
  ExpectCorrupt();
}

TEST_F(MatchTableDamageTest, ChainIntoTheFreeEntries) {
  session_.entries()[posted_[0]].next[0] = free_[0];
  EXPECT_EQ(table_.FindPosted(absent_), 0U);
  ExpectCorrupt();
}

TEST_F(MatchTableDamageTest, LastOutOfRangeOnPost) {
  bucket_->last = kCapacity;
  EXPECT_EQ(table_.Post(keys_[0], 1), 0U);
  ExpectCorrupt();
}

TEST_F(MatchTableDamageTest, LastOutOfRangeOnArrival) {
  for (MatchBucket& bucket : session_.match()->unexpected[3]) {
    bucket.last = kCapacity;
  }
  EXPECT_EQ(table_.AddUnexpected(MakeDescriptor(keys_[0], 1), 0), 0U);
  ExpectCorrupt();
}

TEST_F(MatchTableDamageTest, PoolOutOfRange) {
  session_.match()->free_first = kCapacity;
  EXPECT_EQ(table_.Post(keys_[0], 1), 0U);
  ExpectCorrupt();
}

TEST_F(MatchTableDamageTest, PoolGoesOnOutOfRange) {
  session_.entries()[session_.match()->free_first].next[0] = ~0U;
  EXPECT_EQ(table_.AddUnexpected(MakeDescriptor(keys_[0], 1), 0), 0U);
  ExpectCorrupt();
}

TEST_F(MatchTableDamageTest, PoolHoldsAnEntryInUse) {
  session_.match()->free_first = posted_[0];
  EXPECT_EQ(table_.Post(keys_[0], 1), 0U);
  ExpectCorrupt();
}

TEST_F(MatchTableDamageTest, FreshIsZero) {
  session_.match()->free_first = 0;
  session_.match()->fresh = 0;
  EXPECT_EQ(table_.Post(keys_[0], 1), 0U);
  ExpectCorrupt();
}

TEST_F(MatchTableDamageTest, FreshOutOfRangeIsAPoolUsedUp) {
  session_.match()->free_first = 0;
  session_.match()->fresh = ~0U;
  EXPECT_EQ(table_.Post(keys_[0], 1), 0U);
  EXPECT_EQ(table_.NextPostedFrom(100, 0), 0U);
}

TEST_F(MatchTableDamageTest, RemoveOfAFreeEntry) {
  table_.Remove(free_[0]);
  ExpectCorrupt();
}

TEST_F(MatchTableDamageTest, RemoveOfTheZerothEntry) {
  table_.Remove(0);
  ExpectCorrupt();
}

TEST_F(MatchTableDamageTest, RemoveOutOfRange) {
  table_.Remove(kCapacity);
  ExpectCorrupt();
}

TEST_F(MatchTableDamageTest, RemoveWithANeighbourOutOfRange) {
  session_.entries()[unexpected_[1]].previous[3] = kCapacity;
  table_.Remove(unexpected_[1]);
  ExpectCorrupt();
}

TEST_F(MatchTableDamageTest, AnEntryOutOfRangeIsAFreeOne) {
  EXPECT_EQ(table_.Entry(kCapacity).state, static_cast<uint32_t>(MatchState::kFree));
  EXPECT_EQ(table_.Entry(~0U).state, static_cast<uint32_t>(MatchState::kFree));
}

TEST_F(MatchTableDamageTest, CapacityBeyondTheSegment) {
  for (const uint32_t capacity : {kCapacity + 1, ~0U}) {
    session_.match()->capacity = capacity;
    MatchTable table(session_.match(), &journal_);
    EXPECT_EQ(table.corrupt(), ErrorCode::kCorrupt);
    EXPECT_EQ(table.FindPosted(keys_[0]), 0U);
    EXPECT_EQ(table.Post(keys_[0], 1), 0U);
  }
}

// Words of a table in use are overwritten at random. Every operation must end, and stay in the
// segment: the page behind it is not accessible.
TEST(MatchTableFuzzTest, SurvivesRandomDamage) {
  uint32_t noticed = 0;
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    const TestSession session(16);
    Journal journal = session.MakeJournal();
    MatchTable table(session.match(), &journal);
    MatchModel model{16};
    OperationSource source(seed);
    for (uint32_t i = 0; i < 40; ++i) {
      const Operation operation = source.Next(model);
      model.Apply(operation);
      Prepare(session, &journal, &table, operation);
      journal.Commit();
    }
    for (uint32_t i = 0; i < 8; ++i) {
      auto* entry = reinterpret_cast<uint32_t*>(&session.entries()[source.Below(16)]);
      entry[source.Below(16)] = source.Below(2) == 0 ? source.Below(20) : source.Below(~0U);
    }
    session.match()->free_first = source.Below(20);
    for (uint32_t i = 0; i < 100; ++i) {
      const Operation operation = source.Next(model);
      model.Apply(operation);
      Prepare(session, &journal, &table, operation);
      ASSERT_TRUE(journal.Commit()) << "a store outside the segment";
    }
    ASSERT_LE(table.traversal_steps(), 140U * 4 * 16);
    noticed += table.corrupt() == ErrorCode::kCorrupt ? 1 : 0;
  }
  EXPECT_GT(noticed, 400U);
}

}  // namespace
}  // namespace ferry::shm
