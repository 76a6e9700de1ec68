// Device copies that fail: in collectives on queues, in puts and gets on queues, and without one.
// The device's memory is such that no CPU reaches it, and the calls name more than there is.
#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tests/shmem/ranks/queue.h"
#include "tests/shmem/ranks/space.h"

namespace {

constexpr size_t kLongs = 16384;  // of the device's memory

long* DeviceMemory() {
  void* memory = nullptr;
  CHECK(ferry_alloc(kLongs * sizeof(long), FERRY_MEMORY_DEVICE, 0, &memory) == FERRY_SUCCESS);
  const std::vector<long> zeros(kLongs);
  ferry_stream stream = nullptr;
  CHECK(ferry_stream_create(0, &stream) == FERRY_SUCCESS);
  CHECK(ferry_stream_memcpy(stream, memory, zeros.data(), kLongs * sizeof(long)) == FERRY_SUCCESS);
  CHECK(ferry_stream_destroy(&stream) == FERRY_SUCCESS);
  return static_cast<long*>(memory);
}

// ---- Collectives --------------------------------------------------------------------------------

constexpr int kStride = 2;
struct Collective {
  const char* call;
  int (*enqueue)(shmem_team_t team, long* dest, const long* source, size_t count,
                 ferry_queue queue);
  bool has_blocks;  // of source: one for each PE
};
const std::array kCollectives = {
    Collective{
        "shmemx_long_broadcast_on_queue",
        [](shmem_team_t team, long* dest, const long* source, size_t count, ferry_queue queue) {
          return shmemx_long_broadcast_on_queue(team, dest, source, count, 0, queue);
        },
        false},
    Collective{"shmemx_long_collect_on_queue", shmemx_long_collect_on_queue, false},
    Collective{"shmemx_long_fcollect_on_queue", shmemx_long_fcollect_on_queue, false},
    Collective{"shmemx_long_alltoall_on_queue", shmemx_long_alltoall_on_queue, true},
    Collective{
        "shmemx_long_alltoalls_on_queue",
        [](shmem_team_t team, long* dest, const long* source, size_t count, ferry_queue queue) {
          return shmemx_long_alltoalls_on_queue(team, dest, source, kStride, kStride, count, queue);
        },
        false},
    Collective{"shmemx_long_max_reduce_on_queue", shmemx_long_max_reduce_on_queue, false},
    Collective{"shmemx_long_sum_inscan_on_queue", shmemx_long_sum_inscan_on_queue, false},
    Collective{"shmemx_long_sum_exscan_on_queue", shmemx_long_sum_exscan_on_queue, false}};
constexpr size_t kCalls = kCollectives.size();

constexpr size_t kMost = 1500;  // of a PE's elements

// The device of PE 0 cannot copy its source, of which one element is left. A block for each PE is
// sent one by one, and only the second one runs past the end, so that none begins behind it.
const long* SourceOf(const Collective& collective, const long* memory, size_t count) {
  return me != 0 ? memory : memory + kLongs - 1 - (collective.has_blocks ? count : 0);
}

// PE 0 fails; all others hear of it, and the collective behind it is as good as any. Each call has
// a team and a queue of its own.
int Collectives(std::string_view where) {
  begin();
  long* const memory = DeviceMemory();
  const size_t longs = static_cast<size_t>(pes) * kMost * kStride;
  std::unique_ptr<Space> space;
  if (where == "space") {
    space = std::make_unique<Space>(2 * kCalls * longs * sizeof(long), 0);
  }
  std::array<Line, kCalls> lines;
  std::array<shmem_team_t, kCalls> teams;
  std::array<long*, kCalls> dests;
  for (size_t i = 0; i < kCalls; ++i) {
    CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, pes, nullptr, 0, &teams[i]) == 0);
    dests[i] = space != nullptr ? space->Make<long>(longs) : Symmetric<long>(longs);
  }
  auto* const own = Symmetric<long>(1);
  auto* const sums = Symmetric<long>(kCalls);
  const bool is_local_to_all = shmem_team_n_pes(SHMEM_TEAM_SHARED) == pes;
  const auto is_left_out = [&](const Collective& collective) {
    return collective.has_blocks && !is_local_to_all && pes > 2;
  };
  long round = 0;
  for (const size_t count : {size_t{50}, kMost}) {
    *own = ++round * (me + 1);
    shmem_barrier_all();
    for (size_t i = 0; i < kCalls; ++i) {
      const Collective& collective = kCollectives[i];
      if (!is_left_out(collective)) {
        ENQUEUE(collective.enqueue(teams[i], dests[i], SourceOf(collective, memory, count), count,
                                   lines[i].queue));
      }
      ENQUEUE(shmemx_long_sum_reduce_on_queue(teams[i], sums + i, own, 1, lines[i].queue));
    }
    for (size_t i = 0; i < kCalls; ++i) {
      if (is_left_out(kCollectives[i])) {
        lines[i].Wait();
      } else if (me == 0) {
        CheckFailed(lines[i], FERRY_ERR_BUFFER, kCollectives[i].call);
      } else {
        CheckFailed(lines[i], FERRY_ERR_CANCELLED, "has given this collective up");
      }
      CHECK(sums[i] == round * pes * (pes + 1) / 2);
    }
  }
  space.reset();
  for (Line& line : lines) {
    line.End();
  }
  CHECK(ferry_free(memory) == FERRY_SUCCESS);
  return end_well();
}

// ---- Puts and gets ------------------------------------------------------------------------------

constexpr size_t kMostBytes = 200'000;

// The source of a put, or the dest of a get, begins in the device's memory and runs past its end.
int Moves() {
  begin();
  long* const memory = DeviceMemory();
  long* const last = memory + kLongs - 1;
  Line line;
  auto* const there = Symmetric<char>(kMostBytes);
  auto* const word = Symmetric<uint64_t>(1);
  for (const size_t bytes : {size_t{16}, size_t{8192}, kMostBytes}) {
    ENQUEUE(shmemx_putmem_on_queue(there, last, bytes, after, line.queue));
    CheckFailed(line, FERRY_ERR_BUFFER, "shmemx_putmem_on_queue: ");
    ENQUEUE(shmemx_putmem_nbi_on_queue(there, last, bytes, after, line.queue));
    ENQUEUE(shmemx_quiet_on_queue(line.queue));
    CheckFailed(line, FERRY_ERR_BUFFER, "shmemx_putmem_nbi_on_queue: ");
    ENQUEUE(shmemx_putmem_signal_on_queue(there, last, bytes, word, 1, SHMEM_SIGNAL_ADD, after,
                                          line.queue));
    CheckFailed(line, FERRY_ERR_BUFFER, "shmemx_putmem_signal_on_queue: ");
    ENQUEUE(shmemx_getmem_on_queue(last, there, bytes, after, line.queue));
    CheckFailed(line, FERRY_ERR_BUFFER, "shmemx_getmem_on_queue: ");
  }
  shmem_barrier_all();
  CHECK(*word == 0);  // no data, no signal

  // Data that lie inside the memory still move.
  shmem_barrier_all();
  const long value = 7 + me;
  shmem_putmem(there, &value, sizeof(value), me);
  ENQUEUE(shmemx_getmem_on_queue(last, there, sizeof(value), me, line.queue));
  ENQUEUE(shmemx_putmem_signal_on_queue(there + 64, last, sizeof(value), word, 1, SHMEM_SIGNAL_ADD,
                                        after, line.queue));
  ENQUEUE(shmemx_signal_wait_until_on_queue(word, SHMEM_CMP_EQ, 1, line.queue));
  line.Wait();
  long came = 0;
  memcpy(&came, there + 64, sizeof(came));
  CHECK(came == 7 + before);
  line.End();
  CHECK(ferry_free(memory) == FERRY_SUCCESS);
  return end_well();
}

// Without a queue it is the end of the program.
int Put() {
  begin();
  auto* const there = Symmetric<char>(64);
  if (me == 0) {
    shmem_putmem(there, DeviceMemory() + kLongs - 1, 64, after);
  }
  shmem_barrier_all();
  return end_well();
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc > 1 ? argv[1] : "";
  if (what == "moves") {
    return Moves();
  }
  return what == "put" ? Put() : Collectives(what);
}
