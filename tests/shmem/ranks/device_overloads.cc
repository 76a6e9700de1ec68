// The calls of kernels that C++ finds by the types of their arguments: those without a type in
// their name, with elements of all types, and structures, in all forms.
#include <cstdint>
#include <limits>
#include <type_traits>

#include "tests/shmem/ranks/device.h"

namespace {

using ferry::device::Launch;
using Device = shmemx_device_t;
using Count = ferry_device_u64;

constexpr size_t kMost = 64;  // elements

// No type has its size, or its alignment.
struct Point {
  float at[3];
  bool operator==(const Point& other) const {
    return at[0] == other.at[0] && at[1] == other.at[1] && at[2] == other.at[2];
  }
};

template <typename T>
T ValueOf(int pe, size_t i) {
  const int number = (pe * 3 + static_cast<int>(i)) % 5 + 1;
  if constexpr (std::is_same_v<T, Point>) {
    const auto real = static_cast<float>(number);
    return {{real, real + 0.25F, -real}};
  } else {
    return static_cast<T>(number);
  }
}

struct Memory {
  void* dest = Symmetric<char>(kMost * sizeof(long double));
  void* source = Symmetric<char>(kMost * sizeof(long double));
  uint64_t* signal = Symmetric<uint64_t>(1);
};

template <typename T>
void Begin(T* dest, T* source) {
  for (size_t i = 0; i < kMost; ++i) {
    dest[i] = T{};
    source[i] = ValueOf<T>(me, i);
  }
  shmem_barrier_all();
}

// ---- Moves and collectives of data --------------------------------------------------------------

// The calls of one form, of elements T.
template <typename T>
struct Moves {
  using Move = int (*)(Device, T*, const T*, Count, int);
  using Collective = int (*)(Device, T*, const T*, Count);
  Move put, put_nbi, get, get_nbi, broadcast;
  int (*put_signal)(Device, T*, const T*, Count, uint64_t*, Count, int, int);
  Collective fcollect, collect, alltoall;
};

template <typename T>
void TestMoves(const Table& table, const Memory& memory, ferry_device_u32 kind,
               const Moves<T>& call) {
  auto* const dest = static_cast<T*>(memory.dest);
  auto* const source = static_cast<T*>(memory.source);
  const size_t count = kMost / static_cast<size_t>(pes) / 2;
  const auto run = [&](auto&& body) {
    Begin(dest, source);
    Launch({1, 3}, [&] {
      if (Takes(kind)) {
        body(table.Open());
      }
    });
    shmem_barrier_all();
  };
  const auto holds = [&](size_t first, int pe, size_t from) {
    for (size_t i = 0; i < count; ++i) {
      CHECK(dest[first + i] == ValueOf<T>(pe, from + i));
    }
  };
  for (const auto put : {call.put, call.put_nbi}) {
    run([&](Device d) {
      CHECK(put(d, dest, source, count, after) == 0);
      CHECK(shmemx_device_quiet(d) == 0);
    });
    holds(0, before, 0);
  }
  for (const auto get : {call.get, call.get_nbi}) {
    run([&](Device d) {
      CHECK(get(d, dest, source + 1, count, after) == 0);
      CHECK(shmemx_device_quiet(d) == 0);
    });
    holds(0, after, 1);
  }
  *memory.signal = 0;
  run([&](Device d) {
    CHECK(call.put_signal(d, dest, source, count, memory.signal, 7, SHMEM_SIGNAL_SET, after) == 0);
    CHECK(shmemx_device_signal_wait_until(d, memory.signal, SHMEM_CMP_EQ, 7) == 0);
  });
  holds(0, before, 0);
  run([&](Device d) { CHECK(call.broadcast(d, dest, source, count, pes - 1) == 0); });
  holds(0, pes - 1, 0);
  for (const auto collect : {call.fcollect, call.collect}) {
    run([&](Device d) { CHECK(collect(d, dest, source, count) == 0); });
    for (int pe = 0; pe < pes; ++pe) {
      holds(static_cast<size_t>(pe) * count, pe, 0);
    }
  }
  run([&](Device d) { CHECK(call.alltoall(d, dest, source, count) == 0); });
  for (int pe = 0; pe < pes; ++pe) {
    holds(static_cast<size_t>(pe) * count, pe, static_cast<size_t>(me) * count);
  }
}

#define TEST_MOVES(suffix, kind)                                                         \
  TestMoves<T>(table, memory, kind,                                                      \
               {shmemx_device_put##suffix<T>, shmemx_device_put_nbi##suffix<T>,          \
                shmemx_device_get##suffix<T>, shmemx_device_get_nbi##suffix<T>,          \
                shmemx_device_broadcast##suffix<T>, shmemx_device_put_signal##suffix<T>, \
                shmemx_device_fcollect##suffix<T>, shmemx_device_collect##suffix<T>,     \
                shmemx_device_alltoall##suffix<T>});
template <typename T>
void TestAllMoves(const Table& table, const Memory& memory) {
  FERRY_DEVICE_FORMS(FERRY_SHMEM_NO_TYPE, TEST_MOVES)
}

template <typename T>
void TestStrides(const Table& table, const Memory& memory) {
  auto* const dest = static_cast<T*>(memory.dest);
  auto* const source = static_cast<T*>(memory.source);
  Begin(dest, source);
  Launch({1, 2}, [&] {
    const Device d = table.Open();
    CHECK(shmemx_device_iput_work_group(d, dest, source, 2, 1, 5, after) == 0);
    CHECK(shmemx_device_ibget_work_group(d, dest + 20, source, 3, 4, 2, 3, after) == 0);
    CHECK(shmemx_device_barrier_work_group(d) == 0);
    CHECK(shmemx_device_alltoalls_work_group(d, dest + 40, source, 2, 1, 1) == 0);
  });
  for (size_t i = 0; i < 5; ++i) {
    CHECK(dest[2 * i] == ValueOf<T>(before, i) && dest[2 * i + 1] == T{});
  }
  for (size_t i = 0; i < 3; ++i) {
    CHECK(dest[20 + 3 * i] == ValueOf<T>(after, 4 * i));
    CHECK(dest[21 + 3 * i] == ValueOf<T>(after, 4 * i + 1) && dest[22 + 3 * i] == T{});
  }
  for (int pe = 0; pe < pes; ++pe) {
    CHECK(dest[40 + 2 * pe] == ValueOf<T>(pe, static_cast<size_t>(me)));
  }
  shmem_barrier_all();
}

// ---- Computing ----------------------------------------------------------------------------------

template <typename T>
using Computation = int (*)(Device, T*, const T*, Count);

template <typename T, typename Combine>
void TestComputation(const Table& table, const Memory& memory, ferry_device_u32 kind,
                     Computation<T> call, int first_beyond, bool is_scan, Combine&& combine) {
  auto* const dest = static_cast<T*>(memory.dest);
  auto* const source = static_cast<T*>(memory.source);
  Begin(dest, source);
  Launch({1, 3}, [&] {
    if (Takes(kind)) {
      CHECK(call(table.Open(), dest, source, 9) == 0);
    }
  });
  const int end = is_scan ? me + first_beyond : pes;
  for (size_t i = 0; i < 9; ++i) {
    T expected = end == 0 ? T{} : ValueOf<T>(0, i);
    for (int pe = 1; pe < end; ++pe) {
      expected = static_cast<T>(combine(expected, ValueOf<T>(pe, i)));
    }
    CHECK(dest[i] == expected);
  }
  shmem_barrier_all();
}

#define TEST_COMPUTATION(call, suffix, kind, beyond, is_scan, result)                       \
  TestComputation<T>(table, memory, kind, shmemx_device_##call##suffix<T>, beyond, is_scan, \
                     [](T a, T b) { return result; });
#define TEST_ARITHMETIC(suffix, kind)                                 \
  TEST_COMPUTATION(sum_reduce, suffix, kind, 0, false, a + b)         \
  TEST_COMPUTATION(prod_reduce, suffix, kind, 0, false, a* b)         \
  TEST_COMPUTATION(min_reduce, suffix, kind, 0, false, b < a ? b : a) \
  TEST_COMPUTATION(max_reduce, suffix, kind, 0, false, a < b ? b : a) \
  TEST_COMPUTATION(sum_inscan, suffix, kind, 1, true, a + b)          \
  TEST_COMPUTATION(sum_exscan, suffix, kind, 0, true, a + b)
#define TEST_BITWISE(suffix, kind)                           \
  TEST_COMPUTATION(and_reduce, suffix, kind, 0, false, a& b) \
  TEST_COMPUTATION(or_reduce, suffix, kind, 0, false, a | b) \
  TEST_COMPUTATION(xor_reduce, suffix, kind, 0, false, a ^ b)

// In all forms for one type; of the others in two.
template <typename T>
void TestComputations(const Table& table, const Memory& memory) {
  if constexpr (std::is_same_v<T, long>) {
    FERRY_DEVICE_FORMS(FERRY_SHMEM_NO_TYPE, TEST_ARITHMETIC)
    FERRY_DEVICE_FORMS(FERRY_SHMEM_NO_TYPE, TEST_BITWISE)
  } else {
    TEST_ARITHMETIC(, FERRY_DEVICE_CREW_THREAD)
    TEST_ARITHMETIC(_block, FERRY_DEVICE_CREW_GROUP)
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, char>) {
      TEST_BITWISE(, FERRY_DEVICE_CREW_THREAD)
    }
  }
}

// ---- Words --------------------------------------------------------------------------------------

template <typename T>
void TestSingles(const Table& table, const Memory& memory) {
  auto* const dest = static_cast<T*>(memory.dest);
  Begin(dest, static_cast<T*>(memory.source));
  const Device d = table.Open();
  shmemx_device_p(d, dest, 42, after);
  CHECK(shmemx_device_quiet(d) == 0);
  CHECK(shmemx_device_g(d, dest, after) == static_cast<T>(42));
  shmem_barrier_all();
  CHECK(dest[0] == static_cast<T>(42));
}

template <typename T>
void TestAtomicsOfAll(const Table& table, const Memory& memory) {
  auto* const word = static_cast<T*>(memory.dest);
  Begin(word, static_cast<T*>(memory.source));
  const Device d = table.Open();
  shmemx_device_atomic_set(d, word, 12, after);
  CHECK(shmemx_device_atomic_fetch(d, word, after) == static_cast<T>(12));
  CHECK(shmemx_device_atomic_swap(d, word, 5, after) == static_cast<T>(12));
  CHECK(shmemx_device_atomic_fetch(d, word, after) == static_cast<T>(5));
}

template <typename T>
void TestAtomics(const Table& table, const Memory& memory) {
  TestAtomicsOfAll<T>(table, memory);
  auto* const word = static_cast<T*>(memory.dest);
  const Device d = table.Open();
  const auto holds = [&](int value) {
    return shmemx_device_atomic_fetch(d, word, after) == static_cast<T>(value);
  };
  CHECK(shmemx_device_atomic_compare_swap(d, word, 6, 9, after) == 5 && holds(5));
  CHECK(shmemx_device_atomic_compare_swap(d, word, 5, 9, after) == 5 && holds(9));
  CHECK(shmemx_device_atomic_fetch_inc(d, word, after) == 9 && holds(10));
  shmemx_device_atomic_inc(d, word, after);
  CHECK(holds(11));
  CHECK(shmemx_device_atomic_fetch_add(d, word, static_cast<T>(-21), after) == 11 && holds(-10));
  shmemx_device_atomic_add(d, word, 16, after);
  CHECK(holds(6));
  CHECK(shmemx_device_atomic_fetch_and(d, word, 12, after) == 6 && holds(4));
  CHECK(shmemx_device_atomic_fetch_or(d, word, 3, after) == 4 && holds(7));
  CHECK(shmemx_device_atomic_fetch_xor(d, word, 5, after) == 7 && holds(2));
  shmemx_device_atomic_or(d, word, 12, after);
  CHECK(holds(14));
  shmemx_device_atomic_and(d, word, 7, after);
  CHECK(holds(6));
  shmemx_device_atomic_xor(d, word, 15, after);
  CHECK(holds(9));
  shmem_barrier_all();
}

// Signed types know what is less than 0; the largest value of the others is greater.
template <typename T, typename Wait, typename Test>
void TestWaitsOfForm(const Table& table, const Memory& memory, ferry_device_u32 kind,
                     const Wait& wait, const Test& test) {
  auto* const words = static_cast<T*>(memory.dest);
  Begin(words, static_cast<T*>(memory.source));
  words[0] = static_cast<T>(-1);
  words[1] = 3;
  Launch({1, 2}, [&] {
    if (!Takes(kind)) {
      return;
    }
    const Device d = table.Open();
    CHECK(test(d, words, SHMEM_CMP_LT, 0) == (std::is_signed_v<T> ? 1 : 0));
    CHECK(wait(d, words + 1, SHMEM_CMP_GE, 3) == 0);
  });
  shmem_barrier_all();
}

#define TEST_WAITS(suffix, kind)                                               \
  TestWaitsOfForm<T>(table, memory, kind, shmemx_device_wait_until##suffix<T>, \
                     shmemx_device_test##suffix<T>);
template <typename T>
void TestWaits(const Table& table, const Memory& memory) {
  FERRY_DEVICE_FORMS(FERRY_SHMEM_NO_TYPE, TEST_WAITS)
  auto* const words = static_cast<T*>(memory.dest);
  const T values[3] = {3, 1, 4};
  size_t indices[3] = {9, 9, 9};
  const int status[3] = {0, 1, 0};
  Begin(words, static_cast<T*>(memory.source));
  words[0] = 3;
  words[2] = 4;
  const Device d = table.Open();
  CHECK(shmemx_device_wait_until_all(d, words, 3, status, SHMEM_CMP_GT, 2) == 0);
  CHECK(shmemx_device_wait_until_all_vector(d, words, 3, status, SHMEM_CMP_EQ, values) == 0);
  CHECK(shmemx_device_test_all(d, words, 3, nullptr, SHMEM_CMP_GT, 2) == 0);
  CHECK(shmemx_device_test_all_vector(d, words, 3, status, SHMEM_CMP_EQ, values) == 1);
  CHECK(shmemx_device_wait_until_any(d, words, 3, status, SHMEM_CMP_EQ, 4) == 2);
  CHECK(shmemx_device_wait_until_any_vector(d, words + 1, 2, nullptr, SHMEM_CMP_EQ, values + 1) ==
        1);
  CHECK(shmemx_device_test_any(d, words, 3, nullptr, SHMEM_CMP_EQ, 7) == SIZE_MAX);
  CHECK(shmemx_device_test_any_vector(d, words, 1, nullptr, SHMEM_CMP_EQ, values) == 0);
  CHECK(shmemx_device_wait_until_some(d, words, 3, indices, status, SHMEM_CMP_GE, 3) == 2);
  CHECK(indices[0] == 0 && indices[1] == 2);
  CHECK(shmemx_device_wait_until_some_vector(d, words, 3, indices, status, SHMEM_CMP_EQ, values) ==
        2);
  CHECK(shmemx_device_test_some(d, words, 3, indices, nullptr, SHMEM_CMP_EQ, 0) == 1);
  CHECK(indices[0] == 1);
  CHECK(shmemx_device_test_some_vector(d, words, 3, indices, nullptr, SHMEM_CMP_NE, values) == 1);
  shmem_barrier_all();
}

template <typename... Types>
struct Each {
  template <typename Body>
  static void Do(Body&& body) {
    (body(Types{}), ...);
  }
};
using Words = Each<int, unsigned, long, unsigned long, long long, unsigned long long>;
using Reals = Each<float, double>;
using Small = Each<char, signed char, unsigned char, short, unsigned short>;

}  // namespace

int main() {
  int provided = 0;
  shmem_init_thread(SHMEM_THREAD_FUNNELED, &provided);
  note_place();
  {
    const Table table;
    const Memory memory;
    TestAllMoves<Point>(table, memory);
    TestAllMoves<long double>(table, memory);
    TestStrides<Point>(table, memory);
    TestStrides<short>(table, memory);
    const auto compute = [&](auto number) {
      TestComputations<decltype(number)>(table, memory);
      TestSingles<decltype(number)>(table, memory);
    };
    Words::Do(compute);
    Reals::Do(compute);
    Small::Do(compute);
    Words::Do([&](auto word) {
      TestAtomics<decltype(word)>(table, memory);
      TestWaits<decltype(word)>(table, memory);
    });
    Reals::Do([&](auto real) {
      TestAtomicsOfAll<decltype(real)>(table, memory);
      shmem_barrier_all();
    });
  }
  return end_well();
}
