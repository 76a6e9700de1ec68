// Segments under a kernel with pages of 64 KiB (tests/fixtures/large_pages.cc), whose sizes are
// multiples of 4 KiB as ever.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>

#include "shm/segment.h"

namespace ferry::shm {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kSize = (7 << 20) + kPage;

// The addresses that this process has, in the system's own pages.
uint64_t Addresses() {
  uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages;
}

TEST(SegmentLargePagesTest, MappingsLeaveNoAddressesBehind) {
  constexpr int kTimes = 100;
  ASSERT_EQ(sysconf(_SC_PAGESIZE), 16 * kPage);
  const StatusOr<UniqueFd> fd = CreateSegment("ferry-test", kSize);
  ASSERT_TRUE(fd.ok()) << fd.status().ToString();
  ASSERT_TRUE(MapSegment(fd->get(), kSize).ok());
  const uint64_t before = Addresses();
  for (int i = 0; i < kTimes; ++i) {
    const StatusOr<Mapping> mapping = MapSegment(fd->get(), kSize);
    ASSERT_TRUE(mapping.ok()) << mapping.status().ToString();
    ASSERT_EQ(mapping->size_bytes(), kSize);
    mapping->base()[kSize - 1] = std::byte{7};
  }
  EXPECT_LT(Addresses(), before + kTimes);
}

}  // namespace
}  // namespace ferry::shm
