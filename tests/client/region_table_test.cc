#include "client/core/region_table.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace ferry::client {
namespace {

class RegionTableTest : public testing::Test {
 protected:
  std::byte* At(size_t offset) { return memory_.data() + offset; }

  std::vector<std::byte> memory_ = std::vector<std::byte>(10'000);
  RegionTable table_;
};

TEST_F(RegionTableTest, NamesRegionAndOffset) {
  table_.Add({At(4000), 1000, 2});
  table_.Add({At(1000), 1000, 1});
  EXPECT_EQ(table_.Find(At(1000), 1).region, 1U);
  EXPECT_EQ(table_.Find(At(1999), 1).region, 1U);
  EXPECT_EQ(table_.Find(At(4500), 500).region, 2U);
  EXPECT_EQ(table_.Find(At(4500), 500).address, 500U);
}

TEST_F(RegionTableTest, TakesTheRestForPrivateMemory) {
  table_.Add({At(1000), 1000, 1});
  for (const size_t offset : {0, 999, 2000, 9000}) {
    const shm::Location where = table_.Find(At(offset), 1);
    EXPECT_EQ(where.region, 0U);
    EXPECT_EQ(where.address, reinterpret_cast<uint64_t>(At(offset)));
  }
  EXPECT_EQ(table_.Find(At(1500), 501).region, 0U) << "its end lies outside";
  EXPECT_EQ(table_.Find(nullptr, 0).region, 0U);
}

TEST_F(RegionTableTest, LentMemoryIsForRanksOfTheNodeOnly) {
  table_.Add({.base = At(1000), .size_bytes = 1000, .id = 1, .lent = true});
  EXPECT_EQ(table_.Find(At(1500), 100).region, 0U);
  EXPECT_EQ(table_.Find(At(1500), 100).address, reinterpret_cast<uint64_t>(At(1500)));
  EXPECT_EQ(table_.FindForNode(At(1500), 100).region, 1U);
  EXPECT_EQ(table_.FindForNode(At(1500), 100).address, 500U);
  EXPECT_EQ(table_.FindForNode(At(1950), 100).region, 0U) << "its end lies outside";
}

TEST_F(RegionTableTest, WhatIsLentAgainCountsAndTheOldOneStays) {
  table_.Add({.base = At(1000), .size_bytes = 1000, .id = 3, .lent = true});
  table_.Add({.base = At(1000), .size_bytes = 4000, .id = 7, .lent = true});
  EXPECT_EQ(table_.FindForNode(At(1500), 100).region, 7U);
  EXPECT_EQ(table_.FindForNode(At(4500), 100).region, 7U);
  ASSERT_NE(table_.ById(3), nullptr);
  EXPECT_EQ(table_.ById(3)->size_bytes, 1000U);
}

TEST_F(RegionTableTest, ForgetsRemovedRegions) {
  table_.Add({At(1000), 1000, 1});
  EXPECT_EQ(table_.ById(1)->base, At(1000));
  table_.Remove(1);
  EXPECT_EQ(table_.ById(1), nullptr);
  EXPECT_EQ(table_.Find(At(1000), 1).region, 0U);
}

TEST_F(RegionTableTest, ReadersMayLookWhileItChanges) {
  table_.Add({At(1000), 1000, 1});
  std::atomic<bool> stop{false};
  std::thread reader([&] {
    while (!stop.load()) {
      EXPECT_EQ(table_.Find(At(1500), 10).region, 1U);
    }
  });
  for (uint32_t id = 2; id < 500; ++id) {
    table_.Add({At(4000), 1000, id});
    table_.Remove(id);
  }
  stop.store(true);
  reader.join();
}

}  // namespace
}  // namespace ferry::client
