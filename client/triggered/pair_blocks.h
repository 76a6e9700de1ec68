// The blocks of the heap that hold the ends of matched pairs, and are never used for anything else.
//
// The other end of a pair may be late, and look at the gate of a block whose request has been
// freed. It sees another life there, and leaves the block alone (shm/pair_move.h). It could not
// tell if the memory were reused for something else.
//
// Calling thread: any.
#pragma once

#include <mutex>
#include <set>
#include <vector>

#include "client/memory/memory.h"
#include "common/status.h"
#include "shm/layout/pair_layout.h"

namespace ferry::client {

class PairBlocks {
 public:
  // `memory` outlives it.
  explicit PairBlocks(Memory* memory) : memory_(*memory) {}
  PairBlocks(const PairBlocks&) = delete;
  PairBlocks& operator=(const PairBlocks&) = delete;

  // A block of zeroes, except for its gate, which begins a new life. kOutOfMemory, and the errors
  // of making the heap. May block on the daemon.
  StatusOr<shm::PairLayout*> Take();
  // Takes a block back that neither the daemon nor a stream of this rank looks at any more. False:
  // it is not one of these blocks.
  bool GiveBack(void* block);

 private:
  Memory& memory_;
  std::mutex mutex_;
  std::set<const void*> all_;
  std::vector<shm::PairLayout*> free_;
};

}  // namespace ferry::client
