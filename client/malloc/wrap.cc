// The functions that jemalloc calls in place of mmap, munmap and madvise, so that all its memory is
// the heap's; its settings; and a function of the C library's malloc that it lacks.
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "client/malloc/heap.h"
#include "client/malloc/system_calls.h"

using ferry::malloc_heap::heap;
using ferry::malloc_heap::SystemAdvise;
using ferry::malloc_heap::SystemMap;
using ferry::malloc_heap::SystemUnmap;

extern "C" {

// jemalloc's; not in a header that every installation has.
int mallctl(const char* name, void* old_value, size_t* old_bytes, void* new_value,
            size_t new_bytes);
void* memalign(size_t alignment, size_t size_bytes);

// dss: the break is no memory of the heap. oversize_threshold: large blocks would have an arena of
// their own that gives each back at once, and takes it anew. muzzy: there is no MADV_FREE here.
// tcache: blocks of up to 4 MiB are reused without a lock. MALLOC_CONF overrides.
extern const char* malloc_conf;
const char* malloc_conf = "dss:disabled,oversize_threshold:0,muzzy_decay_ms:0,lg_tcache_max:22";

void* __wrap_mmap(void* address, size_t size_bytes, int protection, int flags, int fd,
                  off_t offset) {
  if ((flags & MAP_FIXED) != 0 && heap.Contains(address)) {
    // Where the kernel does not overcommit, jemalloc commits and decommits by such calls.
    if (protection == PROT_NONE) {
      heap.Clear(address, size_bytes);
    }
    return address;
  }
  if (fd == -1 && (flags & MAP_FIXED) == 0) {
    if (void* const place = heap.Map(size_bytes); place != nullptr) {
      return place;
    }
  }
  return SystemMap(address, size_bytes, protection, flags, fd, offset);
}

int __wrap_munmap(void* address, size_t size_bytes) {
  if (!heap.Contains(address)) {
    return SystemUnmap(address, size_bytes);
  }
  heap.Unmap(address, size_bytes);
  return 0;
}

int __wrap_madvise(void* address, size_t size_bytes, int advice) {
  if (heap.Contains(address) && advice == MADV_DONTNEED) {
    heap.Clear(address, size_bytes);  // for a memfd the call would only drop the mapping's pages
    return 0;
  }
  return SystemAdvise(address, size_bytes, advice);
}

// The C library's would come from its own heap, and be freed to this one.
void* pvalloc(size_t size_bytes) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  if (size_bytes > SIZE_MAX - page) {
    errno = ENOMEM;
    return nullptr;
  }
  return memalign(page, (size_bytes + page - 1) / page * page);
}

int ferry_malloc_heap(ferry::malloc_heap::HeapView* view) { return heap.Look(view); }

}  // extern "C"

namespace {

// jemalloc makes the first arena before it knows that no block is oversized.
__attribute__((constructor)) void SetUpFirstArena() {
  size_t never = SIZE_MAX;
  (void)mallctl("arena.0.oversize_threshold", nullptr, nullptr, &never, sizeof(never));
}

}  // namespace
