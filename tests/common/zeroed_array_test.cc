#include "common/zeroed_array.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <new>
#include <utility>
#include <vector>

namespace ferry {
namespace {

struct Entry {
  bool is_known = false;
  uint32_t number = 0;
};

// How many of the pages in which the array lies take memory.
size_t PagesOf(const ZeroedArray<Entry>& array) {
  constexpr uintptr_t kPage = 4096;
  const uintptr_t first = reinterpret_cast<uintptr_t>(&array[0]) & ~(kPage - 1);
  const uintptr_t end = reinterpret_cast<uintptr_t>(&array[array.size() - 1] + 1);
  std::vector<unsigned char> pages((end - first + kPage - 1) / kPage);
  EXPECT_EQ(mincore(reinterpret_cast<void*>(first), end - first, pages.data()), 0);
  return static_cast<size_t>(std::count_if(pages.begin(), pages.end(),
                                           [](unsigned char page) { return (page & 1) != 0; }));
}

TEST(ZeroedArrayTest, BeginsWithZeroes) {
  for (const size_t size : {1UL, 100UL, 2048UL, 1'000'000UL}) {
    ZeroedArray<Entry> array(size);
    ASSERT_EQ(array.size(), size);
    for (size_t i = 0; i < size; ++i) {
      ASSERT_FALSE(array[i].is_known);
      ASSERT_EQ(array[i].number, 0U);
      array[i] = {true, static_cast<uint32_t>(i)};
    }
    EXPECT_EQ(array[size - 1].number, size - 1);
  }
}

TEST(ZeroedArrayTest, TakesMemoryOnlyWhereItWasWritten) {
  ZeroedArray<Entry> array(1'000'000);
  EXPECT_EQ(PagesOf(array), 0U);
  array[500'000].number = 7;
  array[999'999].number = 8;
  EXPECT_EQ(PagesOf(array), 2U);
}

TEST(ZeroedArrayTest, MovesWhatItHolds) {
  ZeroedArray<Entry> first(10);
  first[3].number = 5;
  ZeroedArray<Entry> second = std::move(first);
  EXPECT_EQ(second[3].number, 5U);
  EXPECT_EQ(ZeroedArray<Entry>().size(), 0U);
  second = ZeroedArray<Entry>(20);
  EXPECT_EQ(second.size(), 20U);
  EXPECT_EQ(second[3].number, 0U);
}

TEST(ZeroedArrayTest, SaysWhenThereIsNoMemory) {
  EXPECT_THROW(ZeroedArray<Entry>(SIZE_MAX / 64), std::bad_alloc);
}

}  // namespace
}  // namespace ferry
