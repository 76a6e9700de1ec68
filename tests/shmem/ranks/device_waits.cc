// Waits and tests for several variables, and those of groups, from kernels: all names, by the last
// PE, for the others' kernels would find the same; then waits that the stores of other PEs end one
// by one, and what is refused, by all.
#include <algorithm>
#include <set>
#include <thread>
#include <vector>

#include "tests/shmem/ranks/device.h"

namespace {

constexpr size_t kWords = 6;

// ---- Every name ---------------------------------------------------------------------------------

template <typename T>
struct Calls {
  using One = int (*)(shmemx_device_t, T*, int, T);
  using All = int (*)(shmemx_device_t, T*, ferry_device_u64, const int*, int, T);
  using Any = size_t (*)(shmemx_device_t, T*, ferry_device_u64, const int*, int, T);
  using Some = size_t (*)(shmemx_device_t, T*, ferry_device_u64, size_t*, const int*, int, T);
  using AllVector = int (*)(shmemx_device_t, T*, ferry_device_u64, const int*, int, const T*);
  using AnyVector = size_t (*)(shmemx_device_t, T*, ferry_device_u64, const int*, int, const T*);
  using SomeVector = size_t (*)(shmemx_device_t, T*, ferry_device_u64, size_t*, const int*, int,
                                const T*);
  One one;
  All all;
  Any any;
  Some some;
  AllVector all_vector;
  AnyVector any_vector;
  SomeVector some_vector;
};

// Checks the results that waits and tests return alike, and the result of a test that has found
// nothing.
template <typename T>
void TestForm(const Table& table, uint64_t* room, ferry_device_u32 kind, const Calls<T>& wait,
              const Calls<T>& test) {
  auto* const words = reinterpret_cast<T*>(room);
  T values[kWords];
  int even[kWords];  // masks those
  int masked[kWords];
  size_t indices[kWords];
  for (size_t i = 0; i < kWords; ++i) {
    words[i] = static_cast<T>(i + 1);
    values[i] = static_cast<T>(i % 2 == 0 ? i + 1 : 99);
    even[i] = i % 2 == 0 ? 1 : 0;
    masked[i] = -1;
  }
  const auto has = [&](std::vector<size_t> expected) {
    const bool is_so = std::equal(expected.begin(), expected.end(), indices);
    ferry_device_crew_barrier(ferry_device_crew_of(kind));  // before the next call changes them
    return is_so;
  };
  // Returns true if many calls find all of these, each of them one, and no others.
  const auto all_come = [](auto&& any, const std::set<size_t>& expected) {
    std::set<size_t> found;
    for (size_t i = 0; i < 10 * kWords; ++i) {
      found.insert(any());
    }
    return found == expected;
  };
  ferry::device::Launch({1, 3, 3}, [&] {
    if (!Takes(kind)) {
      return;
    }
    const shmemx_device_t d = table.Open();
    CHECK(wait.one(d, words, SHMEM_CMP_EQ, 1) == 0);
    CHECK(test.one(d, words, SHMEM_CMP_EQ, 1) == 1 && test.one(d, words, SHMEM_CMP_NE, 1) == 0);
    CHECK(wait.all(d, words, kWords, nullptr, SHMEM_CMP_GE, 1) == 0);
    CHECK(wait.all(d, words, kWords, even, SHMEM_CMP_GE, 2) == 0);
    CHECK(test.all(d, words, kWords, nullptr, SHMEM_CMP_GE, 1) == 1);
    CHECK(test.all(d, words, kWords, nullptr, SHMEM_CMP_GE, 2) == 0);
    CHECK(test.all(d, words, kWords, even, SHMEM_CMP_GE, 2) == 1);
    for (const Calls<T>* const call : {&wait, &test}) {
      CHECK(all_come([&] { return call->any(d, words, kWords, nullptr, SHMEM_CMP_GT, 2); },
                     {2, 3, 4, 5}));
      CHECK(all_come([&] { return call->any(d, words, kWords, even, SHMEM_CMP_GT, 2); }, {3, 5}));
      CHECK(call->some(d, words, kWords, indices, nullptr, SHMEM_CMP_LT, 4) == 3);
      CHECK(has({0, 1, 2}));
      CHECK(call->some(d, words, kWords, indices, even, SHMEM_CMP_NE, 4) == 2);
      CHECK(has({1, 5}));
      CHECK(all_come(
          [&] { return call->any_vector(d, words, kWords, nullptr, SHMEM_CMP_EQ, values); },
          {0, 2, 4}));
      CHECK(all_come([&] { return call->any_vector(d, words, kWords, even, SHMEM_CMP_LT, values); },
                     {1, 3, 5}));
      CHECK(call->some_vector(d, words, kWords, indices, nullptr, SHMEM_CMP_EQ, values) == 3);
      CHECK(has({0, 2, 4}));
      // There is nothing to wait for.
      CHECK(call->any(d, words, 0, nullptr, SHMEM_CMP_EQ, 1) == SIZE_MAX);
      CHECK(call->any(d, words, kWords, masked, SHMEM_CMP_EQ, 1) == SIZE_MAX);
      CHECK(call->some(d, words, kWords, indices, masked, SHMEM_CMP_EQ, 1) == 0);
    }
    CHECK(wait.all_vector(d, words, kWords, nullptr, SHMEM_CMP_LE, values) == 0);
    CHECK(test.all_vector(d, words, kWords, nullptr, SHMEM_CMP_LE, values) == 1);
    CHECK(test.all_vector(d, words, kWords, nullptr, SHMEM_CMP_EQ, values) == 0);
    CHECK(wait.all(d, words, kWords, masked, SHMEM_CMP_EQ, 99) == 0);
    CHECK(test.all(d, words, 0, nullptr, SHMEM_CMP_EQ, 99) == 1);
    CHECK(test.any(d, words, kWords, nullptr, SHMEM_CMP_EQ, 99) == SIZE_MAX);
    CHECK(test.some(d, words, kWords, indices, nullptr, SHMEM_CMP_EQ, 99) == 0);
    CHECK(test.any_vector(d, words, kWords, nullptr, SHMEM_CMP_GT, values) == SIZE_MAX);
    CHECK(test.some_vector(d, words, kWords, indices, nullptr, SHMEM_CMP_GT, values) == 0);
    CHECK(shmemx_device_quiet(d) == 0);
  });
}

void EveryName(const Table& table, uint64_t* room) {
#define FERRY_TEST_CALLS(name, call, suffix)           \
  {shmemx_device_##name##_##call##suffix,              \
   shmemx_device_##name##_##call##_all##suffix,        \
   shmemx_device_##name##_##call##_any##suffix,        \
   shmemx_device_##name##_##call##_some##suffix,       \
   shmemx_device_##name##_##call##_all_vector##suffix, \
   shmemx_device_##name##_##call##_any_vector##suffix, \
   shmemx_device_##name##_##call##_some_vector##suffix}
#define FERRY_TEST_FORM(suffix, kind, name, type, bits)                         \
  TestForm<type>(table, room, kind, FERRY_TEST_CALLS(name, wait_until, suffix), \
                 FERRY_TEST_CALLS(name, test, suffix));
  FERRY_DEVICE_FORMS(FERRY_SHMEM_WAIT_TYPES, FERRY_TEST_FORM)
#undef FERRY_TEST_FORM
#undef FERRY_TEST_CALLS
}

void EverySignalWait(const Table& table, uint64_t* signal) {
  *signal = 5;
#define FERRY_TEST_SIGNAL(suffix, kind)                                                           \
  ferry::device::Launch({1, 4, 4}, [&] {                                                          \
    if (Takes(kind)) {                                                                            \
      CHECK(shmemx_device_signal_wait_until##suffix(table.Open(), signal, SHMEM_CMP_EQ, 5) == 0); \
      CHECK(shmemx_device_signal_wait_until##suffix(table.Open(), signal, 7, 5) ==                \
            SHMEMX_DEVICE_ERR_ARGUMENT);                                                          \
    }                                                                                             \
  });
  FERRY_DEVICE_FORMS(FERRY_SHMEM_NO_TYPE, FERRY_TEST_SIGNAL)
#undef FERRY_TEST_SIGNAL
}

// ---- Waits that others end ----------------------------------------------------------------------

// The kernel's group asks the PE before for one word after the other, and waits for any of them.
void WordsComeOneByOne(const Table& table) {
  constexpr size_t kOrder[kWords] = {3, 0, 5, 1, 4, 2};
  auto* const words = Symmetric<long>(kWords);
  auto* const asked = Symmetric<uint64_t>(1);
  int status[kWords] = {};
  shmem_barrier_all();
  std::thread device([&] {
    ferry::device::Launch({1, 5}, [&] {
      const shmemx_device_t d = table.Open();
      for (size_t i = 0; i < kWords; ++i) {
        if (ferry_device_group_thread() == 0) {
          shmemx_device_signal_set(d, asked, i + 1, before);
        }
        const size_t found =
            shmemx_device_long_wait_until_any_work_group(d, words, kWords, status, SHMEM_CMP_NE, 0);
        CHECK(found == kOrder[i] && words[found] == static_cast<long>(i) + 10);
        if (ferry_device_group_thread() == 0) {
          status[found] = 1;  // the others do not look there
        }
      }
      CHECK(shmemx_device_long_wait_until_all_work_group(d, words, kWords, nullptr, SHMEM_CMP_GE,
                                                         10) == 0);
    });
  });
  for (size_t i = 0; i < kWords; ++i) {
    shmem_signal_wait_until(asked, SHMEM_CMP_EQ, i + 1);
    shmem_long_p(words + kOrder[i], static_cast<long>(i) + 10, after);
    shmem_quiet();
  }
  device.join();
}

// Three groups, then their sub-groups, wait on one table at once, each for its own words.
void GroupsWaitAtOnce(const Table& table) {
  constexpr size_t kGroups = 3;
  constexpr size_t kHalf = kWords / 2;
  auto* const words = Symmetric<int>(kGroups * kWords);
  int status[kGroups][kWords] = {};
  size_t indices[kGroups][2][kHalf];
  shmem_barrier_all();
  std::thread device([&] {
    ferry::device::Launch({kGroups, 6, 3}, [&] {
      const shmemx_device_t d = table.Open();
      const ferry_device_u32 group = ferry_device_group();
      const ferry_device_u32 half = ferry_device_group_thread() / 3;
      int* const own = words + group * kWords;
      for (size_t come = 0; come < kWords; ++come) {
        const size_t found = shmemx_device_int_wait_until_any_work_group(
            d, own, kWords, status[group], SHMEM_CMP_NE, 0);
        CHECK(found < kWords && own[found] == static_cast<int>(group) + 1);
        if (ferry_device_group_thread() == 0) {
          CHECK(status[group][found] == 0);
          status[group][found] = 1;
        }
      }
      CHECK(shmemx_device_int_wait_until_some_sub_group(d, own + half * kHalf, kHalf,
                                                        indices[group][half], nullptr, SHMEM_CMP_GT,
                                                        0) == kHalf);
      CHECK(indices[group][half][kHalf - 1] == kHalf - 1);
    });
  });
  for (size_t i = kGroups * kWords; i-- > 0;) {
    shmem_int_p(words + i, static_cast<int>(i / kWords) + 1, after);
  }
  shmem_quiet();
  device.join();
}

// ---- Refused calls ------------------------------------------------------------------------------

void Mistakes() {
  auto* const words = Symmetric<long>(kWords);
  long local = 1;
  auto* const odd = reinterpret_cast<long*>(reinterpret_cast<char*>(words) + 4);
  size_t indices[kWords];
  const struct {
    long* words;
    ferry_device_u64 count;
    int comparison;
    int status;
  } cases[] = {{words, kWords, 7, SHMEMX_DEVICE_ERR_ARGUMENT},
               {&local, 1, SHMEM_CMP_EQ, SHMEMX_DEVICE_ERR_BUFFER},
               {odd, 1, SHMEM_CMP_EQ, SHMEMX_DEVICE_ERR_BUFFER},
               {words, SIZE_MAX / 8 + 2, SHMEM_CMP_EQ, SHMEMX_DEVICE_ERR_BUFFER}};
  for (const auto& one : cases) {
    const Table table;  // whose quiet tells the first mistake
    ferry::device::Launch({1, 3}, [&] {
      const shmemx_device_t d = table.Open();
      CHECK(shmemx_device_long_wait_until_all_work_group(d, one.words, one.count, nullptr,
                                                         one.comparison, 0) == one.status);
      CHECK(shmemx_device_long_test_all_work_group(d, one.words, one.count, nullptr, one.comparison,
                                                   0) == -one.status);
      CHECK(shmemx_device_quiet(d) == 0);
      ferry_device_group_barrier();  // all have asked for it
      CHECK(shmemx_device_long_wait_until_any_work_group(d, one.words, one.count, nullptr,
                                                         one.comparison, 0) == SIZE_MAX);
      CHECK(shmemx_device_quiet(d) == one.status);
      CHECK(shmemx_device_long_test_some_work_group(d, one.words, one.count, indices, nullptr,
                                                    one.comparison, 0) == 0);
    });
  }
}

}  // namespace

int main() {
  int provided = 0;
  shmem_init_thread(SHMEM_THREAD_FUNNELED, &provided);
  note_place();
  {
    const Table table;
    auto* const room = Symmetric<uint64_t>(kWords);
    if (me == pes - 1) {
      EveryName(table, room);
      EverySignalWait(table, room);
    }
    WordsComeOneByOne(table);
    GroupsWaitAtOnce(table);
  }
  Mistakes();
  return end_well();
}
