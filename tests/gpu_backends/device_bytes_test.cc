#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "ferry/device/bytes.h"
#include "tests/shm/stepped_copy.h"

namespace ferry {
namespace {

ferry_device_u8* Device(std::byte* bytes) { return reinterpret_cast<ferry_device_u8*>(bytes); }
const ferry_device_u8* Device(const std::byte* bytes) {
  return reinterpret_cast<const ferry_device_u8*>(bytes);
}

// As so many threads do it, one after the other.
void CopyBy(ferry_device_u64 threads, std::byte* to, const std::byte* from, size_t bytes) {
  for (ferry_device_u64 thread = 0; thread < threads; ++thread) {
    ferry_device_copy_part(Device(to), Device(from), bytes, thread, threads);
  }
}

TEST(DeviceBytesTest, CopiesSoManyBytesAndNoMore) {
  for (const ferry_device_u64 threads : {1, 3, 32}) {
    for (size_t bytes = 0; bytes <= 100; ++bytes) {
      for (size_t to = 0; to < 16; ++to) {
        for (size_t from = 0; from < 16; ++from) {
          const std::vector<std::byte> row = shm::RowOf(from, bytes);
          alignas(16) std::array<std::byte, 160> room{};
          std::array<std::byte, 160> expected{};
          std::copy_n(row.data() + from, bytes, expected.data() + 16 + to);
          CopyBy(threads, room.data() + 16 + to, row.data() + from, bytes);
          ASSERT_EQ(room, expected) << bytes << " bytes from " << from << " to " << to;
        }
      }
    }
  }
}

TEST(DeviceBytesTest, StoresEachWordOnceAndWhole) {
  FERRY_REQUIRE_STEPPING();
  for (const ferry_device_u64 threads : {1, 3}) {
    const auto copy = [threads](std::byte* to, const std::byte* from, size_t bytes) {
      CopyBy(threads, to, from, bytes);
    };
    for (const size_t bytes : {2, 4, 12, 31}) {
      for (const size_t to : {0, 1, 4, 6}) {
        for (const size_t from : {0, 3}) {
          ASSERT_EQ(shm::FaultOf(copy, {bytes, to, from}), "") << "from " << from;
        }
      }
    }
  }
}

}  // namespace
}  // namespace ferry
