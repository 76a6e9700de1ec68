#include "common/topology/cpu_set.h"

#include <gtest/gtest.h>

namespace ferry::topology {
namespace {

TEST(CpuSetTest, ReadsAndWritesLists) {
  for (const char* list : {"0", "0-3", "0-3,8", "1,3,5", "63-64", "0-127,8191"}) {
    const StatusOr<CpuSet> set = CpuSet::Parse(list);
    ASSERT_TRUE(set.ok()) << set.status().message();
    EXPECT_EQ(set->Text(), list);
  }
  EXPECT_EQ(CpuSet::Parse("3,0-1,1-2")->Text(), "0-3");
  EXPECT_EQ(CpuSet().Text(), "");
}

TEST(CpuSetTest, RefusesWhatIsNoList) {
  for (const char* list :
       {"", ",", "0,", "3-1", "a", "0-", "-1", "0-3-5", " 1", "8192", "0-9999"}) {
    const StatusOr<CpuSet> set = CpuSet::Parse(list);
    ASSERT_FALSE(set.ok()) << list;
    EXPECT_EQ(set.status().code(), ErrorCode::kInvalidArgument);
    EXPECT_NE(set.status().message().find("\"" + std::string(list) + "\" is no list of CPUs"),
              std::string::npos)
        << set.status().message();
  }
}

TEST(CpuSetTest, KnowsWhatItHolds) {
  const CpuSet set{0, 2, 100};
  EXPECT_EQ(set.size(), 3U);
  EXPECT_TRUE(set.Contains(100));
  EXPECT_FALSE(set.Contains(1));
  EXPECT_FALSE(set.Contains(5000));
  EXPECT_TRUE(set.Contains(CpuSet{2, 100}));
  EXPECT_FALSE(set.Contains(CpuSet{2, 101}));
  EXPECT_EQ(set.Intersection(CpuSet{1, 2}), CpuSet{2});
  EXPECT_FALSE(set.Intersects(CpuSet{1, 101}));
  EXPECT_TRUE(set.Intersection(CpuSet{101}).empty());
}

TEST(CpuSetTest, AddsAndTakesAway) {
  CpuSet set{0, 2};
  set.Add(CpuSet{2, 100});
  EXPECT_EQ(set, (CpuSet{0, 2, 100}));
  EXPECT_EQ(set.Cpus(), (std::vector<uint32_t>{0, 2, 100}));
  EXPECT_EQ(set.Without(CpuSet{100, 101}), (CpuSet{0, 2}));
  EXPECT_TRUE(set.Without(set).empty());
  EXPECT_EQ(set.Without({}), set);
}

}  // namespace
}  // namespace ferry::topology
