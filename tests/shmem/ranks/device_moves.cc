// Puts, gets and signals from kernels: all names, then sizes and alignments by several groups at
// once, then what is refused.
#include <cstring>

#include "tests/shmem/ranks/device.h"

namespace {

constexpr int kCount = 5;
constexpr int kRemote = 8;  // between the arrays of one test

template <typename T>
T ValueOf(int pe, int i) {
  const int value = pe * 10 + i + 1;
  return static_cast<T>(value);
}

template <typename T>
struct Moves {
  using Move = int (*)(shmemx_device_t, T*, const T*, ferry_device_u64, int);
  using Signalled = int (*)(shmemx_device_t, T*, const T*, ferry_device_u64, uint64_t*,
                            ferry_device_u64, int, int);
  Move put, put_nbi, get, get_nbi;
  Signalled put_signal, put_signal_nbi;
};

struct Arena {
  char* dest;
  char* source;
  uint64_t* signal;
  uint64_t signals = 0;  // that were to come so far
};

// Each PE puts four arrays to the next one, and gets two of its source.
template <typename T>
void TestForm(const Table& table, Arena* arena, ferry_device_u32 kind, const Moves<T>& moves) {
  auto* const dest = reinterpret_cast<T*>(arena->dest);
  auto* const source = reinterpret_cast<T*>(arena->source);
  T got[2 * kRemote] = {};
  std::memset(arena->dest, 0, sizeof(T) * 4 * kRemote);
  for (int i = 0; i < kCount; ++i) {
    source[i] = ValueOf<T>(me, i);
  }
  arena->signals += 3;
  shmem_barrier_all();
  ferry::device::Launch({1, 3, 3}, [&] {
    const shmemx_device_t d = table.Open();
    if (!Takes(kind)) {
      return;
    }
    CHECK(moves.put(d, dest, source, kCount, after) == 0);
    CHECK(moves.put_nbi(d, dest + kRemote, source, kCount, after) == 0);
    CHECK(moves.put_signal(d, dest + 2 * kRemote, source, kCount, arena->signal, 1,
                           SHMEM_SIGNAL_ADD, after) == 0);
    CHECK(moves.put_signal_nbi(d, dest + 3 * kRemote, source, kCount, arena->signal, 2,
                               SHMEM_SIGNAL_ADD, after) == 0);
    CHECK(moves.get(d, got, source, kCount, after) == 0);
    CHECK(moves.get_nbi(d, got + kRemote, source, kCount, after) == 0);
    CHECK(shmemx_device_quiet(d) == 0);
    CHECK(shmemx_device_signal_wait_until(d, arena->signal, SHMEM_CMP_EQ, arena->signals) == 0);
    CHECK(shmemx_device_signal_fetch(d, arena->signal) == arena->signals);
  });
  for (int i = 0; i < kRemote; ++i) {
    for (int part = 0; part < 4; ++part) {
      CHECK(dest[part * kRemote + i] == (i < kCount ? ValueOf<T>(before, i) : T{}));
    }
    for (int part = 0; part < 2; ++part) {
      CHECK(got[part * kRemote + i] == (i < kCount ? ValueOf<T>(after, i) : T{}));
    }
  }
  shmem_barrier_all();
}

void EveryName(const Table& table, Arena* arena) {
#define FERRY_TEST_FORM(suffix, kind, name, type)                                  \
  TestForm<type>(                                                                  \
      table, arena, kind,                                                          \
      {shmemx_device_##name##_put##suffix, shmemx_device_##name##_put_nbi##suffix, \
       shmemx_device_##name##_get##suffix, shmemx_device_##name##_get_nbi##suffix, \
       shmemx_device_##name##_put_signal##suffix, shmemx_device_##name##_put_signal_nbi##suffix});
  FERRY_DEVICE_FORMS(FERRY_SHMEM_ALL_TYPES, FERRY_TEST_FORM)
#undef FERRY_TEST_FORM
}

template <typename T>
void TestSingle(const Table& table, Arena* arena, void (*p)(shmemx_device_t, T*, T, int),
                T (*g)(shmemx_device_t, const T*, int)) {
  auto* const dest = reinterpret_cast<T*>(arena->dest);
  shmem_barrier_all();
  p(table.Open(), dest, ValueOf<T>(me, 3), after);
  CHECK(shmemx_device_quiet(table.Open()) == 0);
  shmem_barrier_all();
  CHECK(*dest == ValueOf<T>(before, 3));
  CHECK(g(table.Open(), dest, after) == ValueOf<T>(me, 3));
  CHECK(shmemx_device_quiet(table.Open()) == 0);
}

void EverySingle(const Table& table, Arena* arena) {
#define FERRY_TEST_SINGLE(suffix, kind, name, type) \
  TestSingle<type>(table, arena, shmemx_device_##name##_p, shmemx_device_##name##_g);
  FERRY_SHMEM_ALL_TYPES(FERRY_TEST_SINGLE, , )
#undef FERRY_TEST_SINGLE
}

// ---- Sizes, alignments, groups ------------------------------------------------------------------

constexpr size_t kSlot = 4096;
constexpr size_t kMargin = 32;

// Each crew of a launch has a slot of its own.
struct Blocks {
  unsigned char* dest;
  unsigned char* source;
  unsigned char* back;
};

template <typename Put, typename Get>
void MoveBlocks(const Table& table, const ferry::device::Shape& shape, ferry_device_u32 crews,
                const Blocks& blocks, size_t size, size_t to, size_t from, Put&& put, Get&& get) {
  for (ferry_device_u32 crew = 0; crew < crews; ++crew) {
    const size_t at = crew * kSlot;
    std::memset(blocks.dest + at, 0xee, kSlot);
    std::memset(blocks.back + at, 0xee, kSlot);
    fill(blocks.source + at + from, size, static_cast<unsigned>(me) * 100 + crew);
  }
  shmem_barrier_all();
  ferry::device::Launch(shape, [&] {
    const shmemx_device_t d = table.Open();
    CHECK(put(d, blocks.dest + to, blocks.source + from, size, after) == 0);
    CHECK(get(d, blocks.back + to, blocks.source + from, size, after) == 0);
    CHECK(shmemx_device_quiet(d) == 0);
  });
  shmem_barrier_all();
  for (ferry_device_u32 crew = 0; crew < crews; ++crew) {
    for (const auto& [block, seed] :
         {std::pair(blocks.dest, before), std::pair(blocks.back, after)}) {
      const unsigned char* const slot = block + crew * kSlot;
      CHECK(is_filled(slot + to, size, static_cast<unsigned>(seed) * 100 + crew));
      CHECK(slot[to - 1] == 0xee && slot[to + size] == 0xee);
    }
  }
  shmem_barrier_all();
}

void Sizes(const Table& table) {
  constexpr ferry_device_u32 kMostCrews = 12;
  const Blocks blocks{Symmetric<unsigned char>(kMostCrews * kSlot),
                      Symmetric<unsigned char>(kMostCrews * kSlot),
                      Symmetric<unsigned char>(kMostCrews * kSlot)};
  for (const size_t size : {0, 1, 15, 16, 100, 1025, 3000}) {
    for (const auto& [to, from] : {std::pair(kMargin, kMargin), std::pair(kMargin + 1, kMargin + 3),
                                   std::pair(kMargin + 4, kMargin)}) {
      for (const ferry::device::Shape& shape :
           {ferry::device::Shape{1, 1}, ferry::device::Shape{1, 8}, ferry::device::Shape{3, 5}}) {
        MoveBlocks(
            table, shape, shape.groups, blocks, size, to, from,
            [](shmemx_device_t d, unsigned char* dest, unsigned char* source, size_t bytes,
               int pe) {
              const size_t at = ferry_device_group() * kSlot;
              return shmemx_device_putmem_work_group(d, dest + at, source + at, bytes, pe);
            },
            [](shmemx_device_t d, unsigned char* dest, unsigned char* source, size_t bytes,
               int pe) {
              const size_t at = ferry_device_group() * kSlot;
              return shmemx_device_getmem_work_group(d, dest + at, source + at, bytes, pe);
            });
      }
      // Sub-groups of four threads; the last of each group has one.
      const auto slot = [] {
        return (ferry_device_group() * 3 + ferry_device_group_thread() / 4) * kSlot;
      };
      MoveBlocks(
          table, {2, 9, 4}, 6, blocks, size, to, from,
          [&](shmemx_device_t d, unsigned char* dest, unsigned char* source, size_t bytes, int pe) {
            return shmemx_device_putmem_sub_group(d, dest + slot(), source + slot(), bytes, pe);
          },
          [&](shmemx_device_t d, unsigned char* dest, unsigned char* source, size_t bytes, int pe) {
            return shmemx_device_getmem_sub_group(d, dest + slot(), source + slot(), bytes, pe);
          });
    }
  }
}

// ---- Refused calls ------------------------------------------------------------------------------

void Mistakes(const Table& table, Arena* arena) {
  const shmemx_device_t d = table.Open();
  long local = 7;
  auto* const words = reinterpret_cast<long*>(arena->dest);
  shmemx_heap_info_t heap;
  shmemx_heap_info(&heap);
  *words = 3;
  for (const int pe : {-1, pes}) {
    CHECK(shmemx_device_long_put(d, words, &local, 1, pe) == SHMEMX_DEVICE_ERR_ARGUMENT);
    CHECK(shmemx_device_long_get(d, &local, words, 1, pe) == SHMEMX_DEVICE_ERR_ARGUMENT);
    CHECK(shmemx_device_ptr(d, words, pe) == nullptr);
  }
  CHECK(shmemx_device_long_put(d, &local, words, 1, me) == SHMEMX_DEVICE_ERR_BUFFER);
  CHECK(shmemx_device_ptr(d, &local, me) == nullptr);
  CHECK(shmemx_device_ptr(d, words, after) == shmem_ptr(words, after));
  CHECK(shmemx_device_putmem(d, words, words, heap.reserved_bytes + 1, me) ==
        SHMEMX_DEVICE_ERR_BUFFER);
  CHECK(shmemx_device_long_put(d, words, &local, SIZE_MAX / 8, me) == SHMEMX_DEVICE_ERR_BUFFER);
  CHECK(shmemx_device_putmem_signal(d, words, &local, 8, arena->signal, 1, 3, me) ==
        SHMEMX_DEVICE_ERR_ARGUMENT);
  auto* const odd = reinterpret_cast<uint64_t*>(arena->dest + 4);
  CHECK(shmemx_device_putmem_signal(d, words, &local, 8, odd, 1, SHMEM_SIGNAL_SET, me) ==
        SHMEMX_DEVICE_ERR_BUFFER);
  CHECK(local == 7 && *words == 3);
  // Those that return a value tell it to quiet; the first one stays.
  CHECK(shmemx_device_quiet(d) == 0);
  CHECK(shmemx_device_long_g(d, words, pes) == 0);
  CHECK(shmemx_device_long_g(d, &local, me) == 0);
  shmemx_device_long_p(d, &local, 1, me);
  CHECK(local == 7 && shmemx_device_quiet(d) == SHMEMX_DEVICE_ERR_ARGUMENT);
}

}  // namespace

int main() {
  begin();
  {
    const Table table;
    CHECK(shmemx_device_my_pe(table.Open()) == me && shmemx_device_n_pes(table.Open()) == pes);
    Arena arena{Symmetric<char>(1024), Symmetric<char>(1024), Symmetric<uint64_t>(1)};
    EveryName(table, &arena);
    EverySingle(table, &arena);
    Sizes(table);
    Mistakes(table, &arena);
  }
  return end_well();
}
