#include "client/core/offload_table.h"

#include <gtest/gtest.h>

#include <vector>

namespace ferry::client {
namespace {

class OffloadTableTest : public testing::Test {
 protected:
  std::byte* At(size_t offset) { return memory_.data() + offset; }
  std::byte* ShadowAt(size_t offset) { return shadows_.data() + offset; }

  std::vector<std::byte> memory_ = std::vector<std::byte>(10'000);
  std::vector<std::byte> shadows_ = std::vector<std::byte>(10'000);
  OffloadTable table_;
};

TEST_F(OffloadTableTest, FindsTheBufferAroundARange) {
  table_.Add(At(1000), 1000, ShadowAt(0));
  table_.Add(At(2000), 500, ShadowAt(1000));
  EXPECT_EQ(table_.Around(At(1000), 1000)->shadow, ShadowAt(0));
  EXPECT_EQ(table_.Around(At(1999), 1)->shadow, ShadowAt(0));
  EXPECT_EQ(table_.Around(At(2000), 500)->shadow, ShadowAt(1000));
  EXPECT_EQ(table_.Around(At(999), 10), nullptr);
  EXPECT_EQ(table_.Around(At(1500), 501), nullptr) << "it lies in two";
  EXPECT_EQ(table_.Around(At(2500), 1), nullptr);
  EXPECT_EQ(table_.Around(At(2499), ~uint64_t{0}), nullptr);
}

TEST_F(OffloadTableTest, FindsABufferByItsShadow) {
  table_.Add(At(0), 100, ShadowAt(500));
  table_.Add(At(200), 100, ShadowAt(100));
  EXPECT_EQ(table_.ByShadow(ShadowAt(500))->begin, At(0));
  EXPECT_EQ(table_.ByShadow(ShadowAt(599))->begin, At(0));
  EXPECT_EQ(table_.ByShadow(ShadowAt(100))->begin, At(200));
  EXPECT_EQ(table_.ByShadow(ShadowAt(99)), nullptr);
  EXPECT_EQ(table_.ByShadow(ShadowAt(200)), nullptr);
  EXPECT_EQ(table_.ByShadow(ShadowAt(600)), nullptr);
}

TEST_F(OffloadTableTest, KnowsWhatOverlaps) {
  table_.Add(At(1000), 1000, ShadowAt(0));
  EXPECT_TRUE(table_.Overlaps(At(1000), 1000));
  EXPECT_TRUE(table_.Overlaps(At(1500), 1));
  EXPECT_TRUE(table_.Overlaps(At(0), 1001));
  EXPECT_TRUE(table_.Overlaps(At(0), 5000));
  EXPECT_TRUE(table_.Overlaps(At(1999), 100));
  EXPECT_FALSE(table_.Overlaps(At(0), 1000));
  EXPECT_FALSE(table_.Overlaps(At(2000), 100));
  EXPECT_FALSE(table_.Overlaps(At(1500), 0));
}

TEST_F(OffloadTableTest, HandlesAreNeverUsedAgain) {
  const OffloadHandle first = table_.Add(At(0), 100, ShadowAt(0));
  EXPECT_NE(first, 0U);
  EXPECT_EQ(table_.Find(first)->begin, At(0));
  table_.Remove(first);
  EXPECT_EQ(table_.size(), 0U);
  const OffloadHandle second = table_.Add(At(0), 100, ShadowAt(0));
  EXPECT_NE(second, first);
  EXPECT_EQ(table_.Find(first), nullptr);
  EXPECT_EQ(table_.Find(0), nullptr);
  EXPECT_EQ(table_.Find(second + 1), nullptr);
  table_.Remove(first);
  EXPECT_EQ(table_.size(), 1U);
}

TEST_F(OffloadTableTest, ForgetsWhatWasRemoved) {
  const OffloadHandle handle = table_.Add(At(1000), 1000, ShadowAt(0));
  table_.Remove(handle);
  EXPECT_EQ(table_.Around(At(1000), 1), nullptr);
  EXPECT_EQ(table_.ByShadow(ShadowAt(0)), nullptr);
  EXPECT_FALSE(table_.Overlaps(At(0), 10'000));
}

}  // namespace
}  // namespace ferry::client
