#include "client/memory/readable_pages.h"

#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "common/process_memory.h"

namespace ferry::client {

bool IsReachedByKernel(const void* pointer) {
  std::byte byte{};
  return ReadProcessMemory(getpid(), reinterpret_cast<uint64_t>(pointer), &byte, 1) !=
         ErrorCode::kInvalidBuffer;
}

bool IsReadable(const void* pointer) {
  if (IsReachedByKernel(pointer)) {
    return true;
  }
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    unsigned long long begin = 0;
    unsigned long long end = 0;
    char mode = 0;
    const auto address = reinterpret_cast<uint64_t>(pointer);
    if (std::sscanf(line.c_str(), "%llx-%llx %c", &begin, &end, &mode) == 3 && address >= begin &&
        address < end) {
      return mode == 'r';
    }
  }
  return false;
}

bool ReadablePages::Contains(const void* pointer) {
  constexpr uintptr_t kPageBytes = 4096;
  const uintptr_t page = reinterpret_cast<uintptr_t>(pointer) / kPageBytes;
  std::atomic<uintptr_t>& known = pages_[page % kPages];
  if (known.load(std::memory_order_relaxed) == page) {
    return true;
  }
  const bool is_readable = IsReadable(pointer);
  if (is_readable) {
    known.store(page, std::memory_order_relaxed);
  }
  return is_readable;
}

}  // namespace ferry::client
