#include "common/slot_map.h"

#include <gtest/gtest.h>

namespace ferry {
namespace {

enum class Id : uint64_t {};

TEST(SlotMapTest, FindsWhatWasInserted) {
  SlotMap<Id, int> map;
  const Id a = map.Insert();
  const Id b = map.Insert();
  *map.Find(a) = 1;
  *map.Find(b) = 2;
  EXPECT_EQ(*map.Find(a), 1);
  EXPECT_EQ(*map.Find(b), 2);
}

TEST(SlotMapTest, StaleIdFindsNothing) {
  SlotMap<Id, int> map;
  const Id old = map.Insert();
  *map.Find(old) = 7;
  map.Erase(old);
  EXPECT_EQ(map.Find(old), nullptr);
  const Id fresh = map.Insert();
  EXPECT_NE(fresh, old);
  EXPECT_EQ(map.Find(old), nullptr);
  EXPECT_EQ(*map.Find(fresh), 0);
  map.Erase(old);  // does nothing to the new entry
  EXPECT_NE(map.Find(fresh), nullptr);
}

TEST(SlotMapTest, IdNeverGivenFindsNothing) {
  SlotMap<Id, int> map;
  EXPECT_EQ(map.Find(Id{0}), nullptr);
  EXPECT_EQ(map.Find(Id{UINT64_MAX}), nullptr);
}

TEST(SlotMapTest, EntriesKeepTheirAddress) {
  SlotMap<Id, int> map;
  const Id first = map.Insert();
  int* const address = map.Find(first);
  for (int i = 0; i < 10'000; i++) {
    map.Insert();
  }
  EXPECT_EQ(map.Find(first), address);
}

TEST(SlotMapTest, VisitsEveryEntryAndLetsItGo) {
  SlotMap<Id, int> map;
  for (int i = 0; i < 5; ++i) {
    *map.Find(map.Insert()) = i;
  }
  int sum = 0;
  map.ForEach([&](Id id, int& value) {
    sum += value;
    if (value % 2 == 0) {
      map.Erase(id);
    }
  });
  EXPECT_EQ(sum, 10);
  EXPECT_EQ(map.size(), 2U);
  EXPECT_FALSE(map.empty());
}

}  // namespace
}  // namespace ferry
