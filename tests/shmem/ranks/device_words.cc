// Atomics and waits from kernels: all names; kernels of all PEs and their hosts on one word; waits
// that a host's plain store ends.
#include <thread>

#include "shm/atomic.h"
#include "tests/shmem/ranks/device.h"

namespace {

// ---- Every name ---------------------------------------------------------------------------------

template <typename T>
struct Atomics {
  using Change = void (*)(shmemx_device_t, T*, T, int);
  using Fetching = T (*)(shmemx_device_t, T*, T, int);
  T (*fetch)(shmemx_device_t, const T*, int);
  T (*compare_swap)(shmemx_device_t, T*, T, T, int);
  T (*fetch_inc)(shmemx_device_t, T*, int);
  void (*inc)(shmemx_device_t, T*, int);
  Change set, add, bit_and, bit_or, bit_xor;
  Fetching swap, fetch_add, fetch_and, fetch_or, fetch_xor;
};

// Returns the next PE's value there, as this host sees it.
template <typename T>
T There(const T* word) {
  T found{};
  shmem_getmem(&found, word, sizeof(found), after);
  return found;
}

// Tests atomics on a word of the next PE, which no other PE touches meanwhile. The fetch comes
// after the thread's earlier operations, so the host sees those, too.
template <typename T>
void TestAtomics(shmemx_device_t d, void* memory, const Atomics<T>& call) {
  auto* const word = static_cast<T*>(memory);
  shmem_barrier_all();
  const auto holds = [&](int value) {
    return call.fetch(d, word, after) == static_cast<T>(value) &&
           There(word) == static_cast<T>(value);
  };
  call.set(d, word, 12, after);
  CHECK(holds(12));
  CHECK(call.swap(d, word, 5, after) == 12 && holds(5));
  CHECK(call.compare_swap(d, word, 6, 9, after) == 5 && holds(5));
  CHECK(call.compare_swap(d, word, 5, 9, after) == 5 && holds(9));
  CHECK(call.fetch_inc(d, word, after) == 9 && holds(10));
  call.inc(d, word, after);
  CHECK(holds(11));
  CHECK(call.fetch_add(d, word, static_cast<T>(-21), after) == 11 && holds(-10));
  call.add(d, word, 16, after);
  CHECK(holds(6));
  CHECK(call.fetch_and(d, word, 12, after) == 6 && holds(4));
  CHECK(call.fetch_or(d, word, 3, after) == 4 && holds(7));
  CHECK(call.fetch_xor(d, word, 5, after) == 7 && holds(2));
  call.bit_or(d, word, 12, after);
  CHECK(holds(14));
  call.bit_and(d, word, 7, after);
  CHECK(holds(6));
  call.bit_xor(d, word, 15, after);
  CHECK(holds(9));
}

template <typename T>
void TestReals(shmemx_device_t d, T* word, T (*fetch)(shmemx_device_t, const T*, int),
               void (*set)(shmemx_device_t, T*, T, int), T (*swap)(shmemx_device_t, T*, T, int)) {
  shmem_barrier_all();
  set(d, word, T{2.5}, after);
  CHECK(fetch(d, word, after) == T{2.5});
  CHECK(swap(d, word, T{-0.75}, after) == T{2.5});
  CHECK(There(word) == T{-0.75});
}

template <typename T>
void TestWaits(shmemx_device_t d, void* memory, int (*wait)(shmemx_device_t, T*, int, T),
               int (*test)(shmemx_device_t, T*, int, T)) {
  auto* const word = static_cast<T*>(memory);
  shmem_barrier_all();
  *word = static_cast<T>(-5);  // of unsigned types: a large number
  const bool is_small = *word < static_cast<T>(1);
  const struct {
    int comparison;
    int than_minus_5, than_1;
  } cases[] = {{SHMEM_CMP_EQ, 1, 0},         {SHMEM_CMP_NE, 0, 1},
               {SHMEM_CMP_GT, 0, !is_small}, {SHMEM_CMP_GE, 1, !is_small},
               {SHMEM_CMP_LT, 0, is_small},  {SHMEM_CMP_LE, 1, is_small}};
  for (const auto& one : cases) {
    CHECK(test(d, word, one.comparison, static_cast<T>(-5)) == one.than_minus_5);
    CHECK(test(d, word, one.comparison, 1) == one.than_1);
    if (one.than_1 != 0 || one.than_minus_5 != 0) {
      CHECK(wait(d, word, one.comparison, static_cast<T>(one.than_1 != 0 ? 1 : -5)) == 0);
    }
  }
  CHECK(test(d, word, 7, 1) == -SHMEMX_DEVICE_ERR_ARGUMENT);
  CHECK(wait(d, word, 0, 1) == SHMEMX_DEVICE_ERR_ARGUMENT);
  T local = 1;
  CHECK(wait(d, &local, SHMEM_CMP_EQ, 1) == SHMEMX_DEVICE_ERR_BUFFER);
  CHECK(test(d, reinterpret_cast<T*>(reinterpret_cast<char*>(word) + 1), SHMEM_CMP_EQ, 1) ==
        -SHMEMX_DEVICE_ERR_BUFFER);
}

void EveryName(shmemx_device_t d, void* word) {
#define FERRY_TEST_WORD(name, type, bits)                                                 \
  TestAtomics<type>(                                                                      \
      d, word,                                                                            \
      {shmemx_device_##name##_atomic_fetch, shmemx_device_##name##_atomic_compare_swap,   \
       shmemx_device_##name##_atomic_fetch_inc, shmemx_device_##name##_atomic_inc,        \
       shmemx_device_##name##_atomic_set, shmemx_device_##name##_atomic_add,              \
       shmemx_device_##name##_atomic_and, shmemx_device_##name##_atomic_or,               \
       shmemx_device_##name##_atomic_xor, shmemx_device_##name##_atomic_swap,             \
       shmemx_device_##name##_atomic_fetch_add, shmemx_device_##name##_atomic_fetch_and,  \
       shmemx_device_##name##_atomic_fetch_or, shmemx_device_##name##_atomic_fetch_xor}); \
  TestWaits<type>(d, word, shmemx_device_##name##_wait_until, shmemx_device_##name##_test);
  FERRY_SHMEM_WORD_TYPES(FERRY_TEST_WORD)
#undef FERRY_TEST_WORD
  TestReals<float>(d, static_cast<float*>(word), shmemx_device_float_atomic_fetch,
                   shmemx_device_float_atomic_set, shmemx_device_float_atomic_swap);
  TestReals<double>(d, static_cast<double*>(word), shmemx_device_double_atomic_fetch,
                    shmemx_device_double_atomic_set, shmemx_device_double_atomic_swap);
  CHECK(shmemx_device_quiet(d) == 0);
}

// ---- Kernels and hosts on one word --------------------------------------------------------------

constexpr ferry::device::Shape kShape = {2, 3};
constexpr int kThreads = 6;

struct Shared {
  int32_t sum32;
  int32_t swapped32;
  int64_t sum64;
  int64_t swapped64;
  uint64_t bits;
  uint64_t signal;
};

int Times() { return rounds(300); }

// Adds by compare-swap.
template <typename Fetch, typename CompareSwap>
void AddBySwap(Fetch&& fetch, CompareSwap&& compare_swap) {
  auto found = fetch();
  for (auto expected = found; (found = compare_swap(expected, expected + 1)) != expected;
       expected = found) {
  }
}

void ByKernel(shmemx_device_t d, Shared* shared) {
  const auto bit = uint64_t{1} << (me * kThreads + static_cast<int>(ferry_device_thread()));
  for (int i = 0; i < Times(); ++i) {
    shmemx_device_int_atomic_inc(d, &shared->sum32, 0);
    (void)shmemx_device_int64_atomic_fetch_add(d, &shared->sum64, 3, 0);
    AddBySwap([&] { return shmemx_device_int_atomic_fetch(d, &shared->swapped32, 0); },
              [&](int32_t cond, int32_t value) {
                return shmemx_device_int_atomic_compare_swap(d, &shared->swapped32, cond, value, 0);
              });
    AddBySwap([&] { return shmemx_device_int64_atomic_fetch(d, &shared->swapped64, 0); },
              [&](int64_t cond, int64_t value) {
                return shmemx_device_int64_atomic_compare_swap(d, &shared->swapped64, cond, value,
                                                               0);
              });
    shmemx_device_uint64_atomic_xor(d, &shared->bits, bit, 0);
    shmemx_device_signal_add(d, &shared->signal, 2, 0);
  }
  shmemx_device_uint64_atomic_or(d, &shared->bits, bit, 0);
  CHECK(shmemx_device_quiet(d) == 0);
}

void ByHost(Shared* shared) {
  for (int i = 0; i < Times(); ++i) {
    shmem_int_atomic_inc(&shared->sum32, 0);
    (void)shmem_int64_atomic_fetch_add(&shared->sum64, 3, 0);
    AddBySwap([&] { return shmem_int_atomic_fetch(&shared->swapped32, 0); },
              [&](int32_t cond, int32_t value) {
                return shmem_int_atomic_compare_swap(&shared->swapped32, cond, value, 0);
              });
    AddBySwap([&] { return shmem_int64_atomic_fetch(&shared->swapped64, 0); },
              [&](int64_t cond, int64_t value) {
                return shmem_int64_atomic_compare_swap(&shared->swapped64, cond, value, 0);
              });
    shmem_signal_add(&shared->signal, 2, 0);
  }
}

void KernelsAndHostsAgree(const Table& table) {
  auto* const shared = Symmetric<Shared>(1);
  std::thread device(
      [&] { ferry::device::Launch(kShape, [&] { ByKernel(table.Open(), shared); }); });
  ByHost(shared);
  device.join();
  shmem_barrier_all();
  if (me == 0) {
    const int64_t calls = int64_t{pes} * Times() * (kThreads + 1);
    CHECK(shared->sum32 == calls && shared->swapped32 == calls);
    CHECK(shared->sum64 == 3 * calls && shared->swapped64 == calls);
    CHECK(shared->signal == static_cast<uint64_t>(2 * calls));
    CHECK(shared->bits == (uint64_t{1} << (pes * kThreads)) - 1);
  }
}

// ---- Waits --------------------------------------------------------------------------------------

// A kernel waits, its host stores into the next PE's memory, or puts there: the data come with it.
void WaitsSeePlainStores(const Table& table) {
  auto* const words = Symmetric<int>(2);
  int found = 0;
  shmem_barrier_all();
  std::thread device([&] {
    ferry::device::Launch({1, 1}, [&] {
      CHECK(shmemx_device_int_wait_until(table.Open(), words + 1, SHMEM_CMP_GT, 41) == 0);
      found = words[0];
    });
  });
  if (auto* const theirs = static_cast<int*>(shmem_ptr(words, after)); theirs != nullptr) {
    theirs[0] = 100 + me;
    ferry::shm::StoreRelease(theirs[1], 42);
  } else {
    shmem_int_p(words, 100 + me, after);
    shmem_fence();
    shmem_int_p(words + 1, 42, after);
  }
  device.join();
  CHECK(found == 100 + before);
}

// Kernels pass a token around, twelve times; each waits for its turn.
void KernelsWaitForEachOther(const Table& table) {
  constexpr uint64_t kRounds = 12;
  auto* const token = Symmetric<uint64_t>(1);
  ferry::device::Launch({1, 1}, [&] {
    const shmemx_device_t d = table.Open();
    for (uint64_t round = 1; round <= kRounds; ++round) {
      if (me != 0) {
        CHECK(shmemx_device_uint64_wait_until(d, token, SHMEM_CMP_EQ, round) == 0);
      }
      shmemx_device_signal_set(d, token, round, after);
      if (me == 0) {
        CHECK(shmemx_device_uint64_wait_until(d, token, SHMEM_CMP_EQ, round) == 0);
      }
    }
    CHECK(shmemx_device_quiet(d) == 0);
  });
  CHECK(*token == kRounds);
}

}  // namespace

int main() {
  int provided = 0;
  shmem_init_thread(SHMEM_THREAD_FUNNELED, &provided);
  note_place();
  {
    const Table table;
    EveryName(table.Open(), Symmetric<uint64_t>(1));
    KernelsAndHostsAgree(table);
    WaitsSeePlainStores(table);
    KernelsWaitForEachOther(table);
  }
  return end_well();
}
