#include "client/core/offset_allocator.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace ferry::client {
namespace {

TEST(OffsetAllocatorTest, HandsOutAlignedPiecesThatDoNotOverlap) {
  OffsetAllocator allocator(1 << 16);
  std::map<uint64_t, uint64_t> live;
  std::mt19937 random(7);
  for (int i = 0; i < 5000; ++i) {
    if (live.size() < 20 && random() % 3 != 0) {
      const uint64_t size = random() % 4000;
      const uint64_t offset = allocator.Allocate(size);
      if (offset == OffsetAllocator::kNone) {
        continue;
      }
      EXPECT_EQ(offset % 128, 0U);
      const auto next = live.lower_bound(offset);
      EXPECT_TRUE(next == live.end() || offset + size <= next->first);
      EXPECT_TRUE(next == live.begin() ||
                  std::prev(next)->first + std::prev(next)->second <= offset);
      EXPECT_LE(offset + size, uint64_t{1} << 16);
      live[offset] = size;
    } else if (!live.empty()) {
      const auto victim = std::next(live.begin(), static_cast<long>(random() % live.size()));
      EXPECT_GE(allocator.Free(victim->first), victim->second);
      live.erase(victim);
    }
  }
  for (const auto& [offset, size] : live) {
    EXPECT_NE(allocator.Free(offset), 0U);
  }
  EXPECT_EQ(allocator.free_bytes(), uint64_t{1} << 16);
  EXPECT_EQ(allocator.Allocate(1 << 16), 0U) << "the pieces did not grow together again";
}

TEST(OffsetAllocatorTest, RefusesWhatDoesNotFit) {
  OffsetAllocator allocator(1024);
  EXPECT_EQ(allocator.Allocate(1025), OffsetAllocator::kNone);
  EXPECT_EQ(allocator.Allocate(~uint64_t{0}), OffsetAllocator::kNone);
  EXPECT_NE(allocator.Allocate(1024), OffsetAllocator::kNone);
  EXPECT_EQ(allocator.Allocate(0), OffsetAllocator::kNone);
}

TEST(OffsetAllocatorTest, KnowsWhatIsLive) {
  OffsetAllocator allocator(1024);
  const uint64_t offset = allocator.Allocate(100);
  EXPECT_EQ(allocator.SizeOf(offset), 128U);
  EXPECT_EQ(allocator.SizeOf(offset + 64), 0U);
  EXPECT_EQ(allocator.Free(offset + 64), 0U);
  EXPECT_EQ(allocator.Free(offset), 128U);
  EXPECT_EQ(allocator.Free(offset), 0U);
}

}  // namespace
}  // namespace ferry::client
