#include "tests/vendor_memory/vendor.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include "tests/vendor_memory/buffer.h"

namespace ferry::vendor_memory {
namespace {

std::mutex mapped_mutex;
std::map<std::byte*, void*> mapped;  // memory by its address

constexpr size_t kBytesBefore = Buffer::kMargin + 40;

size_t MappedBytes(size_t bytes) {
  return (bytes + kMappingBytes - 1) / kMappingBytes * kMappingBytes + kMappingBytes;
}

}  // namespace

void* AllocateVirtual(size_t bytes) {
  std::byte* const begin = ReserveAddresses(MappedBytes(bytes) + kMappingBytes);
  for (size_t at = 0; at < MappedBytes(bytes); at += kMappingBytes) {
    void* const memory = NewMemory(kMappingBytes);
    MapMemory(begin + at, memory, kMappingBytes);
    std::lock_guard lock(mapped_mutex);
    mapped[begin + at] = memory;
  }
  return begin + kMappingBytes - kBytesBefore;
}

void FreeVirtual(void* pointer, size_t bytes) {
  std::byte* const begin = static_cast<std::byte*>(pointer) + kBytesBefore - kMappingBytes;
  for (size_t at = 0; at < MappedBytes(bytes); at += kMappingBytes) {
    UnmapMemory(begin + at, kMappingBytes);
    std::lock_guard lock(mapped_mutex);
    ReleaseMemory(mapped.extract(begin + at).mapped());
  }
  FreeAddresses(begin, MappedBytes(bytes) + kMappingBytes);
}

void Require(bool ok, const char* what) {
  if (!ok) {
    std::fprintf(stderr, "%s: %s failed\n", VendorName(), what);
    std::exit(3);
  }
}

const Kind* FindKind(const char* name) {
  for (const Kind& kind : Kinds()) {
    if (std::strcmp(kind.name, name) == 0) {
      return &kind;
    }
  }
  return nullptr;
}

}  // namespace ferry::vendor_memory
