// Where the ends of matched pairs lie: blocks of the heap that are never anything else.
//
// The other end of a pair may be late: it looks at the gate of a block whose request was freed
// since. It sees another life there, and leaves it alone (shm/pair_move.h); in memory that had
// become something else it would not know.
//
// Calling thread: any.
#pragma once

#include <mutex>
#include <set>
#include <vector>

#include "client/core/memory.h"
#include "common/status.h"
#include "shm/layout/channel_layout.h"

namespace ferry::client {

class ChannelBlocks {
 public:
  // `memory` outlives it.
  explicit ChannelBlocks(Memory* memory) : memory_(*memory) {}
  ChannelBlocks(const ChannelBlocks&) = delete;
  ChannelBlocks& operator=(const ChannelBlocks&) = delete;

  // A block of zeroes but for its gate, which begins a life. kOutOfMemory, and what making the heap
  // says. May block on the daemon.
  StatusOr<shm::ChannelLayout*> Take();
  // Neither the daemon nor a stream of this rank looks at it any more. False: it is none of these.
  bool GiveBack(void* block);

 private:
  Memory& memory_;
  std::mutex mutex_;
  std::set<const void*> all_;
  std::vector<shm::ChannelLayout*> free_;
};

}  // namespace ferry::client
