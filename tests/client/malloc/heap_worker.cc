// Works with 40 MiB of malloc's memory, then says where it was.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "client/malloc/heap_view.h"

using ferry::malloc_heap::HeapView;

int main() {
  constexpr size_t kBytes = size_t{40} << 20;
  for (int round = 0; round < 3; ++round) {
    auto* const block = static_cast<unsigned char*>(calloc(1, kBytes));
    if (block == nullptr || block[kBytes / 2] != 0) {
      return 1;
    }
    std::memset(block, 1, kBytes);
    free(block);
  }
  auto* const block = static_cast<std::byte*>(malloc(kBytes));
  if (block == nullptr) {
    return 2;
  }
  std::memset(block, 2, kBytes);
  HeapView view{};
  view.version = ferry::malloc_heap::kHeapViewVersion;
  const auto look = reinterpret_cast<ferry::malloc_heap::HeapViewFunction>(
      dlsym(RTLD_DEFAULT, ferry::malloc_heap::kHeapViewSymbol));
  if (look == nullptr || look(&view) != 0) {
    return 3;
  }
  const bool inside = view.fd >= 0 && block >= view.base && block < view.base + view.file_bytes;
  std::printf("refusal %u, %s, %s\n", static_cast<unsigned>(view.refusal),
              view.fd >= 0 ? "shared" : "private", inside ? "in the file" : "elsewhere");
  free(block);
  return 0;
}
