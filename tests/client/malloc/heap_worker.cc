// Works with 40 MiB of malloc's memory, then says where it was.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/client/malloc/look.h"

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
  const ferry::malloc_heap::HeapView view = ferry::malloc_heap::Look();
  const bool inside = view.fd >= 0 && block >= view.base && block < view.base + view.file_bytes;
  std::printf("refusal %u, %s, %s\n", static_cast<unsigned>(view.refusal),
              view.fd >= 0 ? "shared" : "private", inside ? "in the file" : "elsewhere");
  free(block);
  return 0;
}
