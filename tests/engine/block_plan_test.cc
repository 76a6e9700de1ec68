#include "engine/block_plan.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace ferry::engine {
namespace {

constexpr uint64_t kKib = 1024;
constexpr uint64_t kMib = 1024 * kKib;
constexpr uint64_t kAlignment = 4096;

std::vector<uint64_t> Sizes(uint64_t message_bytes, const BlockRules& rules) {
  const BlockPlan plan(message_bytes, rules);
  std::vector<uint64_t> sizes;
  for (uint32_t i = 0; i < plan.block_count(); ++i) {
    sizes.push_back(plan.block(i).size_bytes);
  }
  return sizes;
}

BlockRules Rules(BlockMode mode, uint32_t block_count) {
  return {.mode = mode, .block_count = block_count};
}

TEST(BlockPlanTest, NaiveIsOneBlock) {
  EXPECT_EQ(Sizes(4 * kMib, Rules(BlockMode::kNaive, 8)), std::vector<uint64_t>({4 * kMib}));
}

TEST(BlockPlanTest, EvenBlocksAreAlike) {
  EXPECT_EQ(Sizes(4 * kMib, Rules(BlockMode::kEven, 4)), std::vector<uint64_t>(4, kMib));
}

TEST(BlockPlanTest, AdvancedMovesHalfOfTheFirstBlockToTheLast) {
  EXPECT_EQ(Sizes(4 * kMib, Rules(BlockMode::kAdvanced, 4)),
            std::vector<uint64_t>({kMib / 2, kMib, kMib, kMib * 3 / 2}));
  EXPECT_EQ(Sizes(4 * kMib, Rules(BlockMode::kAdvanced, 2)),
            std::vector<uint64_t>({kMib, 3 * kMib}));
}

TEST(BlockPlanTest, TheDefaultIsThePapers) {
  EXPECT_EQ(Sizes(kMib, {}), std::vector<uint64_t>({kMib / 4, kMib * 3 / 4}));
}

TEST(BlockPlanTest, MessagesUpToTheThresholdAreOneBlock) {
  EXPECT_EQ(Sizes(64 * kKib, {}), std::vector<uint64_t>({64 * kKib}));
  EXPECT_EQ(Sizes(64 * kKib + 1, {}), std::vector<uint64_t>({16 * kKib, 48 * kKib + 1}));
}

TEST(BlockPlanTest, OneBlockIsOneBlockInEveryMode) {
  for (const BlockMode mode : {BlockMode::kEven, BlockMode::kAdvanced}) {
    EXPECT_EQ(Sizes(kMib, Rules(mode, 1)), std::vector<uint64_t>({kMib}));
    EXPECT_EQ(Sizes(kMib, Rules(mode, 0)), std::vector<uint64_t>({kMib}));
  }
}

TEST(BlockPlanTest, AnEmptyMessageIsOneEmptyBlock) {
  const BlockPlan plan(0, {.threshold_bytes = 0});
  ASSERT_EQ(plan.block_count(), 1u);
  EXPECT_EQ(plan.block(0), Block());
}

TEST(BlockPlanTest, AMessageTooSmallForAllBlocksHasFewer) {
  BlockRules rules{.block_count = 8, .threshold_bytes = 0};
  EXPECT_EQ(Sizes(kAlignment, rules), std::vector<uint64_t>({kAlignment}));
  EXPECT_EQ(Sizes(6 * kAlignment, rules),
            std::vector<uint64_t>({kAlignment, 2 * kAlignment, 3 * kAlignment}));
  rules.mode = BlockMode::kEven;
  EXPECT_EQ(Sizes(3 * kAlignment, rules), std::vector<uint64_t>(3, kAlignment));
}

TEST(BlockPlanTest, WithoutAlignmentOffsetsAreFree) {
  const BlockRules rules{
      .mode = BlockMode::kEven, .block_count = 3, .threshold_bytes = 0, .alignment_bytes = 0};
  EXPECT_EQ(Sizes(10, rules), std::vector<uint64_t>({3, 3, 4}));
}

TEST(BlockPlanTest, TheLargestMessageDoesNotOverflow) {
  constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();
  const BlockPlan plan(kMax, Rules(BlockMode::kAdvanced, std::numeric_limits<uint32_t>::max()));
  const uint32_t count = plan.block_count();
  ASSERT_EQ(count, std::numeric_limits<uint32_t>::max());
  const uint64_t middle = plan.block(count / 2).offset_bytes;
  EXPECT_GT(middle, kMax / 2 - kMax / 1000);
  EXPECT_LT(middle, kMax / 2 + kMax / 1000);
  const Block last = plan.block(count - 1);
  EXPECT_GT(last.offset_bytes, kMax - kMax / 1000);
  EXPECT_EQ(last.offset_bytes + last.size_bytes, kMax);
}

// Every mode, many counts, sizes around each power of two.
TEST(BlockPlanTest, BlocksCoverTheMessageSideBySide) {
  for (const BlockMode mode : {BlockMode::kNaive, BlockMode::kEven, BlockMode::kAdvanced}) {
    for (const uint32_t count : {1, 2, 3, 4, 7, 8, 64, 1000}) {
      for (uint64_t power = 1; power <= 64 * kMib; power *= 2) {
        for (const uint64_t size : {power - 1, power, power + 1, power + power / 3}) {
          const BlockPlan plan(size, {.mode = mode, .block_count = count, .threshold_bytes = 0});
          ASSERT_GE(plan.block_count(), 1u);
          ASSERT_LE(plan.block_count(), count);
          uint64_t next = 0;
          for (uint32_t i = 0; i < plan.block_count(); ++i) {
            const Block block = plan.block(i);
            ASSERT_EQ(block.offset_bytes, next);
            ASSERT_EQ(block.offset_bytes % kAlignment, 0u);
            ASSERT_TRUE(block.size_bytes > 0 || size == 0) << size << " in " << count;
            next += block.size_bytes;
          }
          ASSERT_EQ(next, size);
        }
      }
    }
  }
}

TEST(BlockPlanTest, NextWalksOverTheBlocksInPiecesOfALimitedLength) {
  const BlockPlan plan(kMib, Rules(BlockMode::kAdvanced, 2));
  EXPECT_EQ(plan.Next(0, kMib), (Block{0, kMib / 4}));
  EXPECT_EQ(plan.Next(kMib / 4, kMib), (Block{kMib / 4, 3 * kMib / 4}));
  EXPECT_EQ(plan.Next(0, 1000), (Block{0, 1000}));
  EXPECT_EQ(plan.Next(1000, kMib), (Block{1000, kMib / 4 - 1000}));  // up to the block's end
  for (const uint64_t size : {uint64_t{1}, 64 * kKib + 1, kMib + 12345}) {
    const BlockPlan other(size, Rules(BlockMode::kAdvanced, 5));
    uint64_t done = 0;
    while (done < size) {
      const Block next = other.Next(done, 50'000);
      ASSERT_EQ(next.offset_bytes, done);
      ASSERT_GT(next.size_bytes, 0u);
      ASSERT_LE(next.size_bytes, 50'000u);
      done += next.size_bytes;
    }
    ASSERT_EQ(done, size);
  }
}

TEST(BlockPlanTest, NoBlockIsSmallerThanTheOneBefore) {
  for (uint64_t size = 65 * kKib; size < 2 * kMib; size += 4 * kKib) {
    const std::vector<uint64_t> sizes = Sizes(size, Rules(BlockMode::kAdvanced, 4));
    for (size_t i = 1; i < sizes.size(); ++i) {
      // Aligning may take one unit from a block and give it to its neighbour.
      ASSERT_GE(sizes[i] + kAlignment, sizes[i - 1]) << size;
    }
    ASSERT_LT(sizes.front(), sizes.back());
  }
}

}  // namespace
}  // namespace ferry::engine
