#include "shm/inline_copy.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>

namespace ferry::shm {
namespace {

constexpr uint64_t kMost = 32;
constexpr std::byte kUntouched{0xee};

TEST(InlineCopyTest, MovesSoManyBytesAndNoMore) {
  for (uint64_t size = 0; size <= kMost; ++size) {
    std::array<std::byte, kMost> from;
    std::array<std::byte, kMost + 2> to;
    for (size_t i = 0; i < from.size(); ++i) {
      from[i] = static_cast<std::byte>(i + 1);
    }
    to.fill(kUntouched);
    CopyInline(to.data() + 1, from.data(), size);
    EXPECT_EQ(to[0], kUntouched) << size;
    EXPECT_EQ(to[size + 1], kUntouched) << size;
    for (size_t i = 0; i < size; ++i) {
      EXPECT_EQ(to[i + 1], from[i]) << "byte " << i << " of " << size;
    }
  }
}

TEST(InlineCopyTest, TakesNullPointersOfNothing) { CopyInline(nullptr, nullptr, 0); }

}  // namespace
}  // namespace ferry::shm
