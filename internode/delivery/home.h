// The calls by which a core uses the process in which it runs.
//
// Calling thread: the progress thread, within a turn. Nothing blocks, and nothing calls the core
// back except LetMatch, which leaves the rank's commands in its lane on return.
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

// The rank that names a region: its own, or another one, for a one-sided operation.
enum class NamedBy { kRank, kPeer };

// Memory of this process: [begin, end).
struct MemoryRange {
  uintptr_t begin = 0;
  uintptr_t end = 0;
};

// The process of a core. ferryd has no Home: it reaches private memory only by a stage, and matches
// for no rank.
class Home {
 public:
  // Returns the address in this process of `bytes` of the rank's memory that belong to no region.
  // Null: the process does not reach them. They stay there until the rank has been told how its
  // send or receive has ended.
  virtual std::byte* Reach(const ServedRank& rank, uint64_t address, uint64_t bytes) = 0;
  // Where the home knows the rank's regions, in place of AddRegion: changes *where from a place in
  // a region to memory of no region. Other homes leave *where as it is. kInvalidBuffer: there is no
  // such memory, or not for a peer; kUnsupported: neither CPU nor network reach it.
  virtual ErrorCode Locate(const ServedRank& /*rank*/, uint64_t /*bytes*/, NamedBy /*by*/,
                           shm::Location* /*where*/) {
    return ErrorCode::kOk;
  }
  // Called for a receive of the rank where Locate has returned kUnsupported: a home that brings the
  // data to device memory by itself puts memory that Locate takes in place of *where. kOutOfMemory.
  virtual ErrorCode Land(const ServedRank& /*rank*/, uint32_t /*request*/, uint64_t /*bytes*/,
                         shm::Location* /*where*/) {
    return ErrorCode::kUnsupported;
  }
  // Returns the lock to hold while elements in a region change that others change by copies; null:
  // none is needed, since all changes are atomic operations of a CPU. Its holder may have been
  // stopped: so the core only tries the lock, and comes back to an operation that did not get it.
  virtual shm::ElementLock* LockOf(const ServedRank& /*rank*/, uint32_t /*region*/) {
    return nullptr;
  }
  // Returns true if memory of no region may stay registered after its use: the home then watches
  // it.
  virtual bool WatchesMemory() const { return false; }
  // Watches these pages until they are unmapped. Not kOk: it cannot. Any thread.
  virtual Status Watch(MemoryRange /*pages*/) {
    return {ErrorCode::kUnsupported, "this home watches no memory"};
  }
  // Appends the memory that the program has freed or unmapped since the last call: at the latest
  // when the program's own call has returned.
  virtual void TakeGone(std::vector<MemoryRange>* /*gone*/) {}
  // Lets the rank's engine take the delivered messages, now.
  virtual void LetMatch(ServedRank& rank) = 0;

 protected:
  ~Home() = default;
};

}  // namespace ferry::progress
