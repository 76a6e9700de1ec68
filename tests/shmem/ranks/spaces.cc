// Spaces, symmetric heaps in memory of devices, by the calls of the host: the first argument says
// what is tested.
#include <signal.h>
#include <unistd.h>

#include <cstdint>
#include <string_view>

#include "include/ferry/ferry.h"
#include "tests/shmem/ranks/space.h"

namespace {

using Bytes = std::vector<unsigned char>;

Bytes Filled(size_t size, unsigned seed) {
  Bytes bytes(size);
  fill(bytes.data(), size, seed);
  return bytes;
}

// ---- Allocation ---------------------------------------------------------------------------------

// All PEs get an alignment that the memory of all has, wherever it is mapped; a larger one gives
// null on all of them.
void CheckAlignments(const Space& space) {
  for (size_t alignment = sizeof(void*), refused = 0; alignment <= size_t{1} << 40;
       alignment *= 2) {
    auto* const aligned =
        static_cast<unsigned char*>(shmemx_space_align(space.handle(), alignment, 1));
    CHECK(aligned != nullptr || alignment > 4096);
    CHECK(aligned == nullptr || refused == 0);
    refused += aligned == nullptr ? 1 : 0;
    for (int pe = 0; pe < pes; ++pe) {
      CHECK(reinterpret_cast<uintptr_t>(shmem_ptr(aligned, pe)) % alignment == 0);
    }
    shmem_free(aligned);
  }
}

void CheckBlocks(const Space& space, size_t size) {
  const shmemx_space_info_t empty = space.Info();
  CHECK(empty.device == me % shmemx_device_count());
  CHECK(empty.heap.reserved_bytes == size && empty.heap.size_bytes == size);
  CHECK(empty.heap.used_bytes == 0 && empty.heap.largest_free_bytes == size);

  auto* const first = space.Make<unsigned char>(1000);
  auto* const second = space.Make<unsigned char>(3000);
  CHECK(Read(second, 3000) == Bytes(3000));
  Write(first, Filled(1000, 5));
  Write(second, Filled(3000, 6));
  CHECK(space.Info().heap.used_bytes >= 4000);

  // Grown, with what was there; shrunk where it is.
  auto* const grown = static_cast<unsigned char*>(shmem_realloc(first, 20000));
  CHECK(grown != nullptr && grown != first && Read(grown, 1000) == Filled(1000, 5));
  CHECK(shmem_realloc(grown, 500) == grown && Read(second, 3000) == Filled(3000, 6));
  CHECK(shmem_realloc(grown, 0) == nullptr);
  // Memory that was used before is zeroed again, at an address that was asked for.
  shmem_free(second);
  auto* const clean = space.Make<unsigned char>(20000);
  CHECK(Read(clean, 20000) == Bytes(20000));
  CheckAlignments(space);

  // A block that does not fit is null on all PEs, and takes no memory.
  CHECK(shmemx_space_malloc(space.handle(), size + 1) == nullptr);
  CHECK(shmem_realloc(clean, size) == nullptr && Read(clean, 20000) == Bytes(20000));
  shmem_free(clean);
  void* const all = shmemx_space_malloc(space.handle(), size);
  CHECK(all != nullptr && shmemx_space_malloc(space.handle(), 1) == nullptr);
  shmem_free(all);
  CHECK(space.Info().heap.used_bytes == 0 && space.Info().heap.largest_free_bytes == size);
}

// Spaces and the heap do not know each other's memory.
void CheckApart(const Space& one, const Space& other) {
  auto* const here = one.Make<long>(10);
  auto* const there = other.Make<long>(10);
  auto* const heap = static_cast<long*>(shmem_calloc(10, sizeof(long)));
  Write(here, {me + 1});
  Write(there, {me + 2});
  *heap = me + 3;
  shmem_barrier_all();
  CHECK(shmem_long_g(here, after) == after + 1 && shmem_long_g(there, after) == after + 2);
  CHECK(shmem_long_g(heap, after) == after + 3);
  CHECK(shmem_addr_accessible(here, after) && shmem_addr_accessible(there, before));
  shmemx_heap_info_t info;
  shmemx_heap_info(&info);
  CHECK(info.used_bytes < 1000);
  shmem_free(heap);
  shmem_free(there);
  shmem_free(here);
}

void AllocateInOneLife() {
  constexpr size_t kSize = 128 * 781;  // no multiple of a page
  const Space one(kSize);
  const Space other(kSize / 2, (me + 1) % shmemx_device_count());
  CheckBlocks(one, kSize);
  CheckApart(one, other);
  for (int i = 0; i < 5; ++i) {
    const Space third(4096);
    CHECK(shmemx_space_create(0, 4096) == SHMEMX_SPACE_INVALID);  // there are three
    (void)third.Make<char>(100);                                  // ends with it
  }
  CheckBlocks(one, kSize);
}

// In two lives of OpenSHMEM, with spaces that are left to shmem_finalize.
int Allocate() {
  for (int life = 0; life < 2; ++life) {
    begin();
    AllocateInOneLife();
    CHECK(shmemx_space_create(0, 4096) != SHMEMX_SPACE_INVALID);
    CHECK(shmemx_space_create(0, 4096) != SHMEMX_SPACE_INVALID);
    if (life == 0) {
      shmem_finalize();
    }
  }
  return end_well();
}

// ---- Puts and gets ------------------------------------------------------------------------------

// Between two kinds of memory: of a space, of the heap, or private.
void MoveSizes(unsigned char* dest, unsigned char* source, bool is_source_symmetric) {
  for (const size_t size :
       {size_t{0}, size_t{1}, size_t{8}, size_t{77}, size_t{9000}, size_t{300001}}) {
    for (int step = 0; step < pes; ++step) {
      const int to_pe = (me + step) % pes;
      const int from_pe = (me + pes - step) % pes;
      const auto seed = static_cast<unsigned>(me + step);
      Write(dest, Bytes(size + 1, 0xee));
      if (is_source_symmetric) {
        Write(source, Filled(size, seed));
      } else {
        fill(source, size, seed);
      }
      shmem_barrier_all();
      if (step % 2 == 0) {
        shmem_putmem(dest, source, size, to_pe);
      } else {
        shmem_putmem_nbi(dest, source, size, to_pe);
      }
      shmem_barrier_all();
      const Bytes found = Read(dest, size + 1);
      CHECK(is_filled(found.data(), size, static_cast<unsigned>(from_pe + step)));
      CHECK(found[size] == 0xee);
      shmem_barrier_all();
    }
  }
}

// `dest` is any memory of this PE; `read` copies from there.
template <typename Fetch>
void GetSizes(unsigned char* dest, unsigned char* source, Fetch&& fetch) {
  for (const size_t size : {size_t{1}, size_t{8}, size_t{20000}, size_t{300001}}) {
    Write(source, Filled(size, static_cast<unsigned>(me)));
    shmem_barrier_all();
    shmem_getmem(dest, source, size, after);
    CHECK(is_filled(fetch(dest, size).data(), size, static_cast<unsigned>(after)));
    shmem_getmem_nbi(dest, source, size, before);
    shmem_quiet();
    CHECK(is_filled(fetch(dest, size).data(), size, static_cast<unsigned>(before)));
    shmem_barrier_all();
  }
}

void Strides(int* to, int* from, bool has_long_blocks) {
  const int blocks = has_long_blocks ? 3 : 10;
  const int block = has_long_blocks ? 70000 : 2;  // more than passes through host memory at once
  const int count = blocks * block * 3;
  std::vector<int> values(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) {
    values[static_cast<size_t>(i)] = me * 1000000 + i;
  }
  Write(from, values);
  Write(to, std::vector<int>(static_cast<size_t>(count), -1));
  shmem_barrier_all();
  shmem_int_ibput(to, from, 3 * block, 2 * block, static_cast<size_t>(block),
                  static_cast<size_t>(blocks), after);
  shmem_barrier_all();
  std::vector<int> found = Read(to, static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) {
    const int expected = i % (3 * block) < block
                             ? before * 1000000 + i / (3 * block) * 2 * block + i % (3 * block)
                             : -1;
    CHECK(found[static_cast<size_t>(i)] == expected);
  }
  shmem_barrier_all();
  shmem_int_ibget(to, from, block, 3 * block, static_cast<size_t>(block),
                  static_cast<size_t>(blocks), after);
  found = Read(to, static_cast<size_t>(blocks * block));
  for (int i = 0; i < blocks * block; ++i) {
    CHECK(found[static_cast<size_t>(i)] == after * 1000000 + i / block * 3 * block + i % block);
  }
  shmem_barrier_all();
}

// Data in a space, the signal in the heap; from the space and from private memory.
void Signals(long* dest, long* source, uint64_t* signal) {
  shmem_barrier_all();
  Write(source, {me + 10, me + 20});
  shmem_long_put_signal(dest, source, 2, signal, 1, SHMEM_SIGNAL_ADD, after);
  CHECK(shmem_signal_wait_until(signal, SHMEM_CMP_GE, 1) == 1);
  CHECK(Read(dest, 2) == std::vector<long>({before + 10, before + 20}));
  shmem_barrier_all();
  const long own[] = {me + 30, me + 40};
  shmem_long_put_signal_nbi(dest, own, 2, signal, 7, SHMEM_SIGNAL_SET, after);
  shmem_quiet();
  CHECK(shmem_signal_wait_until(signal, SHMEM_CMP_EQ, 7) == 7);
  CHECK(Read(dest, 2) == std::vector<long>({before + 30, before + 40}));
  shmem_barrier_all();
}

int Moves() {
  begin();
  constexpr size_t kLarge = 4 << 20;
  {
    const Space space(2 * kLarge);
    const Space other(kLarge, (me + 1) % shmemx_device_count());
    auto* const device = space.Make<unsigned char>(kLarge);
    auto* const device_too = space.Make<unsigned char>(kLarge);
    auto* const other_device = other.Make<unsigned char>(kLarge);
    auto* const heap = static_cast<unsigned char*>(shmem_malloc(kLarge));
    Bytes own(kLarge);
    MoveSizes(device, device_too, true);
    MoveSizes(device, other_device, true);
    MoveSizes(device, heap, true);
    MoveSizes(device, own.data(), false);
    MoveSizes(heap, device, true);
    GetSizes(own.data(), device,
             [](unsigned char* at, size_t size) { return Bytes(at, at + size); });
    GetSizes(heap, device, Read<unsigned char>);
    GetSizes(device_too, device, Read<unsigned char>);
    GetSizes(device, heap, Read<unsigned char>);
    auto* const ints = reinterpret_cast<int*>(device);
    for (const bool is_long : {false, true}) {
      Strides(ints, reinterpret_cast<int*>(device_too), is_long);
      Strides(ints, reinterpret_cast<int*>(heap), is_long);
      Strides(reinterpret_cast<int*>(heap), ints, is_long);
    }
    auto* const signal = static_cast<uint64_t*>(shmem_calloc(1, sizeof(uint64_t)));
    Signals(reinterpret_cast<long*>(device), reinterpret_cast<long*>(device_too), signal);
    shmem_double_p(reinterpret_cast<double*>(device), 0.5 + me, after);
    shmem_barrier_all();
    CHECK(shmem_double_g(reinterpret_cast<double*>(device), after) == 0.5 + me);
    CHECK((shmem_ptr(device, after) != nullptr) ==
          (is_local(after) && space.Info().cpu_reach == 1));
    // Device memory of libferry's is a source like any other.
    void* plain = nullptr;
    CHECK(ferry_alloc(1000, FERRY_MEMORY_DEVICE, 0, &plain) == FERRY_SUCCESS);
    shmem_getmem(plain, device, 8, after);
    shmem_putmem(heap, plain, 8, me);
    CHECK(*reinterpret_cast<double*>(heap) == 0.5 + me);
    CHECK(ferry_free(plain) == FERRY_SUCCESS);
    shmem_barrier_all();
  }
  return end_well();
}

// ---- Words of memory that CPUs reach ------------------------------------------------------------

int Words() {
  begin();
  {
    const Space space(1 << 16);
    CHECK(space.Info().cpu_reach == 1);
    auto* const words = space.Make<long>(8);
    CHECK(!is_local(after) || shmem_ptr(words, after) != nullptr);
    for (int i = 0; i < 100; ++i) {
      shmem_long_atomic_inc(words, i % pes);
    }
    shmem_long_p(words + 1, 5, after);
    shmem_long_wait_until(words + 1, SHMEM_CMP_EQ, 5);
    shmem_barrier_all();
    long all = 0;
    for (int pe = 0; pe < pes; ++pe) {
      all += shmem_long_atomic_fetch(words, pe);
    }
    CHECK(all == 100 * pes);
    for (int i = 0; i < 20; ++i) {
      shmem_set_lock(words + 2);
      shmem_long_p(words + 3, shmem_long_g(words + 3, 0) + 1, 0);
      shmem_clear_lock(words + 2);
    }
    shmem_barrier_all();
    CHECK(shmem_long_g(words + 3, 0) == 20 * pes);
    shmem_barrier_all();
  }
  return end_well();
}

// ---- Collectives --------------------------------------------------------------------------------

std::vector<int> Values(size_t count, int seed) {
  std::vector<int> values(count);
  for (size_t i = 0; i < count; ++i) {
    values[i] = static_cast<int>(i) * 3 + seed;
  }
  return values;
}

void CheckData(int* to, int* from, size_t count) {
  const auto pe_count = static_cast<size_t>(pes);
  for (int root = 0; root < pes; ++root) {
    Write(from, Values(count, me));
    Write(to, std::vector<int>(count, -1));
    CHECK(shmem_int_broadcast(SHMEM_TEAM_WORLD, to, from, count, root) == 0);
    CHECK(Read(to, count) == Values(count, root));
    shmem_barrier_all();
  }
  CHECK(shmem_int_fcollect(SHMEM_TEAM_WORLD, to, from, count) == 0);
  for (size_t pe = 0; pe < pe_count; ++pe) {
    CHECK(Read(to + pe * count, count) == Values(count, static_cast<int>(pe)));
  }
  shmem_barrier_all();
  // The first of several PEs has none.
  const auto own_of = [&](size_t pe) { return count * pe / pe_count; };
  CHECK(shmem_int_collect(SHMEM_TEAM_WORLD, to, from, own_of(static_cast<size_t>(me))) == 0);
  int* at = to;
  for (size_t pe = 0; pe < pe_count; ++pe) {
    CHECK(Read(at, own_of(pe)) == Values(own_of(pe), static_cast<int>(pe)));
    at += own_of(pe);
  }
  shmem_barrier_all();
  Write(from, Values(count * pe_count, 1000000 * me));
  CHECK(shmem_int_alltoall(SHMEM_TEAM_WORLD, to, from, count) == 0);
  for (size_t pe = 0; pe < pe_count; ++pe) {
    const int first = static_cast<int>(static_cast<size_t>(me) * count) * 3;
    CHECK(Read(to + pe * count, count) == Values(count, first + 1000000 * static_cast<int>(pe)));
  }
  shmem_barrier_all();
  const size_t few = count / 6;
  CHECK(shmem_int_alltoalls(SHMEM_TEAM_WORLD, to, from, 2, 3, few) == 0);
  for (size_t pe = 0; pe < pe_count; ++pe) {
    for (size_t i = 0; i < few; i += few / 3 + 1) {
      CHECK(ReadOne(to + 2 * (pe * few + i)) ==
            static_cast<int>(3 * (static_cast<size_t>(me) * few + i)) * 3 +
                1000000 * static_cast<int>(pe));
    }
  }
  shmem_barrier_all();
}

void CheckReductions(int* to, int* from, size_t count) {
  const auto sum = [&](int pe_count, int seeds) {
    std::vector<int> values(count);
    for (size_t i = 0; i < count; ++i) {
      values[i] = static_cast<int>(i) * 3 * pe_count + seeds;
    }
    return values;
  };
  Write(from, Values(count, me));
  CHECK(shmem_int_max_reduce(SHMEM_TEAM_WORLD, to, from, count) == 0);
  CHECK(Read(to, count) == Values(count, pes - 1));
  CHECK(shmem_int_sum_inscan(SHMEM_TEAM_WORLD, to, from, count) == 0);
  CHECK(Read(to, count) == sum(me + 1, me * (me + 1) / 2));
  CHECK(shmem_int_sum_exscan(SHMEM_TEAM_WORLD, to, from, count) == 0);
  CHECK(Read(to, count) == sum(me, me * (me - 1) / 2));
  CHECK(shmem_int_sum_reduce(SHMEM_TEAM_WORLD, from, from, count) == 0);
  CHECK(Read(from, count) == sum(pes, pes * (pes - 1) / 2));
  shmem_barrier_all();
}

int Collectives() {
  begin();
  {
    const Space space(16 << 20);
    constexpr size_t kMost = 120000;
    const size_t all = kMost * static_cast<size_t>(pes);
    auto* const device = space.Make<int>(all);
    auto* const device_too = space.Make<int>(all);
    auto* const heap = static_cast<int*>(shmem_calloc(all, sizeof(int)));
    for (const size_t count : {size_t{1}, size_t{12}, size_t{3000}, kMost}) {
      CheckData(device, device_too, count);
      CheckData(device, heap, count);
      CheckData(heap, device, count);
      CheckReductions(device, device_too, count);
      CheckReductions(device, heap, count);
      CheckReductions(heap, device, count);
    }
  }
  return end_well();
}

// ---- Refused calls ------------------------------------------------------------------------------

int None(int device) {
  begin();
  CHECK(shmemx_space_create(me == pes - 1 ? device : 0, 4096) == SHMEMX_SPACE_INVALID);
  {
    const Space next(4096);  // nothing was left behind
    (void)next.Make<char>(4096);
  }
  return end_well();
}

int Misuse(std::string_view what) {
  long local = 0;
  if (what == "before") {
    (void)shmemx_space_create(0, 4096);
  }
  begin();
  if (what == "sizes") {
    (void)shmemx_space_create(0, me == 0 ? 4096 : 8192);
  }
  shmemx_space_t space = shmemx_space_create(0, 1 << 16);
  shmemx_space_t other = shmemx_space_create(0, 1 << 16);
  auto* const words = static_cast<long*>(shmemx_space_calloc(space, 8, sizeof(long)));
  auto* const heap = static_cast<long*>(shmem_calloc(8, sizeof(long)));
  if (what == "invalid") (void)shmemx_space_malloc(SHMEMX_SPACE_INVALID, 8);
  if (what == "foreign") (void)shmemx_space_malloc(reinterpret_cast<shmemx_space_t>(&local), 8);
  if (what == "others") shmemx_space_destroy(me == 0 ? space : other);
  if (what == "differ") (void)shmemx_space_malloc(me == 0 ? space : other, 8);
  if (what == "heaps") (void)(me == 0 ? shmem_malloc(8) : shmemx_space_malloc(space, 8));
  if (what == "freed") {
    shmem_free(words);
    shmem_long_put(words, heap, 1, after);
  }
  if (what == "inside") shmem_free(words + 1);
  if (what == "twice") {
    shmem_free(words);
    shmem_free(words);
  }
  if (what == "alignment") (void)shmemx_space_align(space, 24, 8);
  if (what == "past") shmem_putmem(words, heap, 1 << 17, after);
  if (what == "destroyed" || what == "gone") {
    shmemx_space_destroy(space);
    if (what == "gone") {
      shmem_long_p(words, 1, after);
    }
    (void)shmemx_space_malloc(space, 8);
  }
  if (what == "amo") shmem_long_atomic_inc(words, after);
  if (what == "fetch") (void)shmem_long_atomic_fetch(words, after);
  if (what == "fetch_nbi") shmem_long_atomic_fetch_nbi(words, heap, after);
  if (what == "signal") {
    shmem_long_put_signal(heap, &local, 1, reinterpret_cast<uint64_t*>(words), 1, SHMEM_SIGNAL_SET,
                          after);
  }
  if (what == "signal_add") shmem_signal_add(reinterpret_cast<uint64_t*>(words), 1, after);
  if (what == "signal_fetch") (void)shmem_signal_fetch(reinterpret_cast<uint64_t*>(words));
  if (what == "wait") shmem_long_wait_until(words, SHMEM_CMP_EQ, 0);
  if (what == "test") (void)shmem_long_test(words, SHMEM_CMP_EQ, 0);
  if (what == "lock") shmem_set_lock(words);
  if (what == "broadcast") {
    (void)shmem_long_broadcast(SHMEM_TEAM_WORLD, words, heap, me == 0 ? 1 : 2, 0);
  }
  if (what == "root") (void)shmem_long_broadcast(SHMEM_TEAM_WORLD, words, heap, 1, me);
  return end_well();
}

// PE 0 dies; the others' calls with its part end with a sentence, or find what it left.
int Dies(std::string_view where) {
  begin();
  shmemx_space_t space = shmemx_space_create(0, 1 << 16);
  auto* const words = static_cast<long*>(shmemx_space_calloc(space, 8, sizeof(long)));
  auto* const arrived = static_cast<long*>(shmem_calloc(1, sizeof(long)));
  if (me == 0) {
    shmem_long_wait_until(arrived, SHMEM_CMP_EQ, pes - 1);
    kill(getpid(), SIGKILL);
  }
  shmem_long_atomic_inc(arrived, 0);
  if (where == "malloc") (void)shmemx_space_malloc(space, 8);
  if (where == "create") (void)shmemx_space_create(0, 4096);
  if (where == "destroy") shmemx_space_destroy(space);
  if (where == "broadcast") (void)shmem_long_broadcast(SHMEM_TEAM_WORLD, words, words + 1, 1, 0);
  while (where == "put" && !is_local(0)) {
    shmem_long_put(words, words + 1, 1, 0);
    shmem_quiet();
  }
  return end_well();
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc > 1 ? argv[1] : "";
  const std::string_view how = argc > 2 ? argv[2] : "";
  if (what == "allocate") {
    return Allocate();
  }
  if (what == "moves") {
    return Moves();
  }
  if (what == "words") {
    return Words();
  }
  if (what == "collectives") {
    return Collectives();
  }
  if (what == "none") {
    return None(argc > 2 ? atoi(argv[2]) : 0);
  }
  if (what == "misuse") {
    return Misuse(how);
  }
  return Dies(how);
}
