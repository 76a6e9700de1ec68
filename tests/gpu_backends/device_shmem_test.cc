// OpenSHMEM for kernels on tables that a test has made: what a device without atomic operations
// does, and one of a team that is not on one node. tests/shmem/e2e has whole jobs.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>

#include "ferry/device/shmem.h"

namespace {

// PE 0 of two; the other one is on another node unless it is `near`.
class DeviceShmemTest : public testing::Test {
 protected:
  struct Area {
    ferry_shmem_area area{};
    ferry_shmem_member members[2]{};
  };

  shmemx_device_t Open(bool has_atomics, bool is_near) {
    table_.head.version = FERRY_SHMEM_TABLE_VERSION;
    table_.head.pe_count = 2;
    table_.head.is_one_node = is_near ? 1 : 0;
    table_.head.heap_bytes[0] = sizeof(heaps_[0]);
    table_.head.has_atomics = has_atomics ? 1 : 0;
    for (int pe = 0; pe < (is_near ? 2 : 1); ++pe) {
      table_.ways[pe].heaps[0] = reinterpret_cast<uintptr_t>(heaps_[pe]);
      table_.ways[pe].area = reinterpret_cast<uintptr_t>(&areas_[pe]);
    }
    return shmemx_device_open(&table_);
  }

  struct {
    ferry_shmem_table head{};
    ferry_shmem_way ways[2]{};
  } table_;
  Area areas_[2];
  uint64_t heaps_[2][16]{};
  uint64_t* const words_ = heaps_[0];
};

TEST_F(DeviceShmemTest, FindsTheOtherHeapByTheOffset) {
  const shmemx_device_t d = Open(true, true);
  const uint64_t value = 5;
  EXPECT_EQ(shmemx_device_uint64_put(d, words_ + 3, &value, 1, 1), SHMEMX_DEVICE_SUCCESS);
  EXPECT_EQ(heaps_[1][3], 5u);
  EXPECT_EQ(heaps_[0][3], 0u);
  EXPECT_EQ(shmemx_device_ptr(d, words_ + 15, 1), &heaps_[1][15]);
  EXPECT_EQ(shmemx_device_ptr(d, words_ + 16, 1), nullptr);
  EXPECT_EQ(shmemx_device_uint64_put(d, words_ + 15, words_, 2, 1), SHMEMX_DEVICE_ERR_BUFFER);
}

// A store and a load are atomic on any link; what reads and writes at once is refused, and nothing
// is changed.
TEST_F(DeviceShmemTest, WithoutAtomicsOnlySetsAndFetches) {
  const shmemx_device_t d = Open(false, true);
  shmemx_device_uint64_atomic_set(d, words_, 7, 1);
  EXPECT_EQ(shmemx_device_uint64_atomic_fetch(d, words_, 1), 7u);
  shmemx_device_signal_set(d, words_ + 1, 8, 1);
  EXPECT_EQ(
      shmemx_device_putmem_signal(d, words_ + 2, "eight by", 8, words_ + 3, 9, SHMEM_SIGNAL_SET, 1),
      SHMEMX_DEVICE_SUCCESS);
  EXPECT_EQ(std::memcmp(&heaps_[1][2], "eight by", 8), 0);
  EXPECT_EQ(heaps_[1][1], 8u);
  EXPECT_EQ(heaps_[1][3], 9u);
  EXPECT_EQ(shmemx_device_quiet(d), SHMEMX_DEVICE_SUCCESS);

  EXPECT_EQ(
      shmemx_device_putmem_signal(d, words_ + 2, "not sent", 8, words_ + 3, 9, SHMEM_SIGNAL_ADD, 1),
      SHMEMX_DEVICE_ERR_UNSUPPORTED);
  EXPECT_EQ(std::memcmp(&heaps_[1][2], "eight by", 8), 0);
  EXPECT_EQ(shmemx_device_uint64_atomic_fetch_add(d, words_, 1, 1), 0u);
  EXPECT_EQ(shmemx_device_uint64_atomic_compare_swap(d, words_, 7, 1, 1), 0u);
  shmemx_device_uint32_atomic_xor(d, reinterpret_cast<uint32_t*>(words_), 1, 1);
  EXPECT_EQ(heaps_[1][0], 7u);
  EXPECT_EQ(shmemx_device_quiet(d), SHMEMX_DEVICE_ERR_UNSUPPORTED);
}

TEST_F(DeviceShmemTest, APeOfAnotherNodeIsOutOfReach) {
  const shmemx_device_t d = Open(true, false);
  EXPECT_EQ(shmemx_device_uint64_put(d, words_, words_ + 1, 1, 1), SHMEMX_DEVICE_ERR_UNSUPPORTED);
  EXPECT_EQ(shmemx_device_uint64_put(d, words_, words_ + 1, 1, 0), SHMEMX_DEVICE_SUCCESS);
  EXPECT_EQ(shmemx_device_sync(d), SHMEMX_DEVICE_ERR_UNSUPPORTED);
  EXPECT_EQ(shmemx_device_uint64_collect(d, words_, words_, 1), SHMEMX_DEVICE_ERR_UNSUPPORTED);
}

// PE 1's memory is such that no bytes go there that travel in requests: the ring is not asked.
TEST_F(DeviceShmemTest, RefusesFewBytesWhereOnlyStreamsReach) {
  (void)Open(true, false);
  table_.head.ring = 8;  // never read
  table_.ways[1].segments[0] = 1U << 31 | 1;
  const shmemx_device_t d = shmemx_device_open(&table_);
  uint64_t local[8] = {};
  EXPECT_EQ(shmemx_device_uint64_put(d, words_, words_ + 1, 1, 1), SHMEMX_DEVICE_ERR_UNSUPPORTED);
  EXPECT_EQ(shmemx_device_uint64_put_nbi(d, words_, local, 8, 1), SHMEMX_DEVICE_ERR_UNSUPPORTED);
  EXPECT_EQ(shmemx_device_uint64_put(d, words_, local, 0, 1), SHMEMX_DEVICE_SUCCESS);
}

// A PE whose collectives have failed tells so in its area, where the others look.
TEST_F(DeviceShmemTest, AWaitEndsByThePesOwnWord) {
  const shmemx_device_t d = Open(true, true);
  areas_[1].area.told = 1 | uint64_t{SHMEMX_DEVICE_ERR_BUFFER} << 48;  // after its first round
  EXPECT_EQ(shmemx_device_sync(d), SHMEMX_DEVICE_SUCCESS);
  EXPECT_EQ(shmemx_device_sync(d), SHMEMX_DEVICE_ERR_BUFFER);
  EXPECT_EQ(areas_[1].members[0].round, 2u);
  EXPECT_EQ(shmemx_device_uint64_fcollect(d, words_, words_, 1), SHMEMX_DEVICE_ERR_BUFFER);
  EXPECT_EQ(areas_[1].members[0].round, 2u);  // it has told, too, and does not come any more
  EXPECT_EQ(areas_[0].area.told, 2 | uint64_t{SHMEMX_DEVICE_ERR_BUFFER} << 48);
}

// The host has said that PE 1 is dead: what it did before counts, then it is not waited for.
TEST_F(DeviceShmemTest, AWaitEndsByTheHostsWord) {
  const shmemx_device_t d = Open(true, true);
  areas_[0].members[1].round = 1;
  areas_[0].members[1].state = SHMEMX_DEVICE_ERR_PEER_DIED;
  areas_[0].area.error = SHMEMX_DEVICE_ERR_PEER_DIED;
  words_[0] = 1;
  EXPECT_EQ(shmemx_device_sync(d), SHMEMX_DEVICE_SUCCESS);
  EXPECT_EQ(areas_[1].members[0].round, 1u);
  EXPECT_EQ(shmemx_device_sync(d), SHMEMX_DEVICE_ERR_PEER_DIED);
  areas_[0].members[1].round = 100;
  EXPECT_EQ(shmemx_device_sync(d), SHMEMX_DEVICE_ERR_PEER_DIED);  // out of step for good
  EXPECT_EQ(shmemx_device_uint64_wait_until(d, words_, SHMEM_CMP_EQ, 1), SHMEMX_DEVICE_SUCCESS);
  EXPECT_EQ(shmemx_device_uint64_wait_until(d, words_, SHMEM_CMP_EQ, 2),
            SHMEMX_DEVICE_ERR_PEER_DIED);
}

// A space that the device reaches of PE 0 only, and one that it reaches of both.
TEST_F(DeviceShmemTest, FindsTheHeapsOfDevices) {
  uint64_t near_only[8] = {};
  uint64_t both[2][4] = {};
  (void)Open(true, true);
  table_.head.heap_bytes[1] = sizeof(near_only);
  table_.head.heap_bases[1] = reinterpret_cast<uintptr_t>(near_only);
  table_.ways[0].heaps[1] = reinterpret_cast<uintptr_t>(near_only);
  table_.head.heap_bytes[3] = sizeof(both[0]);
  table_.head.heap_bases[3] = reinterpret_cast<uintptr_t>(both[0]);
  for (int pe = 0; pe < 2; ++pe) {
    table_.ways[pe].heaps[3] = reinterpret_cast<uintptr_t>(both[pe]);
  }
  const shmemx_device_t d = shmemx_device_open(&table_);
  shmemx_device_uint64_p(d, both[0] + 3, 7, 1);
  EXPECT_EQ(both[1][3], 7u);
  EXPECT_EQ(shmemx_device_uint64_atomic_fetch_add(d, both[0] + 3, 2, 1), 7u);
  EXPECT_EQ(shmemx_device_uint64_put(d, near_only, both[0], 4, 0), SHMEMX_DEVICE_SUCCESS);
  EXPECT_EQ(shmemx_device_uint64_put(d, near_only, both[0], 4, 1), SHMEMX_DEVICE_ERR_UNSUPPORTED);
  EXPECT_EQ(shmemx_device_ptr(d, near_only, 1), nullptr);
  EXPECT_EQ(shmemx_device_uint64_sum_reduce(d, near_only, words_, 2),
            SHMEMX_DEVICE_ERR_UNSUPPORTED);
  EXPECT_EQ(shmemx_device_uint64_put(d, both[0] + 2, words_, 3, 1), SHMEMX_DEVICE_ERR_BUFFER);
  EXPECT_EQ(shmemx_device_uint64_put(d, near_only + 7, words_, 2, 0), SHMEMX_DEVICE_ERR_BUFFER);
}

}  // namespace
