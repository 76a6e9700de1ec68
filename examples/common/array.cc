#include "examples/common/array.h"

#include <cstdlib>
#include <cstring>
#include <new>

#include "ferry/ferry.hpp"

namespace examples {
namespace {

constexpr size_t kPageBytes = 4096;

double* AllocatePrivate(size_t count) {
  const size_t size_bytes = (count * sizeof(double) + kPageBytes) / kPageBytes * kPageBytes;
  void* data = std::aligned_alloc(kPageBytes, size_bytes);
  if (data == nullptr) {
    throw std::bad_alloc();
  }
  std::memset(data, 0, size_bytes);
  return static_cast<double*>(data);
}

double* AllocateByFerry(size_t count, Memory memory) {
  const ferry_memory_kind kind = memory == Memory::kDevice   ? FERRY_MEMORY_DEVICE
                                 : memory == Memory::kPinned ? FERRY_MEMORY_PINNED
                                                             : FERRY_MEMORY_HOST;
  void* data = nullptr;
  ferry::Check(ferry_alloc((count + 1) * sizeof(double), kind, 0, &data));
  return static_cast<double*>(data);
}

}  // namespace

std::optional<Memory> MemoryNamed(std::string_view name) {
  for (const Memory memory : {Memory::kPrivate, Memory::kHeap, Memory::kDevice}) {
    if (NameOf(memory) == name) {
      return memory;
    }
  }
  return std::nullopt;
}

std::string_view NameOf(Memory memory) {
  switch (memory) {
    case Memory::kPrivate:
      return "private";
    case Memory::kHeap:
      return "heap";
    case Memory::kPinned:
      return "pinned";
    case Memory::kDevice:
      return "device";
  }
  return "";
}

Array::Array(size_t count, Memory memory)
    : count_(count),
      data_(memory == Memory::kPrivate ? AllocatePrivate(count) : AllocateByFerry(count, memory),
            Free{memory}) {}

void Array::Free::operator()(double* data) const {
  if (memory == Memory::kPrivate) {
    std::free(data);
  } else {
    (void)ferry_free(data);
  }
}

}  // namespace examples
