#include "client/mpi/channel/staging.h"

#include <cstdlib>

#include "client/mpi/base/connection.h"

namespace ferry::mpi {
namespace {

constexpr size_t kAlignment = 64;

}  // namespace

void* TakeStaging(size_t size_bytes) {
  void* const block = front_end->TakeShadow(size_bytes);
  return block != nullptr
             ? block
             : std::aligned_alloc(kAlignment, (size_bytes + kAlignment) / kAlignment * kAlignment);
}

void GiveStaging(void* memory) {
  if (memory != nullptr && front_end != nullptr && !front_end->GiveShadow(memory)) {
    std::free(memory);
  }
}

}  // namespace ferry::mpi
