// Kernels in spaces: each stores into, loads from and meets in the parts of all PEs of the node,
// which are on devices that they share, or on several.
#include <string_view>

#include "tests/shmem/ranks/device.h"
#include "tests/shmem/ranks/space.h"

namespace {

constexpr size_t kCount = 1000;

long ValueOf(int pe, size_t i) { return pe * 100000 + static_cast<long>(i); }

std::vector<long> ValuesOf(int pe, size_t count = kCount) {
  std::vector<long> values(count);
  for (size_t i = 0; i < count; ++i) {
    values[i] = ValueOf(pe, i);
  }
  return values;
}

// Puts to the next PE, and gets from it, by a group of threads.
void Move(const Table& table, long* dest, long* source, long* back) {
  Write(source, ValuesOf(me));
  shmem_barrier_all();
  ferry::device::Launch({1, 6}, [&] {
    const shmemx_device_t d = table.Open();
    CHECK(shmemx_device_long_put_work_group(d, dest, source, kCount, after) == 0);
    CHECK(shmemx_device_long_get_work_group(d, back, source, kCount, after) == 0);
    CHECK(shmemx_device_ptr(d, dest, after) != nullptr);
  });
  shmem_barrier_all();
  CHECK(Read(dest, kCount) == ValuesOf(before) && Read(back, kCount) == ValuesOf(after));
  shmem_barrier_all();
}

// Single values, atomics and signals: kernels work on words where CPUs need not reach.
void Words(const Table& table, long* words) {
  Write(words, {0, 0, 0});
  shmem_barrier_all();
  const shmemx_device_t d = table.Open();
  shmemx_device_long_p(d, words, me + 1, after);
  shmemx_device_long_atomic_add(d, words + 1, me + 1, 0);
  CHECK(shmemx_device_sync(d) == 0);
  CHECK(shmemx_device_long_g(d, words, after) == me + 1);
  CHECK(shmemx_device_long_atomic_fetch(d, words + 1, 0) == pes * (pes + 1) / 2);
  CHECK(shmemx_device_sync(d) == 0);
  auto* const signal = reinterpret_cast<uint64_t*>(words + 2);
  const long value = me;
  CHECK(shmemx_device_long_put_signal(d, words, &value, 1, signal, 1, SHMEM_SIGNAL_ADD, after) ==
        0);
  CHECK(shmemx_device_signal_wait_until(d, signal, SHMEM_CMP_EQ, 1) == 0);
  CHECK(ReadOne(words) == before);
  CHECK(shmemx_device_quiet(d) == 0);
  shmem_barrier_all();
}

void Meet(const Table& table, long* dest, long* source) {
  Write(source, ValuesOf(me));
  shmem_barrier_all();
  ferry::device::Launch({1, 5}, [&] {
    const shmemx_device_t d = table.Open();
    CHECK(shmemx_device_long_fcollect_work_group(d, dest, source, kCount) == 0);
  });
  for (int pe = 0; pe < pes; ++pe) {
    CHECK(Read(dest + kCount * static_cast<size_t>(pe), kCount) == ValuesOf(pe));
  }
  shmem_barrier_all();
  ferry::device::Launch({1, 5}, [&] {
    const shmemx_device_t d = table.Open();
    CHECK(shmemx_device_long_sum_reduce_work_group(d, dest, source, kCount) == 0);
    CHECK(shmemx_device_long_broadcast_work_group(d, dest + kCount, source, kCount, pes - 1) == 0);
  });
  const std::vector<long> sum = Read(dest, kCount);
  for (size_t i = 0; i < kCount; ++i) {
    CHECK(sum[i] == ValueOf(pes * (pes - 1) / 2, 0) + static_cast<long>(i) * pes);
  }
  CHECK(Read(dest + kCount, kCount) == ValuesOf(pes - 1));
  shmem_barrier_all();
}

void Mistakes(const Table& table, const Space& space) {
  const shmemx_device_t d = table.Open();
  auto* const last = space.Make<long>(1);
  const long value = 1;
  const size_t left = space.Info().heap.reserved_bytes;
  CHECK(shmemx_device_long_put(d, last, &value, left / 8 + 1, after) == SHMEMX_DEVICE_ERR_BUFFER);
  CHECK(shmemx_device_long_put(d, last, &value, 1, pes) == SHMEMX_DEVICE_ERR_ARGUMENT);
  CHECK(shmemx_device_ptr(d, &value, me) == nullptr);
  shmem_free(last);
}

int Kernels() {
  begin();
  const int devices = shmemx_device_count();
  {
    const Table early(me % devices);  // from before there are spaces
    {
      const Space space(1 << 20);
      const Space other(1 << 20, (me + 1) % devices);  // on another device
      const Table late((me + 1) % devices);
      auto* const here = space.Make<long>(kCount * static_cast<size_t>(pes));
      auto* const here_too = space.Make<long>(kCount);
      auto* const there = other.Make<long>(kCount * static_cast<size_t>(pes));
      auto* const there_too = other.Make<long>(kCount);
      auto* const heap = Symmetric<long>(kCount * static_cast<size_t>(pes));
      for (const Table* const table : {&early, &late}) {
        Move(*table, here, here_too, there);
        Move(*table, here, there, there_too);
        Move(*table, heap, here, there);
        Move(*table, there, heap, here);
        Words(*table, here);
        Words(*table, there);
        Meet(*table, here, there_too);
        Meet(*table, heap, here_too);
        Meet(*table, there, heap);
        Mistakes(*table, space);
      }
    }
    // Spaces that have ended are in no table any more; the next one is.
    const Space next(1 << 16);
    auto* const words = next.Make<long>(4);
    Words(early, words);
    long local = 0;
    CHECK(shmemx_device_long_put(early.Open(), &local, words, 1, after) ==
          SHMEMX_DEVICE_ERR_BUFFER);
  }
  return end_well();
}

// To the next PE and from it, by ferryd where it is on another node.
void MoveOverNodes(long* dest, long* source, long* back) {
  const Table all;
  Write(source, ValuesOf(me));
  shmem_barrier_all();
  ferry::device::Launch({1, 6}, [&] {
    const shmemx_device_t d = all.Open();
    CHECK(shmemx_device_long_put_work_group(d, dest, source, kCount, after) == 0);
    CHECK(shmemx_device_long_get_work_group(d, back, source, kCount, after) == 0);
  });
  CHECK(shmemx_device_quiet(all.Open()) == 0);
  shmem_barrier_all();
  CHECK(Read(dest, kCount) == ValuesOf(before) && Read(back, kCount) == ValuesOf(after));
  shmem_barrier_all();
}

// Tables of the PEs of a node know the spaces' parts there.
int OnNodes() {
  begin();
  {
    const Space space(1 << 16);
    auto* const there = space.Make<long>(kCount);
    auto* const there_too = space.Make<long>(kCount);
    auto* const heap = Symmetric<long>(kCount);
    MoveOverNodes(there, there_too, heap);
    MoveOverNodes(there, heap, there_too);
    MoveOverNodes(heap, there, there_too);
  }
  {
    const Table near(0, SHMEM_TEAM_SHARED);
    const Space space(1 << 16);
    auto* const words = space.Make<long>(2);
    const shmemx_device_t d = near.Open();
    const int own = shmemx_device_my_pe(d);
    const int count = shmemx_device_n_pes(d);
    shmemx_device_long_p(d, words, me + 1, (own + 1) % count);
    CHECK(shmemx_device_sync(d) == 0);
    const int left =
        shmem_team_translate_pe(SHMEM_TEAM_SHARED, (own + count - 1) % count, SHMEM_TEAM_WORLD);
    CHECK(ReadOne(words) == left + 1);
    shmem_barrier_all();
    CHECK(shmem_long_g(words, after) > 0);  // the host reaches all of them
    shmem_barrier_all();
  }
  return end_well();
}

// Behind a guarded link functions reach no device memory, which calls say.
int Guarded() {
  begin();
  {
    const Table table;
    const Space space(1 << 16);
    auto* const words = space.Make<long>(2);
    CHECK(shmemx_device_ptr(table.Open(), words, me) == nullptr);
    CHECK(shmemx_device_ptr(table.Open(), words, after) == nullptr);
    auto* const heap = Symmetric<long>(1);
    CHECK(shmemx_device_ptr(table.Open(), heap, after) != nullptr);
  }
  return end_well();
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc > 1 ? argv[1] : "";
  return what == "kernels" ? Kernels() : what == "nodes" ? OnNodes() : Guarded();
}
