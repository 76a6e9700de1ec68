// The state that the parts of Memory share: the rank's regions, and the backend in use.
#pragma once

#include <mutex>

#include "client/memory/announcer.h"
#include "client/memory/backend_in_use.h"
#include "client/memory/malloc_heap.h"
#include "client/memory/readable_pages.h"
#include "client/memory/region_table.h"

namespace ferry::client {

struct MemoryState {
  MemoryState(gpu::BackendRegistry* backends, AttachConnection* attach)
      : gpu(backends, &regions), announcer(attach) {}

  RegionTable regions;
  const MallocHeap malloc_heap;
  BackendInUse gpu;
  ReadablePages readable;
  mutable std::mutex mutex;  // of changes of `regions`, and of `announcer`
  Announcer announcer;
};

}  // namespace ferry::client
