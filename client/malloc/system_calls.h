// The C library's mmap, munmap and madvise. Inside libferry_malloc.so the linker redirects calls of
// those names to the heap (--wrap), and provides the C library's functions under other names.
#pragma once

#include <sys/types.h>

#include <cstddef>

namespace ferry::malloc_heap {

extern "C" {
void* SystemMap(void* address, size_t size_bytes, int protection, int flags, int fd,
                off_t offset) __asm__("__real_mmap");
int SystemUnmap(void* address, size_t size_bytes) __asm__("__real_munmap");
int SystemAdvise(void* address, size_t size_bytes, int advice) __asm__("__real_madvise");
}

}  // namespace ferry::malloc_heap
