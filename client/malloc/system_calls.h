// The C library's functions themselves: inside libferry_malloc.so the linker sends calls of mmap,
// munmap and madvise to the heap (--wrap).
#pragma once

#include <sys/types.h>

#include <cstddef>

extern "C" {
void* __real_mmap(void* address, size_t size_bytes, int protection, int flags, int fd,
                  off_t offset);
int __real_munmap(void* address, size_t size_bytes);
int __real_madvise(void* address, size_t size_bytes, int advice);
}

namespace ferry::malloc_heap {

inline void* SystemMap(void* address, size_t size_bytes, int protection, int flags, int fd,
                       off_t offset) {
  return __real_mmap(address, size_bytes, protection, flags, fd, offset);
}
inline int SystemUnmap(void* address, size_t size_bytes) {
  return __real_munmap(address, size_bytes);
}
inline int SystemAdvise(void* address, size_t size_bytes, int advice) {
  return __real_madvise(address, size_bytes, advice);
}

}  // namespace ferry::malloc_heap
