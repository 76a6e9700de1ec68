#include "tools/ferrysim/entry_pool.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace ferry::sim {
namespace {

TEST(EntryPoolTest, ArmsUpToItsLimit) {
  EntryPool pool(2);
  EntryPool::Slot slots[3];
  for (EntryPool::Slot& slot : slots) {
    pool.Start(&slot);
  }
  EXPECT_EQ(pool.used(), 2U);
  EXPECT_TRUE(pool.Begin(&slots[0]));
  EXPECT_TRUE(pool.Begin(&slots[1]));
  EXPECT_FALSE(pool.Begin(&slots[2]));
  EXPECT_EQ(pool.peak(), 2U);
}

TEST(EntryPoolTest, WhoWaitsInLineGetsTheNextFreeEntry) {
  EntryPool pool(1);
  EntryPool::Slot first;
  EntryPool::Slot second;
  pool.Start(&first);
  pool.Start(&second);
  EXPECT_TRUE(pool.Begin(&first));
  pool.End();
  EXPECT_TRUE(pool.Begin(&second));
  pool.End();
  EXPECT_EQ(pool.used(), 0U);
}

TEST(EntryPoolTest, WhoRanInSoftwareLeavesTheLine) {
  EntryPool pool(1);
  EntryPool::Slot first;
  EntryPool::Slot second;
  EntryPool::Slot third;
  pool.Start(&first);
  pool.Start(&second);
  pool.Start(&third);
  EXPECT_FALSE(pool.Begin(&second));
  EXPECT_TRUE(pool.Begin(&first));
  pool.End();
  EXPECT_TRUE(pool.Begin(&third));
}

TEST(EntryPoolTest, StartsAheadAreArmedOneByOne) {
  EntryPool pool(3);
  EntryPool::Slot slot;
  for (int i = 0; i < 4; ++i) {
    pool.Start(&slot);
  }
  EXPECT_TRUE(pool.Begin(&slot));
  EXPECT_TRUE(pool.Begin(&slot));
  EXPECT_TRUE(pool.Begin(&slot));
  pool.End();  // of the first: the fourth gets its entry
  EXPECT_TRUE(pool.Begin(&slot));
  EXPECT_EQ(pool.used(), 3U);
}

// Whatever happens: never more entries than there are, and none is lost.
TEST(EntryPoolTest, NeverGivesOutMoreThanThereAre) {
  for (const uint32_t limit : {1U, 3U, 16U}) {
    EntryPool pool(limit);
    std::vector<EntryPool::Slot> slots(10);
    std::mt19937 random(limit);
    uint32_t running = 0;
    for (int i = 0; i < 20000; ++i) {
      EntryPool::Slot& slot = slots[random() % slots.size()];
      switch (random() % 3) {
        case 0:
          if (slot.started - slot.begun < EntryPool::kMostAhead) {
            pool.Start(&slot);
          }
          break;
        case 1:
          if (slot.begun < slot.started) {
            running += pool.Begin(&slot) ? 1 : 0;
          }
          break;
        default:
          if (running != 0) {
            --running;
            pool.End();
          }
      }
      ASSERT_LE(pool.used(), limit);
    }
    for (EntryPool::Slot& slot : slots) {
      while (slot.begun < slot.started) {
        running += pool.Begin(&slot) ? 1 : 0;
      }
    }
    for (; running != 0; --running) {
      pool.End();
    }
    EXPECT_EQ(pool.used(), 0U);
    EXPECT_EQ(pool.peak(), limit);
  }
}

}  // namespace
}  // namespace ferry::sim
