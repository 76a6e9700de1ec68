#include "client/core/shadow_pool.h"

#include <gtest/gtest.h>

namespace ferry::client {
namespace {

class ShadowPoolTest : public testing::Test {
 protected:
  void* Block(int number) { return &memory_[number]; }
  void AddIdle(int number, uint64_t size_bytes) {
    pool_.Add(Block(number), size_bytes);
    ASSERT_TRUE(pool_.Give(Block(number)));
  }

  char memory_[8] = {};
  ShadowPool pool_;
};

TEST_F(ShadowPoolTest, HasNothingAtFirst) {
  EXPECT_EQ(pool_.Take(1), nullptr);
  EXPECT_EQ(pool_.Evict(0), nullptr);
  EXPECT_FALSE(pool_.Give(Block(0))) << "a block of somebody else";
}

TEST_F(ShadowPoolTest, ABlockInUseIsNeitherTakenNorEvicted) {
  pool_.Add(Block(0), 100);
  EXPECT_EQ(pool_.idle_bytes(), 0U);
  EXPECT_EQ(pool_.Take(100), nullptr);
  EXPECT_EQ(pool_.Evict(0), nullptr);
  EXPECT_TRUE(pool_.Give(Block(0)));
  EXPECT_EQ(pool_.idle_bytes(), 100U);
  EXPECT_EQ(pool_.Take(100), Block(0));
  EXPECT_EQ(pool_.Take(100), nullptr);
  EXPECT_EQ(pool_.Evict(0), nullptr);
}

TEST_F(ShadowPoolTest, TakesTheShortestThatSuffices) {
  AddIdle(0, 400);
  AddIdle(1, 100);
  AddIdle(2, 200);
  EXPECT_EQ(pool_.Take(150), Block(2));
  EXPECT_EQ(pool_.Take(100), Block(1));
  EXPECT_EQ(pool_.idle_bytes(), 400U);
}

TEST_F(ShadowPoolTest, AMuchLongerOneIsLeftToLongerMessages) {
  AddIdle(0, 401);
  EXPECT_EQ(pool_.Take(199), nullptr);
  EXPECT_EQ(pool_.Take(402), nullptr);
  EXPECT_EQ(pool_.Take(201), Block(0));
}

TEST_F(ShadowPoolTest, EvictsThoseThatWereIdleForLongest) {
  AddIdle(0, 100);
  AddIdle(1, 150);
  AddIdle(2, 200);
  ASSERT_EQ(pool_.Take(100), Block(0));
  ASSERT_TRUE(pool_.Give(Block(0)));  // now the youngest
  EXPECT_EQ(pool_.Evict(450), nullptr);
  EXPECT_EQ(pool_.Evict(300), Block(1));
  EXPECT_EQ(pool_.Evict(300), nullptr) << "300 are left";
  EXPECT_EQ(pool_.Evict(0), Block(2));
  EXPECT_EQ(pool_.Evict(0), Block(0));
  EXPECT_EQ(pool_.idle_bytes(), 0U);
  EXPECT_FALSE(pool_.Give(Block(1))) << "it is the pool's no more";
}

}  // namespace
}  // namespace ferry::client
