// Collectives and strided calls of kernels between nodes when a request to a table's ring fails:
// before the call, in it, or so that rounds get lost. The first argument names the failure, the
// second the call.
#include <algorithm>
#include <string_view>

#include "tests/shmem/ranks/device.h"

namespace {

constexpr size_t kLong = 20'000;  // bytes: longer than what travels in a packet
constexpr uint32_t kNoSegment = 0x7ffffff0;
constexpr uint32_t kNoRegion = 0x7ffffff0;

int partner;  // a PE of another node

struct Arena {
  long* source = Symmetric<long>(kLong / sizeof(long));
  long* dest = Symmetric<long>(kLong * 4 / sizeof(long));
  long* words = Symmetric<long>(64);  // of strided calls
};

// ---- Mistakes -----------------------------------------------------------------------------------

enum class Mistake { kRank, kRegion, kSegment };

// Makes a put whose failure only the ring learns of.
void PutToNowhere(const shmemx_device_t& d, const Arena& arena, Mistake mistake) {
  const ferry_shmem_place place =
      ferry_shmem_find(d, reinterpret_cast<uintptr_t>(arena.words), 8, partner);
  ferry_device_far_place there = ferry_shmem_there(d, place, partner);
  if (mistake == Mistake::kRank) {
    there.rank = 9999;
  } else if (mistake == Mistake::kSegment) {
    there.segment = kNoSegment;
  }
  ferry_shmem_request request = ferry_shmem_request_of(FERRY_DEVICE_RING_PUT_VALUE, there, 7, 0);
  request.details = 8U << 8;
  if (mistake == Mistake::kRegion) {
    request = ferry_shmem_request_of(FERRY_DEVICE_RING_PUT, there, 0, 64);
    request.own_region = kNoRegion;
  }
  CHECK(ferry_shmem_post(ferry_shmem_ring(d), request, FERRY_DEVICE_RING_SILENT) != 0);
}

// From now on this PE's table names the partner's heap wrongly.
void Spoil(const Table& table) {
  const_cast<ferry_shmem_way*>(table.Open().ways)[partner].segments[0] = kNoSegment;
}

// ---- Calls --------------------------------------------------------------------------------------

int Call(std::string_view what, const shmemx_device_t& d, const Arena& arena) {
  long* const dest = arena.dest;
  const long* const source = arena.source;
  if (what == "fcollect") {
    return shmemx_device_long_fcollect_work_group(d, dest, source, 1);
  }
  if (what == "long_fcollect") {
    return shmemx_device_fcollectmem_work_group(d, dest, source, kLong);
  }
  if (what == "collect") {
    return shmemx_device_long_collect_work_group(d, dest, source, 3);
  }
  if (what == "broadcast") {
    return shmemx_device_long_broadcast_work_group(d, dest, source, 5, 0);
  }
  if (what == "alltoall") {
    return shmemx_device_long_alltoall_work_group(d, dest, source, 2);
  }
  if (what == "alltoalls") {
    return shmemx_device_long_alltoalls_work_group(d, dest, source, 2, 1, 2);
  }
  if (what == "scan") {
    return shmemx_device_long_sum_inscan_work_group(d, dest, source, 64);
  }
  CHECK(what == "reduce");
  return shmemx_device_long_sum_reduce_work_group(d, dest, source, 64);
}

long ValueOf(int pe, int i) { return pe * 1000L + i; }

// Returns the value that the call leaves at `dest[i]` of this PE.
long Expected(std::string_view what, int i) {
  const int all = pes * (pes - 1) / 2;
  if (what == "fcollect") {
    return ValueOf(i, 0);
  }
  if (what == "long_fcollect") {
    constexpr int kEach = kLong / sizeof(long);
    return ValueOf(i / kEach, i % kEach);
  }
  if (what == "collect") {
    return ValueOf(i / 3, i % 3);
  }
  if (what == "broadcast") {
    return ValueOf(0, i);
  }
  if (what == "alltoall") {
    return ValueOf(i / 2, me * 2 + i % 2);
  }
  if (what == "alltoalls") {
    return i % 2 != 0 ? 0 : ValueOf(i / 4, me * 2 + i / 2 % 2);
  }
  if (what == "scan") {
    return ValueOf(me * (me + 1) / 2, i * (me + 1));
  }
  return ValueOf(all, i * pes);
}

int CountOf(std::string_view what) {
  return what == "fcollect"        ? pes
         : what == "long_fcollect" ? pes * static_cast<int>(kLong / sizeof(long))
         : what == "collect"       ? 3 * pes
         : what == "broadcast"     ? 5
         : what == "alltoall"      ? 2 * pes
         : what == "alltoalls"     ? 4 * pes
                                   : 64;
}

void Fill(const Arena& arena) {
  for (size_t i = 0; i < kLong / sizeof(long); ++i) {
    arena.source[i] = ValueOf(me, static_cast<int>(i));
  }
  std::fill(arena.dest, arena.dest + kLong * 4 / sizeof(long), 0);
  shmem_barrier_all();
}

// The failure of an earlier call that no kernel has asked about does no harm to this call.
void Remembered(std::string_view what, const Arena& arena) {
  for (const Mistake mistake : {Mistake::kRank, Mistake::kRegion, Mistake::kSegment}) {
    const Table table;
    Fill(arena);
    ferry::device::Launch({1, 5}, [&] {
      const shmemx_device_t d = table.Open();
      if (me == 0 && ferry_device_group_thread() == 0) {
        PutToNowhere(d, arena, mistake);
      }
      CHECK(shmemx_device_sync_work_group(d) == 0);
      if (me == 0 && ferry_device_group_thread() == 0) {
        PutToNowhere(d, arena, mistake);  // perhaps not over when the next call begins
      }
      CHECK(Call(what, d, arena) == 0);
      for (int i = 0; i < CountOf(what); ++i) {
        CHECK(arena.dest[i] == Expected(what, i));
      }
      CHECK(shmemx_device_barrier_work_group(d) == 0);
      CHECK((shmemx_device_quiet(d) != 0) == (me == 0));
    });
    shmem_barrier_all();
  }
}

void RememberedByStridedCalls(const Arena& arena) {
  for (const Mistake mistake : {Mistake::kRank, Mistake::kRegion, Mistake::kSegment}) {
    const Table table;
    Fill(arena);
    long own[4] = {};  // which ferryd does not know
    ferry::device::Launch({1, 3}, [&] {
      const shmemx_device_t d = table.Open();
      if (ferry_device_group_thread() == 0) {
        PutToNowhere(d, arena, mistake);
      }
      CHECK(shmemx_device_long_iput_work_group(d, arena.words, arena.source, 2, 1, 4, partner) ==
            0);
      CHECK(shmemx_device_long_iget_work_group(d, arena.dest, arena.source, 1, 3, 4, partner) == 0);
      CHECK(shmemx_device_long_iget_work_group(d, own, arena.source, 1, 3, 4, partner) == 0);
      CHECK(shmemx_device_quiet(d) != 0);
    });
    for (int i = 0; i < 4; ++i) {
      CHECK(arena.dest[i] == ValueOf(partner, 3 * i) && own[i] == ValueOf(partner, 3 * i));
    }
    shmem_barrier_all();
    for (int i = 0; i < 4; ++i) {
      CHECK(arena.words[2 * i] == ValueOf((me + pes - pes / 2) % pes, i));
    }
    shmem_barrier_all();
  }
}

// An operation that PE 0 cannot carry out fails at all PEs, and so do later ones on that table; the
// next table works.
void Inside(std::string_view what, const Arena& arena) {
  {
    const Table table;
    if (me == 0) {
      Spoil(table);
    }
    Fill(arena);
    ferry::device::Launch({1, 5}, [&] {
      const shmemx_device_t d = table.Open();
      CHECK(Call(what, d, arena) == SHMEMX_DEVICE_ERR_BUFFER);
      CHECK(Call(what, d, arena) == SHMEMX_DEVICE_ERR_BUFFER);
      CHECK(shmemx_device_sync_work_group(d) == SHMEMX_DEVICE_ERR_BUFFER);
    });
    shmem_barrier_all();
  }
  const Table next;
  Fill(arena);
  ferry::device::Launch({1, 5}, [&] {
    CHECK(Call(what, next.Open(), arena) == 0);
    CHECK(arena.dest[0] == Expected(what, 0));
  });
}

// After a failure and a fence ferryd does no more of what PE 0 asks of its partner, which does not
// see its rounds: data fail at all PEs.
void BehindAFence(std::string_view what, const Arena& arena) {
  const Table table;
  Fill(arena);
  ferry::device::Launch({1, 5}, [&] {
    const shmemx_device_t d = table.Open();
    if (me == 0 && ferry_device_group_thread() == 0) {
      PutToNowhere(d, arena, Mistake::kRegion);
      CHECK(shmemx_device_quiet(d) == SHMEMX_DEVICE_ERR_BUFFER);
      shmemx_device_fence(d);
    }
    CHECK(Call(what, d, arena) == SHMEMX_DEVICE_ERR_BUFFER);
    CHECK(shmemx_device_sync_work_group(d) == SHMEMX_DEVICE_ERR_BUFFER);
  });
}

void InsideStridedCalls(const Arena& arena) {
  const Table table;
  Fill(arena);
  if (me == 0) {
    Spoil(table);
    long own[4] = {};
    ferry::device::Launch({1, 3}, [&] {
      const shmemx_device_t d = table.Open();
      for (int i = 0; i < 2; ++i) {  // the second one, too
        CHECK(shmemx_device_long_iput_work_group(d, arena.words, arena.source, 2, 1, 4, partner) ==
              SHMEMX_DEVICE_ERR_BUFFER);
        CHECK(shmemx_device_long_iget_work_group(d, arena.dest, arena.source, 1, 3, 4, partner) ==
              SHMEMX_DEVICE_ERR_BUFFER);
        CHECK(shmemx_device_long_iget_work_group(d, own, arena.source, 1, 3, 4, partner) ==
              SHMEMX_DEVICE_ERR_BUFFER);
      }
      CHECK(shmemx_device_quiet(d) == SHMEMX_DEVICE_ERR_BUFFER);
    });
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view when = argc > 1 ? argv[1] : "";
  const std::string_view what = argc > 2 ? argv[2] : "";
  begin();
  partner = (me + pes / 2) % pes;
  const Arena arena;
  if (what == "strided") {
    when == "before" ? RememberedByStridedCalls(arena) : InsideStridedCalls(arena);
  } else if (when == "before") {
    Remembered(what, arena);
  } else if (when == "inside") {
    Inside(what, arena);
  } else {
    CHECK(when == "behind_a_fence");
    BehindAFence(what, arena);
  }
  return end_well();
}
