// Memory in the rank's heap that the other sides of partitioned messages reach: blocks of words,
// and room where data land. Small ones are cut out of slabs, since the daemon hears of each
// allocation.
//
// Calling thread: any. Take blocks on the daemon when it needs another slab.
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

// All zero, for words, or as it is, for data. MPI_ERR_NO_MEM: the heap has no room.
enum class Contents { kWords, kData };
Result<Block> TakeBlock(uint64_t size_bytes, Contents contents);
// Nobody uses it any more. Does nothing to none.
void GiveBlock(Block* block);

}  // namespace ferry::mpi
