#include "shm/word_copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "tests/shm/stepped_copy.h"

namespace ferry::shm {
namespace {

constexpr std::byte kUntouched{0};

// ---- The right bytes ----------------------------------------------------------------------------

void ExpectCopied(size_t bytes, size_t to_offset, size_t from_offset) {
  const std::vector<std::byte> source = RowOf(from_offset, bytes);
  std::vector<std::byte> room(bytes + 192, kUntouched);
  // Multiples of 64, so that the offsets are those from what CPUs have.
  const auto base = reinterpret_cast<uintptr_t>(room.data());
  const size_t begin = (64 - base % 64) % 64 + to_offset;
  std::vector<std::byte> expected = room;
  std::copy_n(source.begin() + static_cast<ptrdiff_t>(from_offset), bytes,
              expected.begin() + static_cast<ptrdiff_t>(begin));
  CopyWords(room.data() + begin, source.data() + from_offset, bytes);
  ASSERT_EQ(room, expected) << bytes << " bytes from " << from_offset << " to " << to_offset;
}

TEST(WordCopyTest, CopiesSoManyBytesAndNoMore) {
  for (size_t bytes = 0; bytes <= 300; ++bytes) {
    for (size_t to = 0; to < 64; to += to < 16 ? 1 : 5) {
      for (size_t from = 0; from < 9; ++from) {
        ExpectCopied(bytes, to, from);
      }
    }
  }
  for (const size_t bytes : {4'095, 4'096, 4'103, 4'160, 8'192, 12'345, 20'000}) {
    for (size_t to = 0; to < 64; to += 7) {
      for (size_t from = 0; from < 9; ++from) {
        ExpectCopied(bytes, to, from);
      }
    }
  }
}

TEST(WordCopyTest, TakesNullPointersOfNothing) { CopyWords(nullptr, nullptr, 0); }

TEST(WordCopyTest, CopiesWithinARowAsMemmoveDoes) {
  for (const size_t bytes : {1, 3, 4, 7, 8, 9, 16, 31, 33, 64, 65, 100, 255, 300, 4'500, 9'000}) {
    for (const ptrdiff_t shift :
         {-4'096, -65, -33, -16, -9, -8, -4, -3, -1, 0, 1, 3, 4, 8, 9, 16, 33, 65, 4'096}) {
      for (size_t at = 0; at < 9; ++at) {
        std::vector<std::byte> row(bytes + 3 * 4'096 + at);
        for (size_t i = 0; i < row.size(); ++i) {
          row[i] = static_cast<std::byte>(i * 7 + i / 251);
        }
        std::vector<std::byte> expected = row;
        std::byte* const from = row.data() + 4'096 + at;
        std::memmove(expected.data() + 4'096 + at + shift, expected.data() + 4'096 + at, bytes);
        CopyWords(from + shift, from, bytes);
        ASSERT_EQ(row, expected) << bytes << " bytes by " << shift << " at " << at;
      }
    }
  }
}

// ---- Once, and whole ----------------------------------------------------------------------------

constexpr std::array<size_t, 16> kSizes = {1,  2,  3,  4,  5,  7,  8,   12,
                                           15, 16, 20, 24, 31, 32, 100, 300};

TEST(WordCopyTest, StoresEachWordOnceAndWhole) {
  FERRY_REQUIRE_STEPPING();
  for (const size_t bytes : kSizes) {
    for (size_t to = 0; to < 8; ++to) {
      for (const size_t from : {0, 3}) {
        ASSERT_EQ(FaultOf(CopyWords, {bytes, to, from}), "") << "from " << from;
      }
    }
  }
  // By vectors, and by strings.
  for (const size_t from : {0, 3}) {
    ASSERT_EQ(FaultOf(CopyWords, {1'000, 5, from}), "") << "from " << from;
    ASSERT_EQ(FaultOf(CopyWords, {4'207, 44, from}), "") << "from " << from;
  }
}

TEST(WordCopyTest, StoresEachWordOnceWhereTheSourceReachesIntoTheDestination) {
  FERRY_REQUIRE_STEPPING();
  for (const size_t bytes : kSizes) {
    for (size_t to = 16; to < 24; ++to) {
      for (const size_t overlap : {1, 4, 8, 11}) {
        ASSERT_EQ(FaultOf(CopyWords, {.bytes = bytes, .to = to, .overlap = overlap}), "")
            << "from " << overlap << " before";
      }
    }
  }
}

// A copy that begins at both ends, as memcpy's does, is found out: the test above sees the faults
// that it should.
TEST(WordCopyTest, CopiesOfBothEndsAreNone) {
  FERRY_REQUIRE_STEPPING();
  const auto copy = [](std::byte* to, const std::byte* from, size_t bytes) {
    uint32_t first = 0;
    uint32_t last = 0;
    std::memcpy(&first, from, sizeof(first));
    std::memcpy(&last, from + bytes - sizeof(last), sizeof(last));
    StoreRelaxed(*reinterpret_cast<uint32_t*>(to), first);
    StoreRelaxed(*reinterpret_cast<uint32_t*>(to + bytes - sizeof(last)), last);
  };
  EXPECT_EQ(FaultOf(copy, {4, 0}), "the word of 4 bytes at 0 of 4 bytes to 0 is stored twice");
  EXPECT_EQ(FaultOf(copy, {8, 0}), "the word of 8 bytes at 0 of 8 bytes to 0 comes in parts");
  EXPECT_EQ(FaultOf(copy, {4, 1}), "the word of 1 bytes at 1 of 4 bytes to 1 is stored twice");
}

// ---- Each way of long copies --------------------------------------------------------------------

void ExpectMoves(const SteppedCopy& move) {
  for (const size_t bytes : {32, 64, 128, 160, 4'096, 4'128}) {
    for (const size_t from : {0, 8, 13}) {
      alignas(64) std::array<std::byte, 4'200> room{};
      const std::vector<std::byte> source = RowOf(from, bytes);
      move(room.data() + 32, source.data() + from, bytes);
      EXPECT_EQ(std::memcmp(room.data() + 32, source.data() + from, bytes), 0) << bytes;
      EXPECT_EQ(room[31], kUntouched);
      EXPECT_EQ(room[32 + bytes], kUntouched);
    }
  }
}

TEST(WordCopyTest, MovesByVectorsWhereTheCpuHasThem) {
  if (!internal::MayMoveByVectors()) {
    GTEST_SKIP() << "this CPU has no AVX, or a sanitizer would not see it";
  }
  ExpectMoves(internal::MoveByVectors);
  FERRY_REQUIRE_STEPPING();
  EXPECT_EQ(FaultOf(internal::MoveByVectors, {416, 32, 3}), "");
}

TEST(WordCopyTest, MovesByStringsWhereTheyAreFast) {
  if (!internal::MayMoveByStrings()) {
    GTEST_SKIP() << "this CPU's string moves are slow, or a sanitizer would not see them";
  }
  ExpectMoves(internal::MoveByStrings);
  FERRY_REQUIRE_STEPPING();
  EXPECT_EQ(FaultOf(internal::MoveByStrings, {416, 32, 3}), "");
}

}  // namespace
}  // namespace ferry::shm
