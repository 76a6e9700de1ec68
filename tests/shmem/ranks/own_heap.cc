// A symmetric heap in memory that the program has allocated itself. Arguments: the kind of memory,
// and what is tested.
#include "tests/shmem/ranks/own_heap.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "include/ferry/ferry.h"
#include "include/ferry/stream.h"
#include "tests/shmem/ranks/device.h"
#include "tests/shmem/ranks/space.h"

namespace {

using namespace ferry::own_heap;
using Bytes = std::vector<unsigned char>;

constexpr size_t kPart = 400000;  // of the heap, for one purpose
constexpr size_t kBytes = 3 * kPart + 4000;

Bytes Filled(size_t size, unsigned seed) {
  Bytes bytes(size);
  fill(bytes.data(), size, seed);
  return bytes;
}

// A life of OpenSHMEM with such a heap, which begins somewhere in its allocation.
class OwnHeap {
 public:
  OwnHeap(const char* kind, size_t first) : kind_(kind), first_(first) {
    int provided = -1;
    CHECK(shmemx_heap_preinit_thread(SHMEM_THREAD_SERIALIZED, &provided) == 0);
    CHECK(provided >= SHMEM_THREAD_SERIALIZED);
    note_place();
    static const bool once = (BeginMemory(), true);
    (void)once;
    all_ = Take(kind, first + kBytes);
    base_ = static_cast<unsigned char*>(all_) + first;
    shmemx_heap_create(base_, kBytes, TypeOf(kind), 0);
    shmemx_heap_postinit();
  }
  ~OwnHeap() {
    shmem_finalize();
    Give(kind_, all_, first_ + kBytes);
  }
  OwnHeap(const OwnHeap&) = delete;
  OwnHeap& operator=(const OwnHeap&) = delete;

  unsigned char* part(size_t number) const { return base_ + number * kPart + 72; }
  unsigned char* end() const { return base_ + kBytes; }

 private:
  const char* const kind_;
  const size_t first_;
  void* all_;
  unsigned char* base_;
};

// Between two places of all PEs, the second of which may be private.
void Move(unsigned char* dest, unsigned char* source, bool is_source_private) {
  for (const size_t size :
       {size_t{0}, size_t{1}, size_t{8}, size_t{77}, size_t{9000}, size_t{300001}}) {
    const Bytes own = Filled(size, static_cast<unsigned>(me));
    if (is_source_private) {
      std::copy(own.begin(), own.end(), source);
    } else {
      Write(source, own);
    }
    Write(dest, Bytes(size + 1, 0xee));
    shmem_barrier_all();
    shmem_putmem(dest, source, size, after);
    shmem_barrier_all();
    Bytes expected = Filled(size, static_cast<unsigned>(before));
    expected.push_back(0xee);
    CHECK(Read(dest, size + 1) == expected);
    Bytes back(size + 1, 0xdd);
    shmem_getmem_nbi(back.data(), dest, size, after);
    shmem_quiet();
    back.pop_back();
    CHECK(back == own);
    shmem_barrier_all();
  }
}

// Elements of the heaps with others between them, from and to private memory and the heap.
void Strides(const OwnHeap& heap) {
  struct Shape {
    ptrdiff_t there;
    ptrdiff_t here;
    size_t count;
  };
  auto* const dest = reinterpret_cast<long*>(heap.part(0));
  auto* const source = reinterpret_cast<long*>(heap.part(1));
  for (const auto& [there, here, count] :
       {Shape{1, 3, 200}, Shape{7, 1, 200}, Shape{2, 2, 500}, Shape{4000, 3999, 10}}) {
    const size_t span = count * static_cast<size_t>(std::max(there, here));
    const auto values = [&](int pe) {
      std::vector<long> made(span);
      for (size_t i = 0; i < span; ++i) {
        made[i] = pe * 100'000L + static_cast<long>(i);
      }
      return made;
    };
    const std::vector<long> blank(span, -1);
    for (const bool is_private : {false, true}) {
      std::vector<long> own = values(me);
      if (!is_private) {
        Write(source, own);
      }
      long* const local = is_private ? own.data() : source;
      Write(dest, blank);
      shmem_barrier_all();
      shmem_long_iput(dest, local, there, here, count, after);
      shmem_barrier_all();
      const std::vector<long> theirs = values(before);
      std::vector<long> expected = blank;
      for (size_t i = 0; i < count; ++i) {
        expected[i * static_cast<size_t>(there)] = theirs[i * static_cast<size_t>(here)];
      }
      CHECK(Read(dest, span) == expected);
      const std::vector<long> sent = values(me);
      is_private ? void(own = blank) : Write(source, blank);
      shmem_long_iget(local, dest, here, there, count, after);
      expected = blank;
      for (size_t i = 0; i < count; ++i) {
        expected[i * static_cast<size_t>(here)] = sent[i * static_cast<size_t>(here)];
      }
      CHECK((is_private ? own : Read(source, span)) == expected);
      shmem_barrier_all();
    }
  }
}

void Collectives(const OwnHeap& heap) {
  constexpr size_t kCount = 300;
  const auto all = static_cast<size_t>(pes);
  auto* const source = reinterpret_cast<long*>(heap.part(0));
  auto* const dest = reinterpret_cast<long*>(heap.part(1));
  Write(source, std::vector<long>(kCount, me + 1));
  shmem_barrier_all();
  CHECK(shmem_long_fcollect(SHMEM_TEAM_WORLD, dest, source, kCount) == 0);
  for (size_t i = 0; i < all; ++i) {
    CHECK(Read(dest + i * kCount, kCount) == std::vector<long>(kCount, static_cast<long>(i + 1)));
  }
  CHECK(shmem_long_sum_reduce(SHMEM_TEAM_WORLD, dest, source, kCount) == 0);
  CHECK(Read(dest, kCount) == std::vector<long>(kCount, pes * (pes + 1) / 2));
  CHECK(shmem_long_broadcast(SHMEM_TEAM_WORLD, dest, source, kCount, pes - 1) == 0);
  CHECK(Read(dest, kCount) == std::vector<long>(kCount, pes));
  shmem_barrier_all();
}

// A queue's put, whose data lie in the heap, with a signal in the other one.
void Queue(const OwnHeap& heap, uint64_t* signal) {
  ferry_stream stream = nullptr;
  ferry_queue queue = 0;
  CHECK(ferry_stream_create(0, &stream) == FERRY_SUCCESS);
  CHECK(ferry_queue_init(FERRY_QUEUE_FERRY, &stream, &queue) == FERRY_SUCCESS);
  auto* const values = reinterpret_cast<long*>(heap.part(0));
  Write(values, {me + 1L, 0});
  shmem_barrier_all();
  CHECK(shmemx_long_put_signal_on_queue(values + 1, values, 1, signal, 1, SHMEM_SIGNAL_ADD, after,
                                        queue) == FERRY_SUCCESS);
  CHECK(shmemx_signal_wait_until_on_queue(signal, SHMEM_CMP_GE, 1, queue) == FERRY_SUCCESS);
  CHECK(ferry_queue_wait(queue) == FERRY_SUCCESS);
  CHECK(ReadOne(values + 1) == before + 1);
  CHECK(ferry_queue_free(&queue) == FERRY_SUCCESS);
  CHECK(ferry_stream_destroy(&stream) == FERRY_SUCCESS);
  shmem_barrier_all();
}

void Words(const OwnHeap& heap) {
  auto* const words = reinterpret_cast<long*>(heap.part(2));
  Write(words, {0, 0, 0});
  shmem_barrier_all();
  for (int i = 0; i < 100; ++i) {
    shmem_long_atomic_add(words, 1, 0);
    (void)shmem_long_atomic_fetch_inc(words + 1, after);
  }
  shmem_barrier_all();
  CHECK(shmem_long_atomic_fetch(words, 0) == 100L * pes && words[1] == 100);
  shmem_long_p(words + 2, me + 1, after);
  shmem_long_wait_until(words + 2, SHMEM_CMP_EQ, before + 1);
  auto* const there = static_cast<long*>(shmem_ptr(words + 2, after));
  CHECK((there != nullptr) == (is_local(after) != 0));
  CHECK(there == nullptr || *there == me + 1);
  shmem_barrier_all();
}

// The device is emulated.
void Kernels(const OwnHeap& heap) {
  constexpr size_t kCount = 1000;
  const Table table;
  auto* const dest = reinterpret_cast<long*>(heap.part(0));
  auto* const source = reinterpret_cast<long*>(heap.part(1));
  Write(source, std::vector<long>(kCount, me + 7));
  shmem_barrier_all();
  ferry::device::Launch({1, 6}, [&] {
    const shmemx_device_t d = table.Open();
    CHECK(shmemx_device_long_put_work_group(d, dest, source, kCount, after) == 0);
    CHECK(shmemx_device_sync_work_group(d) == 0);
  });
  CHECK(Read(dest, kCount) == std::vector<long>(kCount, before + 7));
  shmem_barrier_all();
}

int Live(const char* kind, bool has_kernels) {
  // Some PEs have theirs deeper in an allocation than others.
  for (const size_t first : {size_t{0}, static_cast<size_t>(has_kernels ? 4096 : me * 4096)}) {
    const OwnHeap heap(kind, first);
    auto* const usual = static_cast<unsigned char*>(shmem_calloc(kPart, 1));
    Bytes own(kPart);
    CHECK(shmem_addr_accessible(heap.end() - 1, after) == 1);
    CHECK(shmem_addr_accessible(heap.end(), after) == 0);
    Move(heap.part(0), heap.part(1), false);
    Move(heap.part(1), usual, false);
    Move(usual, heap.part(2), false);
    Move(heap.part(2), own.data(), true);
    Strides(heap);
    Collectives(heap);
    if (!has_kernels) {
      Queue(heap, reinterpret_cast<uint64_t*>(usual + 300008));
    }
    if (IsForCpus(kind)) {
      Words(heap);
    }
    if (has_kernels) {
      Kernels(heap);
    }
    shmem_free(usual);
  }
  begin();  // without a heap of its own
  const shmemx_space_t spaces[] = {shmemx_space_create(0, 4096), shmemx_space_create(0, 4096),
                                   shmemx_space_create(0, 4096)};
  CHECK((spaces[2] != SHMEMX_SPACE_INVALID) == (shmemx_device_count() > 0));
  return end_well();
}

// ---- Mistakes -----------------------------------------------------------------------------------

int Misuse(const char* kind, std::string_view what) {
  const int type = TypeOf(kind);
  if (what == "postinit_only") shmemx_heap_postinit();
  shmemx_heap_preinit();
  note_place();
  BeginMemory();
  auto* const base = static_cast<unsigned char*>(Take(kind, kBytes));
  if (what == "null") shmemx_heap_create(nullptr, kBytes, type, 0);
  if (what == "empty") shmemx_heap_create(base, 0, type, 0);
  if (what == "kind") shmemx_heap_create(base, kBytes, 4, 0);
  if (what == "past") shmemx_heap_create(base, kBytes << 8, type, 0);
  if (what == "sizes") shmemx_heap_create(base, kBytes / (me == 1 ? 2 : 1), type, 0);
  if (what == "one_has_none" && me == 0) shmemx_heap_create(base, kBytes, type, 0);
  if (what == "ends" && me == 1) return 0;
  if (what == "exits" && me == 1) shmem_global_exit(7);
  if (what == "preinit_twice") shmemx_heap_preinit();
  if (what == "init") shmem_init();
  if (what == "malloc") (void)shmem_malloc(8);
  if (what == "good" || what == "again" || what == "free" || what == "memory") {
    shmemx_heap_create(base, kBytes, type, 0);
  }
  if (what == "again") shmemx_heap_create(base, kBytes, type, 0);
  shmemx_heap_postinit();
  if (what == "late") shmemx_heap_create(base, kBytes, type, 0);
  if (what == "begun") shmemx_heap_preinit();
  if (what == "free") shmem_free(base);
  shmem_putmem(base + kBytes - 8, base, 16, after);  // past the end
  return end_well();
}

}  // namespace

int main(int argc, char** argv) {
  CHECK(argc == 3);
  const std::string_view what = argv[2];
  return what == "lives" || what == "kernels" ? Live(argv[1], what == "kernels")
                                              : Misuse(argv[1], what);
}
