#include "shm/journal.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <memory>
#include <random>

namespace ferry::shm {
namespace {

constexpr uint64_t kSegmentBytes = 4096;

// A journal, a session segment and an inbox; a copy lies elsewhere, as in another process.
struct Memory {
  alignas(128) JournalLayout layout{};
  alignas(128) std::byte session[kSegmentBytes]{};
  alignas(128) std::byte inbox[kSegmentBytes]{};

  Journal MakeJournal() { return Journal(&layout, session, sizeof(session), inbox, sizeof(inbox)); }
  uint32_t* Narrow(uint64_t offset) { return reinterpret_cast<uint32_t*>(session + offset); }
  uint64_t* Wide(uint64_t offset) { return reinterpret_cast<uint64_t*>(session + offset); }
  uint64_t* InboxWide(uint64_t offset) { return reinterpret_cast<uint64_t*>(inbox + offset); }
  bool SameSegments(const Memory& other) const {
    return std::memcmp(session, other.session, sizeof(session)) == 0 &&
           std::memcmp(inbox, other.inbox, sizeof(inbox)) == 0;
  }
};

class JournalTest : public testing::Test {
 protected:
  Memory memory_;
  Journal journal_ = memory_.MakeJournal();
};

TEST_F(JournalTest, StoresNothingBeforeCommitAndEverythingAfter) {
  const Memory before = memory_;
  journal_.Set(memory_.Narrow(0), uint32_t{7});
  journal_.Set(reinterpret_cast<int32_t*>(memory_.Narrow(4)), int32_t{-7});
  journal_.Set(memory_.Wide(8), uint64_t{0x1122'3344'5566'7788});
  journal_.Set(memory_.InboxWide(16), ~uint64_t{0});
  EXPECT_EQ(journal_.pending(), 4U);
  EXPECT_TRUE(memory_.SameSegments(before));

  EXPECT_TRUE(journal_.Commit());
  EXPECT_EQ(journal_.pending(), 0U);
  EXPECT_EQ(memory_.layout.count, 0U);
  EXPECT_EQ(*memory_.Narrow(0), 7U);
  EXPECT_EQ(*memory_.Narrow(4), static_cast<uint32_t>(-7));
  EXPECT_EQ(*memory_.Wide(8), 0x1122'3344'5566'7788U);
  EXPECT_EQ(*memory_.InboxWide(16), ~uint64_t{0});
}

TEST_F(JournalTest, NarrowStoreLeavesItsNeighbours) {
  *memory_.Wide(0) = ~uint64_t{0};
  journal_.Set(memory_.Narrow(0), uint32_t{0});
  ASSERT_TRUE(journal_.Commit());
  EXPECT_EQ(*memory_.Wide(0), 0xFFFF'FFFF'0000'0000U);
}

TEST_F(JournalTest, ReachesTheLastWordOfBothSegments) {
  journal_.Set(memory_.Narrow(kSegmentBytes - 4), uint32_t{1});
  journal_.Set(memory_.InboxWide(kSegmentBytes - 8), uint64_t{2});
  ASSERT_TRUE(journal_.Commit());
  EXPECT_EQ(*memory_.Narrow(kSegmentBytes - 4), 1U);
  EXPECT_EQ(*memory_.InboxWide(kSegmentBytes - 8), 2U);
}

TEST_F(JournalTest, CommitsAnEmptyTransaction) {
  const Memory before = memory_;
  EXPECT_TRUE(journal_.Commit());
  EXPECT_TRUE(memory_.SameSegments(before));
}

TEST_F(JournalTest, ForgetsAnAbandonedTransaction) {
  const Memory before = memory_;
  journal_.Set(memory_.Narrow(0), uint32_t{7});
  journal_.Abandon();
  EXPECT_TRUE(journal_.Commit());
  EXPECT_TRUE(memory_.SameSegments(before));
}

TEST_F(JournalTest, SetsBytesOfAnyMultipleOfFourAtAnyAlignmentOfFour) {
  std::array<uint8_t, 128> source;
  for (size_t i = 0; i < source.size(); ++i) {
    source[i] = static_cast<uint8_t>(i + 1);
  }
  for (uint32_t offset = 64; offset < 80; offset += 4) {
    for (uint32_t size_bytes = 0; size_bytes <= source.size(); size_bytes += 4) {
      SCOPED_TRACE(testing::Message() << size_bytes << " bytes at " << offset);
      Memory expected = memory_;
      std::memcpy(expected.session + offset, source.data(), size_bytes);
      journal_.SetBytes(memory_.session + offset, source.data(), size_bytes);
      EXPECT_LE(journal_.pending(), size_bytes / 8 + 1);
      ASSERT_TRUE(journal_.Commit());
      ASSERT_TRUE(memory_.SameSegments(expected));
      std::memset(memory_.session, 0, sizeof(memory_.session));
    }
  }
}

TEST_F(JournalTest, HoldsAFullListButNotOneStoreMore) {
  for (uint32_t i = 0; i < kJournalEntries; ++i) {
    journal_.Set(memory_.Wide(uint64_t{8} * i), uint64_t{i + 1});
  }
  ASSERT_TRUE(journal_.Commit());
  for (uint32_t i = 0; i < kJournalEntries; ++i) {
    ASSERT_EQ(*memory_.Wide(uint64_t{8} * i), i + 1);
  }
  const Memory before = memory_;
  for (uint32_t i = 0; i < kJournalEntries + 5; ++i) {
    journal_.Set(memory_.Wide(uint64_t{8} * i), uint64_t{0});
  }
  EXPECT_GT(journal_.pending(), kJournalEntries);
  EXPECT_FALSE(journal_.Commit());
  EXPECT_TRUE(memory_.SameSegments(before));
  EXPECT_EQ(memory_.layout.count, 0U);

  journal_.Set(memory_.Wide(0), uint64_t{99});  // the next transaction is a good one again
  EXPECT_TRUE(journal_.Commit());
  EXPECT_EQ(*memory_.Wide(0), 99U);
}

TEST_F(JournalTest, RefusesATransactionWithAWordOutsideTheSegments) {
  uint64_t stranger = 1;
  journal_.Set(memory_.Wide(0), uint64_t{7});
  journal_.Set(&stranger, uint64_t{7});
  journal_.Set(memory_.Wide(8), uint64_t{7});
  EXPECT_FALSE(journal_.Commit());
  EXPECT_EQ(stranger, 1U);
  EXPECT_EQ(*memory_.Wide(0), 0U);
  EXPECT_EQ(*memory_.Wide(8), 0U);
}

TEST_F(JournalTest, RefusesBytesThatAreNotWholeWords) {
  const uint64_t source = 7;
  journal_.SetBytes(memory_.session, &source, 6);
  EXPECT_FALSE(journal_.Commit());
  journal_.SetBytes(memory_.session + 2, &source, 4);
  EXPECT_FALSE(journal_.Commit());
  EXPECT_EQ(*memory_.Wide(0), 0U);
}

TEST_F(JournalTest, KnowsWhatTheSegmentsCover) {
  EXPECT_TRUE(journal_.Covers(memory_.session, kSegmentBytes));
  EXPECT_TRUE(journal_.Covers(memory_.inbox + 8, kSegmentBytes - 8));
  EXPECT_FALSE(journal_.Covers(memory_.session + 8, kSegmentBytes));
  EXPECT_FALSE(journal_.Covers(memory_.session, ~uint64_t{0}));
  EXPECT_FALSE(journal_.Covers(&journal_, 1));
}

// Every way to die in Commit: after `applied` of the stores, recovered in another mapping.
TEST_F(JournalTest, RecoversAfterAKillBetweenAnyTwoStores) {
  std::mt19937_64 random(1);
  for (uint32_t round = 0; round < 200; ++round) {
    const Memory before = memory_;
    const uint32_t stores = 1 + static_cast<uint32_t>(random() % kJournalEntries);
    for (uint32_t i = 0; i < stores; ++i) {
      switch (random() % 3) {
        case 0:
          journal_.Set(memory_.Wide(uint64_t{16} * i), random());
          break;
        case 1:
          journal_.Set(memory_.InboxWide(uint64_t{16} * i), random());
          break;
        case 2:
          journal_.Set(memory_.Narrow(16 * i + 4), static_cast<uint32_t>(random()));
          break;
      }
    }
    Memory published = memory_;
    published.layout.count = stores;
    ASSERT_TRUE(journal_.Commit());
    for (uint32_t applied = 0; applied <= stores; ++applied) {
      auto crashed = std::make_unique<Memory>(published);
      crashed->layout.count = applied;  // the first stores only, by recovering a shorter list
      ASSERT_TRUE(crashed->MakeJournal().Recover());
      crashed->layout.count = stores;
      const uint64_t recoveries = crashed->layout.recoveries;
      ASSERT_TRUE(crashed->MakeJournal().Recover());
      ASSERT_TRUE(crashed->SameSegments(memory_));
      ASSERT_EQ(crashed->layout.count, 0U);
      ASSERT_EQ(crashed->layout.recoveries, recoveries + 1);
    }
    published.layout.count = 0;  // killed before the list counted
    ASSERT_TRUE(published.MakeJournal().Recover());
    ASSERT_TRUE(published.SameSegments(before));
    ASSERT_EQ(published.layout.recoveries, before.layout.recoveries);
  }
}

TEST_F(JournalTest, RecoverForgetsItsOwnOpenTransaction) {
  journal_.Set(memory_.Wide(0), uint64_t{7});
  ASSERT_TRUE(journal_.Recover());
  ASSERT_TRUE(journal_.Commit());
  EXPECT_EQ(*memory_.Wide(0), 0U);
}

TEST_F(JournalTest, RecoverRejectsACountOutOfRange) {
  for (const uint32_t count : {kJournalEntries + 1, 0x8000'0000U, ~0U}) {
    memory_.layout.count = count;
    EXPECT_FALSE(journal_.Recover()) << count;
    EXPECT_EQ(memory_.layout.count, count) << "a corrupt list was taken for done";
  }
}

TEST_F(JournalTest, RecoverRejectsAPlaceOutOfBoundsAndAppliesNothing) {
  constexpr uint64_t kBad[] = {
      2,                                                   // misaligned
      kJournalWide | 4,                                    // misaligned for 64 bits
      kSegmentBytes,                                       // behind the session segment
      kJournalWide | kSegmentBytes,                        //
      kJournalInbox | kSegmentBytes,                       // behind the inbox
      kJournalInbox | kJournalWide | (kSegmentBytes - 4),  // across its end
      (kJournalWide - 4),                                  // far away
      kJournalInbox | kJournalWide | (kJournalWide - 8),
  };
  const Memory before = memory_;
  for (const uint64_t place : kBad) {
    for (const uint32_t position : {0U, 5U, kJournalEntries - 1}) {
      SCOPED_TRACE(testing::Message() << std::hex << place << " at " << position);
      for (uint32_t i = 0; i < kJournalEntries; ++i) {
        memory_.layout.entries[i] = {kJournalWide | uint64_t{8} * i, ~uint64_t{0}};
      }
      memory_.layout.entries[position].place = place;
      memory_.layout.count = kJournalEntries;
      EXPECT_FALSE(journal_.Recover());
      EXPECT_TRUE(memory_.SameSegments(before));
      EXPECT_EQ(memory_.layout.recoveries, 0U);
    }
  }
}

// The published list lies where the session's other threads can write, too.
TEST_F(JournalTest, CommitStoresWhatWasSetWhateverBecameOfTheList) {
  journal_.Set(memory_.Wide(8), uint64_t{5});
  memory_.layout.entries[0] = {kJournalWide | kSegmentBytes * 1000, 6};
  EXPECT_TRUE(journal_.Commit());
  EXPECT_EQ(*memory_.Wide(8), 5U);
  EXPECT_FALSE(journal_.spoilt());
}

TEST_F(JournalTest, RecoverIgnoresEntriesBehindTheCount) {
  memory_.layout.entries[0] = {kJournalWide | 8, 5};
  memory_.layout.entries[1] = {kSegmentBytes * 2, 5};
  memory_.layout.count = 1;
  EXPECT_TRUE(journal_.Recover());
  EXPECT_EQ(*memory_.Wide(8), 5U);
}

TEST(JournalBoundsTest, RecoverRejectsEverythingWithEmptySegments) {
  Memory memory;
  memory.layout.entries[0] = {0, 1};
  memory.layout.count = 1;
  Journal journal(&memory.layout, memory.session, 0, memory.inbox, 0);
  EXPECT_FALSE(journal.Recover());
  EXPECT_EQ(*memory.Wide(0), 0U);
}

}  // namespace
}  // namespace ferry::shm
