// Blocks in the rank's heap that the other sides of partitioned messages reach: blocks of words,
// and room where data land. Small blocks are cut out of slabs, since each allocation is registered
// with the daemon.
//
// Calling thread: any. TakeBlock blocks on the daemon when it needs another slab.
#pragma once

#include <cstddef>
#include <cstdint>

#include "mpi/base/failure.h"
#include "shm/layout/descriptor.h"

namespace ferry::mpi {

struct Block {
  std::byte* data = nullptr;  // null: none
  shm::Location where{};
};

// Takes a block: zeroed, for words, or with any contents, for data. MPI_ERR_NO_MEM: the heap has no
// room.
enum class Contents { kWords, kData };
Result<Block> TakeBlock(uint64_t size_bytes, Contents contents);
// Gives back a block that neither side uses any more, and clears *block. Does nothing if
// block->data is null.
void GiveBlock(Block* block);

}  // namespace ferry::mpi
