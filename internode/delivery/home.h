// What a core asks of the process in which it runs.
//
// Calling thread: the progress thread, within a turn. Nothing blocks, and nothing calls the core
// back, but LetMatch: what the rank says then lies in its lane on return.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/error_code.h"
#include "common/status.h"
#include "internode/delivery/directory.h"
#include "shm/element_lock.h"
#include "shm/layout/descriptor.h"

namespace ferry::progress {

// Who names a region: the rank itself, or another one, for a one-sided operation.
enum class NamedBy { kRank, kPeer };

// Memory of this process: [begin, end).
struct MemoryRange {
  uintptr_t begin = 0;
  uintptr_t end = 0;
};

// ferryd has none: it reaches no private memory but by a stage, and matches for no rank.
class Home {
 public:
  // Where `bytes` of the rank's memory that belong to no region lie in this process. Null: it does
  // not reach them. They stay there until the rank has been told how its send or receive has ended.
  virtual std::byte* Reach(const ServedRank& rank, uint64_t address, uint64_t bytes) = 0;
  // Where the home, and not AddRegion, knows the rank's regions: makes *where, which is in a
  // region, memory of no region. Else it leaves that as it is. kInvalidBuffer: there is no such
  // memory, or not for a peer; kUnsupported: neither CPU nor network reach it.
  virtual ErrorCode Locate(const ServedRank& /*rank*/, uint64_t /*bytes*/, NamedBy /*by*/,
                           shm::Location* /*where*/) {
    return ErrorCode::kOk;
  }
  // What is held while elements in such a region change, that others change by copies; null:
  // nothing is, since all who change them use atomic operations of a CPU. Its holder may have been
  // stopped: so it is tried, and what needs it comes back.
  virtual shm::ElementLock* LockOf(const ServedRank& /*rank*/, uint32_t /*region*/) {
    return nullptr;
  }
  // Whether memory of no region may stay registered behind its use: the home watches it then.
  virtual bool WatchesMemory() const { return false; }
  // Watches these pages until they go. Not kOk: it cannot. Any thread.
  virtual Status Watch(MemoryRange /*pages*/) {
    return {ErrorCode::kUnsupported, "this home watches no memory"};
  }
  // Appends what the program has let go of since the last call: at the latest when that call of the
  // program has returned.
  virtual void TakeGone(std::vector<MemoryRange>* /*gone*/) {}
  // Lets the rank's engine take what has been delivered, now.
  virtual void LetMatch(ServedRank& rank) = 0;

 protected:
  ~Home() = default;
};

}  // namespace ferry::progress
