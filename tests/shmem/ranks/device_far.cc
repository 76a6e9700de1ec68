// Requests of kernels to ferryd: long blocks and signals between nodes, memory that ferryd does not
// know, order, and more threads than may wait at a time.
#include <algorithm>
#include <vector>

#include "tests/shmem/ranks/device.h"

namespace {

int partner;     // which this PE puts to
int benefactor;  // which puts to this one
constexpr size_t kBlock = (1 << 20) + 13;
constexpr int kGroups = 3;

struct Blocks {
  unsigned char* source = Symmetric<unsigned char>(kGroups * kBlock);
  unsigned char* dest = Symmetric<unsigned char>(kGroups * kBlock);
  unsigned char* back = Symmetric<unsigned char>(kGroups * kBlock);
  uint64_t* signals = Symmetric<uint64_t>(kGroups);
};

unsigned SeedOf(int pe, ferry_device_u32 group, uint64_t round) {
  return static_cast<unsigned>(pe) * 100 + group * 10 + static_cast<unsigned>(round);
}

// Each group puts a block with a signal, waits for that of the other PE, and gets its own back.
void LongBlocks(const Table& table) {
  const Blocks blocks;
  for (uint64_t round = 1; round <= 4; ++round) {
    for (ferry_device_u32 group = 0; group < kGroups; ++group) {
      fill(blocks.source + group * kBlock, kBlock, SeedOf(me, group, round));
    }
    shmem_barrier_all();
    ferry::device::Launch({kGroups, 5}, [&] {
      const shmemx_device_t d = table.Open();
      const ferry_device_u32 group = ferry_device_group();
      const size_t at = group * kBlock;
      uint64_t* const signal = blocks.signals + group;
      const auto put = round % 2 == 0 ? shmemx_device_putmem_signal_work_group
                                      : shmemx_device_putmem_signal_nbi_work_group;
      const bool is_set = round == 3;
      CHECK(put(d, blocks.dest + at, blocks.source + at, kBlock, signal, is_set ? round : 1,
                is_set ? SHMEM_SIGNAL_SET : SHMEM_SIGNAL_ADD, partner) == 0);
      CHECK(shmemx_device_signal_wait_until(d, signal, SHMEM_CMP_GE, round) == 0);
      CHECK(is_filled(blocks.dest + at, kBlock, SeedOf(benefactor, group, round)));
      CHECK(shmemx_device_quiet(d) == 0);
      CHECK(shmemx_device_getmem_work_group(d, blocks.back + at, blocks.dest + at, kBlock,
                                            partner) == 0);
      CHECK(is_filled(blocks.back + at, kBlock, SeedOf(me, group, round)));
    });
    shmem_barrier_all();
  }
}

// The bytes go in requests and answers.
void PrivateMemory(const Table& table) {
  constexpr size_t kBytes = 1001;
  auto* const dest = Symmetric<unsigned char>(kBytes + 1);
  std::vector<unsigned char> source(kBytes + 1), back(kBytes + 1);
  fill(source.data(), kBytes, static_cast<unsigned>(me));
  shmem_barrier_all();
  ferry::device::Launch({1, 6}, [&] {
    const shmemx_device_t d = table.Open();
    CHECK(shmemx_device_putmem_work_group(d, dest, source.data(), kBytes, partner) == 0);
    CHECK(shmemx_device_quiet(d) == 0);
    ferry_device_group_barrier();
    CHECK(shmemx_device_getmem_work_group(d, back.data(), dest, kBytes, partner) == 0);
  });
  CHECK(is_filled(back.data(), kBytes, static_cast<unsigned>(me)) && back[kBytes] == 0);
  shmem_barrier_all();
  CHECK(is_filled(dest, kBytes, static_cast<unsigned>(benefactor)) && dest[kBytes] == 0);
}

// A fence keeps a flag behind a long nonblocking put.
void FencesKeepOrder(const Table& table) {
  auto* const source = Symmetric<unsigned char>(kBlock);
  auto* const dest = Symmetric<unsigned char>(kBlock);
  auto* const flag = Symmetric<long>(1);
  for (long round = 1; round <= 4; ++round) {
    fill(source, kBlock, SeedOf(me, 0, static_cast<uint64_t>(round)));
    shmem_barrier_all();
    ferry::device::Launch({1, 1}, [&] {
      const shmemx_device_t d = table.Open();
      CHECK(shmemx_device_putmem_nbi(d, dest, source, kBlock, partner) == 0);
      shmemx_device_fence(d);
      shmemx_device_long_p(d, flag, round, partner);
      CHECK(shmemx_device_long_wait_until(d, flag, SHMEM_CMP_EQ, round) == 0);
      CHECK(is_filled(dest, kBlock, SeedOf(benefactor, 0, static_cast<uint64_t>(round))));
      CHECK(shmemx_device_quiet(d) == 0);
    });
    shmem_barrier_all();
  }
}

void ManyThreadsWait(const Table& table) {
  constexpr ferry::device::Shape kShape = {8, 24};
  constexpr uint64_t kThreads = 8 * 24;
  auto* const counter = Symmetric<uint64_t>(1);
  auto* const places = Symmetric<uint64_t>(kThreads);
  ferry::device::Launch(kShape, [&] {
    const shmemx_device_t d = table.Open();
    const uint64_t found = shmemx_device_uint64_atomic_fetch_inc(d, counter, partner);
    CHECK(found < kThreads);
    shmemx_device_uint64_p(d, places + found, found + 1, partner);
    CHECK(shmemx_device_uint64_g(d, places + found, partner) == found + 1);
  });
  shmem_barrier_all();
  CHECK(*counter == kThreads);
  for (uint64_t i = 0; i < kThreads; ++i) {
    CHECK(places[i] == i + 1);
  }
}

void Mistakes(const Table& table) {
  auto* const words = Symmetric<long>(4);
  const shmemx_device_t d = table.Open();
  shmemx_heap_info_t heap;
  shmemx_heap_info(&heap);
  long local[2] = {1, 2};
  CHECK(shmemx_device_long_put(d, words, local, 1, pes) == SHMEMX_DEVICE_ERR_ARGUMENT);
  CHECK(shmemx_device_long_put(d, local, words, 1, partner) == SHMEMX_DEVICE_ERR_BUFFER);
  CHECK(shmemx_device_putmem(d, words, words, heap.reserved_bytes + 1, partner) ==
        SHMEMX_DEVICE_ERR_BUFFER);
  CHECK(shmemx_device_putmem_signal(d, words, local, 8, reinterpret_cast<uint64_t*>(words + 1), 1,
                                    9, partner) == SHMEMX_DEVICE_ERR_ARGUMENT);
  CHECK(shmemx_device_ptr(d, words, partner) == shmem_ptr(words, partner));
  CHECK(shmemx_device_putmem(d, words, local, 0, partner) == 0);
  CHECK(shmemx_device_getmem(d, local, words, 0, partner) == 0);
  CHECK(shmemx_device_quiet(d) == 0);
  shmemx_device_long_atomic_inc(d, reinterpret_cast<long*>(reinterpret_cast<char*>(words) + 4),
                                partner);
  CHECK(shmemx_device_quiet(d) == SHMEMX_DEVICE_ERR_BUFFER);
  shmem_barrier_all();
  for (int i = 0; i < 4; ++i) {
    CHECK(words[i] == 0);
  }
}

}  // namespace

int main() {
  begin();
  partner = (me + pes / 2) % pes;
  benefactor = (me + pes - pes / 2) % pes;
  {
    const Table table;
    LongBlocks(table);
    PrivateMemory(table);
    FencesKeepOrder(table);
    ManyThreadsWait(table);
    Mistakes(table);
  }
  return end_well();
}
