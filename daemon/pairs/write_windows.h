// Memory of receives of matched pairs that the other node's NIC may write into: each exactly, under
// a key of its own.
//
// A window that is closed is worth nothing to its receive any more, but its sender may have begun a
// write, which would cost it the connection if its key were gone: so it is kept, and its memory
// mapped, for a while.
//
// Calling thread: the progress thread. Does not block.
#pragma once

#include <cstdint>
#include <map>

#include "daemon/plane/pair_plan.h"
#include "daemon/registration/pinned_memory.h"

namespace ferry::daemon {

class WriteWindows {
 public:
  // The registrar outlives this.
  WriteWindows(Registrar& registrar, uint64_t keep_ns) : registrar_(registrar), keep_ns_(keep_ns) {}

  // Begins to register it; its number, never 0.
  uint64_t Open(const RegionPlace& place, uint64_t size_bytes);
  // kOk: *remote is what the sender needs. kWouldBlock: not yet. Else the NIC would not have it.
  ErrorCode Find(uint64_t window, transport::MemoryRegion* remote) const;
  // 0 is none.
  void Close(uint64_t window, uint64_t now_ns);

 private:
  Registrar& registrar_;
  const uint64_t keep_ns_;
  uint64_t last_ = 0;
  std::map<uint64_t, PinnedMemory> windows_;
};

}  // namespace ferry::daemon
