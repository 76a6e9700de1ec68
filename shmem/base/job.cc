#include "shmem/base/job.h"

#include <algorithm>

#include "shmem/base/fail.h"

namespace ferry::shmem {

Job& job = *new Job();

bool Job::AreLocal(const std::vector<int>& pes) const {
  return !has_remote_pes ||
         std::all_of(pes.begin(), pes.end(), [&](int pe) { return IsLocal(pe); });
}

const Segment* Job::FindSegment(const void* address, size_t bytes) const {
  if (heap.Contains(address, bytes)) [[likely]] {
    return &heap;
  }
  for (const Segment& segment : statics) {
    if (segment.Contains(address, bytes)) {
      return &segment;
    }
  }
  for (const std::atomic<const Segment*>& slot : spaces) {
    const Segment* const space = slot.load(std::memory_order_acquire);  // Pairs with SpaceCreate.
    if (space != nullptr && space->Contains(address, bytes)) {
      return space;
    }
  }
  return nullptr;
}

void CheckRunning(const char* call) {
  if (!job.is_running()) [[unlikely]] {
    FailNotRunning(call);
  }
}

void CheckJoined(const char* call) {
  if (job.phase.load(std::memory_order_acquire) != Phase::kJoined) {
    CheckRunning(call);
  }
}

void FailNotRunning(const char* call) {
  switch (job.phase.load()) {
    case Phase::kBefore:
      Fail(call, "call shmem_init or shmem_init_thread first");
    case Phase::kJoined:
      Fail(call,
           "call shmemx_heap_postinit first: between it and shmemx_heap_preinit there are "
           "only shmem_my_pe, shmem_n_pes, shmem_global_exit and shmemx_heap_create");
    default:
      Fail(call, "shmem_finalize was called; call shmem_init to begin again");
  }
}

}  // namespace ferry::shmem
