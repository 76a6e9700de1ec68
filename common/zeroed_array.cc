#include "common/zeroed_array.h"

#include <sys/mman.h>

#include <cstdlib>
#include <new>

namespace ferry::internal {
namespace {

// From so many bytes on pages of their own pay off: calloc writes memory that was used before.
constexpr size_t kOwnPagesFrom = 16 << 10;
constexpr size_t kHugePageBytes = 2 << 20;

}  // namespace

void* TakeZeroes(size_t size_bytes) {
  if (size_bytes < kOwnPagesFrom) {
    void* const memory = std::calloc(1, size_bytes == 0 ? 1 : size_bytes);
    return memory != nullptr ? memory : throw std::bad_alloc();
  }
  void* const memory =
      mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    throw std::bad_alloc();
  }
  if (size_bytes >= kHugePageBytes) {
    (void)madvise(memory, size_bytes, MADV_NOHUGEPAGE);  // one entry is not to take 2 MiB
  }
  return memory;
}

void FreeZeroes(void* memory, size_t size_bytes) {
  if (size_bytes < kOwnPagesFrom) {
    std::free(memory);
  } else {
    munmap(memory, size_bytes);
  }
}

}  // namespace ferry::internal
