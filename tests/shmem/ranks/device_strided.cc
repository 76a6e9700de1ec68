// Puts and gets of elements and blocks that lie apart, from kernels: all names, then blocks of all
// sizes by groups, then what is refused.
#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/shmem/ranks/device.h"

namespace {

constexpr int kCount = 5;
constexpr int kPart = 40;  // elements of each of a test's arrays
constexpr int kBlocks = 3;
constexpr int kBlock = 2;

template <typename T>
T ValueOf(int pe, int i) {
  const int value = pe * 10 + i + 1;
  return static_cast<T>(value);
}

template <typename T>
struct Moves {
  using Elements = int (*)(shmemx_device_t, T*, const T*, ptrdiff_t, ptrdiff_t, ferry_device_u64,
                           int);
  using Blocks = int (*)(shmemx_device_t, T*, const T*, ptrdiff_t, ptrdiff_t, ferry_device_u64,
                         ferry_device_u64, int);
  Elements iput, iget;
  Blocks ibput, ibget;
};

// Returns true if `dest` has the elements of PE `pe`'s source, and nothing between.
template <typename T>
bool HasBlocks(const T* dest, int pe, int dest_stride, int source_stride, int block, int blocks) {
  T expected[kPart] = {};
  for (int i = 0; i < blocks; ++i) {
    for (int k = 0; k < block; ++k) {
      expected[i * dest_stride + k] = ValueOf<T>(pe, i * source_stride + k);
    }
  }
  for (int i = 0; i < kPart; ++i) {
    if (dest[i] != expected[i]) {
      return false;
    }
  }
  return true;
}

struct Arena {
  char* dest = Symmetric<char>(sizeof(double) * 2 * kPart);
  char* source = Symmetric<char>(sizeof(double) * kPart);
  char* got = Symmetric<char>(sizeof(double) * 2 * kPart);
};

template <typename T>
void TestForm(const Table& table, const Arena& arena, ferry_device_u32 kind,
              const Moves<T>& moves) {
  auto* const dest = reinterpret_cast<T*>(arena.dest);
  auto* const source = reinterpret_cast<T*>(arena.source);
  auto* const got = reinterpret_cast<T*>(arena.got);
  for (int i = 0; i < 2 * kPart; ++i) {
    dest[i] = got[i] = T{};
  }
  for (int i = 0; i < kPart; ++i) {
    source[i] = ValueOf<T>(me, i);
  }
  shmem_barrier_all();
  ferry::device::Launch({1, 3, 3}, [&] {
    if (!Takes(kind)) {
      return;
    }
    const shmemx_device_t d = table.Open();
    CHECK(moves.iput(d, dest, source, 2, 3, kCount, after) == 0);
    CHECK(moves.ibput(d, dest + kPart, source, 5, 4, kBlock, kBlocks, after) == 0);
    CHECK(moves.iget(d, got, source, 3, 2, kCount, after) == 0);
    CHECK(moves.ibget(d, got + kPart, source, 4, 5, kBlock, kBlocks, after) == 0);
    CHECK(shmemx_device_quiet(d) == 0);
  });
  CHECK(HasBlocks(got, after, 3, 2, 1, kCount));
  CHECK(HasBlocks(got + kPart, after, 4, 5, kBlock, kBlocks));
  shmem_barrier_all();
  CHECK(HasBlocks(dest, before, 2, 3, 1, kCount));
  CHECK(HasBlocks(dest + kPart, before, 5, 4, kBlock, kBlocks));
  shmem_barrier_all();
}

void EveryName(const Table& table, const Arena& arena) {
#define FERRY_TEST_FORM(suffix, kind, name, type)                                           \
  TestForm<type>(table, arena, kind,                                                        \
                 {shmemx_device_##name##_iput##suffix, shmemx_device_##name##_iget##suffix, \
                  shmemx_device_##name##_ibput##suffix, shmemx_device_##name##_ibget##suffix});
  FERRY_DEVICE_FORMS(FERRY_SHMEM_ALL_TYPES, FERRY_TEST_FORM)
#undef FERRY_TEST_FORM
}

// ---- Sizes and alignments -----------------------------------------------------------------------

constexpr size_t kRoom = 8192;

// Two groups of seven, each with half of the room; both ways.
void TestSize(const Table& table, unsigned char* dest, unsigned char* source, unsigned char* got,
              size_t block, size_t dest_gap, size_t source_gap, size_t shift) {
  const size_t blocks = rounds(10);
  const size_t dest_stride = block + dest_gap;
  const size_t source_stride = block + source_gap;
  fill(source, 2 * kRoom, static_cast<unsigned>(me));
  memset(dest, 0, 2 * kRoom);
  memset(got, 0, 2 * kRoom);
  shmem_barrier_all();
  ferry::device::Launch({2, 7}, [&] {
    const shmemx_device_t d = table.Open();
    const size_t half = ferry_device_group() * kRoom;
    CHECK(shmemx_device_uint8_ibput_work_group(
              d, dest + half + shift, source + half, static_cast<ptrdiff_t>(dest_stride),
              static_cast<ptrdiff_t>(source_stride), block, blocks, after) == 0);
    CHECK(shmemx_device_uint8_ibget_work_group(
              d, got + half, source + half + shift, static_cast<ptrdiff_t>(dest_stride),
              static_cast<ptrdiff_t>(source_stride), block, blocks, after) == 0);
    CHECK(shmemx_device_quiet(d) == 0);
  });
  shmem_barrier_all();
  std::vector<unsigned char> theirs(2 * kRoom);
  std::vector<unsigned char> expected(2 * kRoom);
  const auto expect = [&](const unsigned char* found, int pe, size_t to, size_t from) {
    fill(theirs.data(), theirs.size(), static_cast<unsigned>(pe));
    std::fill(expected.begin(), expected.end(), 0);
    for (size_t half = 0; half < 2 * kRoom; half += kRoom) {
      for (size_t i = 0; i < blocks; ++i) {
        memcpy(&expected[half + to + i * dest_stride], &theirs[half + from + i * source_stride],
               block);
      }
    }
    CHECK(memcmp(found, expected.data(), expected.size()) == 0);
  };
  expect(dest, before, shift, 0);
  expect(got, after, 0, shift);
}

void Sizes(const Table& table) {
  auto* const dest = Symmetric<unsigned char>(2 * kRoom);
  auto* const source = Symmetric<unsigned char>(2 * kRoom);
  auto* const got = Symmetric<unsigned char>(2 * kRoom);
  for (const size_t block : {0, 1, 3, 8, 16, 100, 512}) {
    for (const auto& [dest_gap, source_gap, shift] :
         {std::tuple(0, 0, 0), std::tuple(8, 0, 0), std::tuple(0, 16, 4), std::tuple(5, 3, 1)}) {
      TestSize(table, dest, source, got, block, dest_gap, source_gap, shift);
    }
  }
}

// ---- Refused calls ------------------------------------------------------------------------------

void Mistakes(const Table& table, const Arena& arena) {
  const shmemx_device_t d = table.Open();
  auto* const dest = reinterpret_cast<long*>(arena.dest);
  auto* const source = reinterpret_cast<long*>(arena.source);
  shmemx_heap_info_t heap;
  shmemx_heap_info(&heap);
  *source = 7;
  *dest = 3;
  shmem_barrier_all();
  CHECK(shmemx_device_long_iput(d, dest, source, 1, 1, 2, pes) == SHMEMX_DEVICE_ERR_ARGUMENT);
  CHECK(shmemx_device_long_iget(d, dest, source, 1, 1, 2, -1) == SHMEMX_DEVICE_ERR_ARGUMENT);
  for (const auto& [dst, sst] : {std::pair(0, 1), std::pair(1, 0), std::pair(-1, 1)}) {
    CHECK(shmemx_device_long_iput(d, dest, source, dst, sst, 2, me) == SHMEMX_DEVICE_ERR_ARGUMENT);
    CHECK(shmemx_device_long_iget(d, dest, source, dst, sst, 2, me) == SHMEMX_DEVICE_ERR_ARGUMENT);
  }
  CHECK(shmemx_device_long_ibput(d, dest, source, 2, 3, 3, 2, me) == SHMEMX_DEVICE_ERR_ARGUMENT);
  CHECK(shmemx_device_long_ibget(d, dest, source, 3, 2, 3, 2, me) == SHMEMX_DEVICE_ERR_ARGUMENT);
  const auto all = static_cast<ptrdiff_t>(heap.reserved_bytes / sizeof(long));
  CHECK(shmemx_device_long_iput(d, dest, source, all, 1, 2, me) == SHMEMX_DEVICE_ERR_BUFFER);
  CHECK(shmemx_device_long_iget(d, dest, source, 1, all, 2, me) == SHMEMX_DEVICE_ERR_BUFFER);
  CHECK(shmemx_device_long_iput(d, dest, source, PTRDIFF_MAX, 1, 2, me) ==
        SHMEMX_DEVICE_ERR_BUFFER);
  CHECK(shmemx_device_long_iput(d, dest, source, 1, 1, SIZE_MAX / 8 + 2, me) ==
        SHMEMX_DEVICE_ERR_BUFFER);
  CHECK(shmemx_device_long_ibput(d, dest, source, 1, 1, SIZE_MAX / 8 + 2, 1, me) ==
        SHMEMX_DEVICE_ERR_BUFFER);
  CHECK(*dest == 3);
  // Strides that step over nothing do not matter.
  CHECK(shmemx_device_long_iput(d, dest, source, 0, -5, 0, me) == 0 && *dest == 3);
  CHECK(shmemx_device_long_iput(d, dest, source, 0, -5, 1, me) == 0 && *dest == 7);
  CHECK(shmemx_device_quiet(d) == 0);
}

}  // namespace

int main() {
  begin();
  {
    const Table table;
    const Arena arena;
    EveryName(table, arena);
    Sizes(table);
    Mistakes(table, arena);
  }
  return end_well();
}
