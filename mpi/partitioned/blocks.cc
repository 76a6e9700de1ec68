#include "mpi/partitioned/blocks.h"

#include <cstring>
#include <string>

#include "mpi/base/connection.h"
#include "mpi/partitioned/memory_slabs.h"

namespace ferry::mpi {
namespace {

// Kernels reach the words, too, where there is a GPU backend.
MemorySlabs& slabs = *new MemorySlabs(client::MemoryKind::kPinned, 0);

}  // namespace

Result<Block> TakeBlock(uint64_t size_bytes, Contents contents) {
  const StatusOr<std::byte*> taken = slabs.Take(size_bytes);
  if (!taken.ok()) {
    return Failure{MPI_ERR_NO_MEM,
                   "no memory in the rank's heap for " + std::to_string(size_bytes) +
                       " bytes of a partitioned message: " + taken.status().message()};
  }
  if (contents == Contents::kWords) {
    std::memset(*taken, 0, size_bytes);
  }
  return Block{*taken, front_end->one_sided->Locate(*taken, size_bytes)};
}

void GiveBlock(Block* block) {
  if (block->data != nullptr) {
    slabs.Give(block->data);
  }
  *block = {};
}

}  // namespace ferry::mpi
