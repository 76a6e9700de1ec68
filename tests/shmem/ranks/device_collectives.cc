// Collectives from kernels: all names and types, then lengths and groups of all sizes, then several
// groups at once on different teams. On several nodes not all names: it would take long.
#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

#include "tests/shmem/ranks/device.h"

namespace {

constexpr size_t kArenaBytes = 1 << 16;

struct Arena {
  char* dest = Symmetric<char>(kArenaBytes);
  char* source = Symmetric<char>(kArenaBytes);
};

// Values that reductions of small types hold, too.
template <typename T>
T ValueOf(int pe, size_t i) {
  return static_cast<T>((pe * 3 + static_cast<int>(i)) % 5 + 1);
}

// ---- Data ---------------------------------------------------------------------------------------

template <typename T>
struct DataCalls {
  using Call = int (*)(shmemx_device_t, T*, const T*, ferry_device_u64);
  int (*broadcast)(shmemx_device_t, T*, const T*, ferry_device_u64, int);
  Call fcollect, collect, alltoall;
  int (*alltoalls)(shmemx_device_t, T*, const T*, ptrdiff_t, ptrdiff_t, ferry_device_u64);
};

// How many elements a PE has in a collect: some have none.
size_t LengthOf(int pe, size_t count) { return pe == 1 ? 0 : count + static_cast<size_t>(pe); }

template <typename T>
void CheckCollected(const T* dest, size_t count, bool has_lengths) {
  for (int pe = 0; pe < pes; ++pe) {
    const size_t length = has_lengths ? LengthOf(pe, count) : count;
    for (size_t i = 0; i < length; ++i) {
      CHECK(*dest++ == ValueOf<T>(pe, i));
    }
  }
}

template <typename T>
void TestData(const Table& table, const Arena& arena, const ferry::device::Shape& shape,
              ferry_device_u32 kind, size_t count, const DataCalls<T>& call) {
  auto* const dest = reinterpret_cast<T*>(arena.dest);
  auto* const source = reinterpret_cast<T*>(arena.source);
  const size_t most = (2 * count + 8) * static_cast<size_t>(pes);
  for (size_t i = 0; i < most; ++i) {
    source[i] = ValueOf<T>(me, i);
  }
  const auto run = [&](const std::function<int(shmemx_device_t)>& collective) {
    std::fill(dest, dest + most, T{});
    shmem_barrier_all();
    ferry::device::Launch(shape, [&] {
      if (Takes(kind)) {
        CHECK(collective(table.Open()) == 0);
      }
    });
  };
  const int root = pes - 1;
  run([&](shmemx_device_t d) { return call.broadcast(d, dest, source, count, root); });
  for (size_t i = 0; i < count; ++i) {
    CHECK(dest[i] == ValueOf<T>(root, i));
  }
  run([&](shmemx_device_t d) { return call.fcollect(d, dest, source, count); });
  CheckCollected(dest, count, false);
  run([&](shmemx_device_t d) { return call.collect(d, dest, source, LengthOf(me, count)); });
  CheckCollected(dest, count, true);
  run([&](shmemx_device_t d) { return call.alltoall(d, dest, source, count); });
  for (int pe = 0; pe < pes; ++pe) {
    for (size_t i = 0; i < count; ++i) {
      const size_t block = static_cast<size_t>(me) * count;
      CHECK(dest[static_cast<size_t>(pe) * count + i] == ValueOf<T>(pe, block + i));
    }
  }
  // Elements at every second place, of those that lie side by side.
  run([&](shmemx_device_t d) { return call.alltoalls(d, dest, source, 2, 1, count); });
  for (size_t i = 0; i < most; ++i) {
    const size_t pe = count == 0 ? pes : i / 2 / count;
    const bool is_gap = i % 2 != 0 || pe >= static_cast<size_t>(pes);
    const size_t from = is_gap ? 0 : static_cast<size_t>(me) * count + i / 2 % count;
    CHECK(dest[i] == (is_gap ? T{} : ValueOf<T>(static_cast<int>(pe), from)));
  }
}

// ---- Reductions ---------------------------------------------------------------------------------

template <typename T>
using ReduceCall = int (*)(shmemx_device_t, T*, const T*, ferry_device_u64);

template <typename T, typename Combine>
void TestReduction(const Table& table, const Arena& arena, const ferry::device::Shape& shape,
                   ferry_device_u32 kind, size_t count, bool in_place, ReduceCall<T> call,
                   Combine&& combine) {
  auto* const source = reinterpret_cast<T*>(arena.source);
  auto* const dest = in_place ? source : reinterpret_cast<T*>(arena.dest);
  for (size_t i = 0; i < count; ++i) {
    dest[i] = T{};
    source[i] = ValueOf<T>(me, i);
  }
  dest[count] = T{99};
  ferry::device::Launch(shape, [&] {
    if (Takes(kind)) {
      CHECK(call(table.Open(), dest, source, count) == 0);
    }
  });
  for (size_t i = 0; i < count; ++i) {
    T expected = ValueOf<T>(0, i);
    for (int pe = 1; pe < pes; ++pe) {
      expected = static_cast<T>(combine(expected, ValueOf<T>(pe, i)));
    }
    CHECK(dest[i] == expected);
  }
  CHECK(dest[count] == T{99});
}

// Sums of the PEs up to the own one: with it, and without it.
template <typename T>
void TestScans(const Table& table, const Arena& arena, const ferry::device::Shape& shape,
               ferry_device_u32 kind, size_t count, bool in_place, ReduceCall<T> inclusive,
               ReduceCall<T> exclusive) {
  auto* const source = reinterpret_cast<T*>(arena.source);
  auto* const dest = in_place ? source : reinterpret_cast<T*>(arena.dest);
  for (const bool includes_own : {true, false}) {
    for (size_t i = 0; i < count; ++i) {
      dest[i] = T{};
      source[i] = ValueOf<T>(me, i);
    }
    dest[count] = T{99};
    ferry::device::Launch(shape, [&] {
      if (Takes(kind)) {
        CHECK((includes_own ? inclusive : exclusive)(table.Open(), dest, source, count) == 0);
      }
    });
    for (size_t i = 0; i < count; ++i) {
      T expected{};
      for (int pe = 0; pe < (includes_own ? me + 1 : me); ++pe) {
        expected = static_cast<T>(expected + ValueOf<T>(pe, i));
      }
      CHECK(dest[i] == expected);
    }
    CHECK(dest[count] == T{99});
  }
}

constexpr auto kMin = [](auto a, auto b) { return std::min(a, b); };
constexpr auto kMax = [](auto a, auto b) { return std::max(a, b); };

constexpr ferry::device::Shape kSmall = {1, 3, 3};
constexpr size_t kFew = 7;

void EveryName(const Table& table, const Arena& arena) {
#define FERRY_TEST_TYPE(suffix, kind, name, type)                                         \
  TestData<type>(                                                                         \
      table, arena, kSmall, kind, kFew,                                                   \
      {shmemx_device_##name##_broadcast##suffix, shmemx_device_##name##_fcollect##suffix, \
       shmemx_device_##name##_collect##suffix, shmemx_device_##name##_alltoall##suffix,   \
       shmemx_device_##name##_alltoalls##suffix});                                        \
  TestScans<type>(table, arena, kSmall, kind, kFew, false,                                \
                  shmemx_device_##name##_sum_inscan##suffix,                              \
                  shmemx_device_##name##_sum_exscan##suffix);                             \
  TestReduction<type>(table, arena, kSmall, kind, kFew, false,                            \
                      shmemx_device_##name##_sum_reduce##suffix, std::plus<>());          \
  TestReduction<type>(table, arena, kSmall, kind, kFew, false,                            \
                      shmemx_device_##name##_prod_reduce##suffix, std::multiplies<>());   \
  TestReduction<type>(table, arena, kSmall, kind, kFew, false,                            \
                      shmemx_device_##name##_min_reduce##suffix, kMin);                   \
  TestReduction<type>(table, arena, kSmall, kind, kFew, false,                            \
                      shmemx_device_##name##_max_reduce##suffix, kMax);
#define FERRY_TEST_BITWISE(suffix, kind, name, type)                                \
  TestReduction<type>(table, arena, kSmall, kind, kFew, false,                      \
                      shmemx_device_##name##_and_reduce##suffix, std::bit_and<>()); \
  TestReduction<type>(table, arena, kSmall, kind, kFew, false,                      \
                      shmemx_device_##name##_or_reduce##suffix, std::bit_or<>());   \
  TestReduction<type>(table, arena, kSmall, kind, kFew, false,                      \
                      shmemx_device_##name##_xor_reduce##suffix, std::bit_xor<>());
  FERRY_DEVICE_FORMS(FERRY_SHMEM_ALL_TYPES, FERRY_TEST_TYPE)
  FERRY_DEVICE_FORMS(FERRY_SHMEM_BITWISE_TYPES, FERRY_TEST_BITWISE)
#undef FERRY_TEST_TYPE
#undef FERRY_TEST_BITWISE
}

void Sizes(const Table& table, const Arena& arena) {
  for (const ferry::device::Shape& shape :
       {ferry::device::Shape{1, 1}, ferry::device::Shape{1, 13}}) {
    for (const size_t count : {0, 1, 2, 64, 1000}) {
      TestData<int64_t>(
          table, arena, shape, FERRY_DEVICE_CREW_GROUP, count,
          {shmemx_device_int64_broadcast_work_group, shmemx_device_int64_fcollect_work_group,
           shmemx_device_int64_collect_work_group, shmemx_device_int64_alltoall_work_group,
           shmemx_device_int64_alltoalls_work_group});
      for (const bool in_place : {false, true}) {
        TestReduction<double>(table, arena, shape, FERRY_DEVICE_CREW_GROUP, count, in_place,
                              shmemx_device_double_sum_reduce_work_group, std::plus<>());
        TestReduction<int32_t>(table, arena, shape, FERRY_DEVICE_CREW_GROUP, count, in_place,
                               shmemx_device_int32_xor_reduce_work_group, std::bit_xor<>());
        TestScans<int64_t>(table, arena, shape, FERRY_DEVICE_CREW_GROUP, count, in_place,
                           shmemx_device_int64_sum_inscan_work_group,
                           shmemx_device_int64_sum_exscan_work_group);
      }
    }
  }
}

// How often PEs have met: small vectors travel with the rounds themselves.
void SmallOnesMeetOnce(const Table& table, const Arena& arena) {
  const shmemx_device_t d = table.Open();
  for (const size_t count : {1, 4, 5}) {
    for (int again = 0; again < 5; ++again) {
      const ferry_device_u64 before_it = d.own->round;
      TestReduction<int64_t>(table, arena, {1, 3}, FERRY_DEVICE_CREW_GROUP, count, again % 2 != 0,
                             shmemx_device_int64_sum_reduce_work_group, std::plus<>());
      CHECK(d.own->round - before_it == (count * sizeof(int64_t) <= 32 ? 1 : 2));
    }
  }
}

// Vectors that a PE of another node cannot hold a copy of at once.
void LongVectors(const Table& table) {
  constexpr size_t kLong = 50'000;
  const Arena arena{Symmetric<char>((kLong + 1) * sizeof(int64_t)),
                    Symmetric<char>((kLong + 1) * sizeof(int64_t))};
  for (const bool in_place : {false, true}) {
    TestReduction<int64_t>(table, arena, {1, 3}, FERRY_DEVICE_CREW_GROUP, kLong, in_place,
                           shmemx_device_int64_sum_reduce_work_group, std::plus<>());
    TestScans<int64_t>(table, arena, {1, 3}, FERRY_DEVICE_CREW_GROUP, kLong, in_place,
                       shmemx_device_int64_sum_inscan_work_group,
                       shmemx_device_int64_sum_exscan_work_group);
  }
}

// Bytes, and what is not a type's.
void BytesAndBarriers(const Table& table, const Arena& arena) {
  using Barrier = int (*)(shmemx_device_t);
  auto* const source = reinterpret_cast<unsigned char*>(arena.source);
  auto* const dest = reinterpret_cast<unsigned char*>(arena.dest);
  fill(source, 100, static_cast<unsigned>(me));
  std::fill(dest, dest + 500, 0);
  shmem_barrier_all();
  ferry::device::Launch({1, 4}, [&] {
    const shmemx_device_t d = table.Open();
    CHECK(shmemx_device_broadcastmem_work_group(d, dest, source, 100, 0) == 0);
    CHECK(shmemx_device_fcollectmem_work_group(d, dest + 100, source, 3) == 0);
    CHECK(shmemx_device_collectmem_work_group(d, dest + 200, source, 1) == 0);
    CHECK(shmemx_device_alltoallmem_work_group(d, dest + 300, source, 1) == 0);
    CHECK(shmemx_device_alltoallsmem_work_group(d, dest + 400, source, 3, 2, 1) == 0);
  });
  CHECK(is_filled(dest, 100, 0));
  for (int pe = 0; pe < pes; ++pe) {
    unsigned char theirs[100];
    fill(theirs, 100, static_cast<unsigned>(pe));
    CHECK(memcmp(dest + 100 + size_t{3} * static_cast<size_t>(pe), theirs, 3) == 0);
    CHECK(dest[200 + pe] == theirs[0] && dest[300 + pe] == theirs[me]);
    CHECK(dest[400 + 3 * pe] == theirs[2 * me] && dest[401 + 3 * pe] == 0);
  }
  // After a barrier each PE sees what all others did before it, whichever form it has.
  auto* const words = Symmetric<int>(static_cast<size_t>(pes));
  int round = 0;
  for (const auto& [barrier, is_single] :
       {std::pair<Barrier, bool>(shmemx_device_sync, true),
        std::pair<Barrier, bool>(shmemx_device_barrier, true),
        std::pair<Barrier, bool>(shmemx_device_sync_work_group, false),
        std::pair<Barrier, bool>(shmemx_device_barrier_block, false),
        std::pair<Barrier, bool>(shmemx_device_sync_wg, false),
        std::pair<Barrier, bool>(shmemx_device_barrier_sub_group, false),
        std::pair<Barrier, bool>(shmemx_device_sync_warp, false),
        std::pair<Barrier, bool>(shmemx_device_barrier_wave, false)}) {
    ++round;
    ferry::device::Launch({1, 4, 4}, [&, meet = barrier, by_one = is_single] {
      const shmemx_device_t d = table.Open();
      const auto thread = static_cast<int>(ferry_device_group_thread());
      if (by_one && thread != 0) {
        return;
      }
      for (int pe = thread; pe < pes; pe += by_one ? 1 : 4) {
        shmemx_device_int_p(d, words + me, round, pe);
      }
      CHECK(meet(d) == 0);
      for (int pe = 0; pe < pes; ++pe) {
        CHECK(words[pe] == round);
      }
      CHECK(meet(d) == 0);  // before the next round changes them
    });
  }
}

// Each thread of a group puts two words; the group's quiet completes all, its fence orders them.
void GroupsComplete(const Table& table) {
  using Fence = void (*)(shmemx_device_t);
  using Quiet = int (*)(shmemx_device_t);
  constexpr uint64_t kThreads = 4;
  auto* const words = Symmetric<uint64_t>(2 * kThreads);
  auto* const flags = Symmetric<uint64_t>(kThreads);
  uint64_t round = 0;
  for (const auto& [fence, quiet] :
       {std::pair<Fence, Quiet>(shmemx_device_fence_work_group, shmemx_device_quiet_work_group),
        std::pair<Fence, Quiet>(shmemx_device_fence_block, shmemx_device_quiet_block),
        std::pair<Fence, Quiet>(shmemx_device_fence_wg, shmemx_device_quiet_wg),
        std::pair<Fence, Quiet>(shmemx_device_fence_sub_group, shmemx_device_quiet_sub_group),
        std::pair<Fence, Quiet>(shmemx_device_fence_warp, shmemx_device_quiet_warp),
        std::pair<Fence, Quiet>(shmemx_device_fence_wave, shmemx_device_quiet_wave)}) {
    ++round;
    ferry::device::Launch({1, kThreads, kThreads}, [&, order = fence, complete = quiet] {
      const shmemx_device_t d = table.Open();
      const uint64_t thread = ferry_device_group_thread();
      shmemx_device_uint64_p(d, words + thread, round, after);
      order(d);
      // By another thread than the one that has put there.
      shmemx_device_uint64_p(d, flags + (thread + 1) % kThreads, round, after);
      CHECK(shmemx_device_uint64_wait_until(d, flags + (thread + 1) % kThreads, SHMEM_CMP_GE,
                                            round) == 0);
      for (uint64_t i = 0; i < kThreads; ++i) {
        CHECK(words[i] == round);
      }
      shmemx_device_uint64_p(d, words + kThreads + thread, round, after);
      CHECK(complete(d) == 0);
      CHECK(shmemx_device_uint64_g(d, words + kThreads + (thread + 1) % kThreads, after) == round);
    });
    shmem_barrier_all();
  }
}

// ---- Several groups at once ---------------------------------------------------------------------

// Two groups with tables of all PEs, on two devices, and one with a table of every second PE: each
// is in other collectives than the others, at its own pace.
void GroupsOnTeams(const Arena& arena) {
  shmem_team_t strided = SHMEM_TEAM_INVALID;
  for (int first = 0; first < std::min(2, pes); ++first) {
    shmem_team_t made;
    shmem_team_split_strided(SHMEM_TEAM_WORLD, first, 2, (pes + 1 - first) / 2, nullptr, 0, &made);
    strided = me % 2 == first ? made : strided;
  }
  CHECK(strided != SHMEM_TEAM_INVALID);
  {
    const Table all(0);
    const Table also(1);
    const Table mine(0, strided);
    const Table* const tables[] = {&all, &also, &mine};
    auto* const longs = reinterpret_cast<long*>(arena.dest);
    shmem_barrier_all();
    ferry::device::Launch({3, 4}, [&] {
      const ferry_device_u32 group = ferry_device_group();
      const shmemx_device_t d = tables[group]->Open();
      const int size = shmemx_device_n_pes(d);
      CHECK(size == shmem_team_n_pes(group == 2 ? strided : SHMEM_TEAM_WORLD));
      CHECK(shmemx_device_my_pe(d) == shmem_team_my_pe(group == 2 ? strided : SHMEM_TEAM_WORLD));
      long* const source = longs + size_t{group} * 100;
      long* const dest = source + 50;
      for (long round = 1; round <= 20 + 10 * static_cast<long>(group); ++round) {
        if (ferry_device_group_thread() == 0) {
          *source = round * (shmemx_device_my_pe(d) + 1);
        }
        ferry_device_group_barrier();
        if (group == 0) {
          CHECK(shmemx_device_long_sum_reduce_work_group(d, dest, source, 1) == 0);
          CHECK(*dest == round * size * (size + 1) / 2);
        } else if (group == 1) {
          CHECK(shmemx_device_long_broadcast_work_group(d, dest, source, 1, round % size) == 0);
          CHECK(*dest == round * (round % size + 1));
        } else {
          CHECK(shmemx_device_long_fcollect_work_group(d, dest, source, 1) == 0);
          CHECK(dest[size - 1] == round * size);
        }
        CHECK(shmemx_device_sync_work_group(d) == 0);
      }
    });
  }
  shmem_team_destroy(strided);
}

void Mistakes(const Table& table, const Arena& arena) {
  const shmemx_device_t d = table.Open();
  long local = 0;
  auto* const dest = reinterpret_cast<long*>(arena.dest);
  CHECK(shmemx_device_long_broadcast(d, dest, dest, 1, pes) == SHMEMX_DEVICE_ERR_ARGUMENT);
  CHECK(shmemx_device_long_broadcast(d, dest, &local, 1, 0) == SHMEMX_DEVICE_ERR_BUFFER);
  CHECK(shmemx_device_long_fcollect(d, &local, dest, 1) == SHMEMX_DEVICE_ERR_BUFFER);
  CHECK(shmemx_device_long_alltoall(d, &local, dest, 1) == SHMEMX_DEVICE_ERR_BUFFER);
  CHECK(shmemx_device_long_collect(d, &local, dest, 1) == SHMEMX_DEVICE_ERR_BUFFER);
  CHECK(shmemx_device_long_collect(d, dest, me == 0 ? &local : dest, 1) ==
        SHMEMX_DEVICE_ERR_BUFFER);  // at all PEs
  CHECK(shmemx_device_long_alltoalls(d, dest, &local, 1, 1, 1) == SHMEMX_DEVICE_ERR_BUFFER);
  CHECK(shmemx_device_long_alltoalls(d, dest, dest, 0, 1, 2) == SHMEMX_DEVICE_ERR_ARGUMENT);
  CHECK(shmemx_device_long_alltoalls(d, dest, dest, 1, 1, SIZE_MAX / 4) ==
        SHMEMX_DEVICE_ERR_BUFFER);
  CHECK(shmemx_device_long_sum_reduce(d, dest, &local, 1) == SHMEMX_DEVICE_ERR_BUFFER);
  CHECK(shmemx_device_long_sum_reduce(d, dest, dest, SIZE_MAX / 8 + 2) == SHMEMX_DEVICE_ERR_BUFFER);
  CHECK(shmemx_device_long_sum_exscan(d, &local, dest, 1) == SHMEMX_DEVICE_ERR_BUFFER);
  CHECK(shmemx_device_sync(d) == 0);  // all are in step still
}

}  // namespace

int main() {
  begin();
  const Arena arena;
  {
    const Table table;
    if (shmem_team_n_pes(SHMEM_TEAM_SHARED) == pes) {
      EveryName(table, arena);
    }
    Sizes(table, arena);
    SmallOnesMeetOnce(table, arena);
    LongVectors(table);
    BytesAndBarriers(table, arena);
    GroupsComplete(table);
    Mistakes(table, arena);
  }
  GroupsOnTeams(arena);
  return end_well();
}
