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
#include <memory>

#include "daemon/plane/pair_plan.h"
#include "daemon/registration/registrar.h"
#include "transports/api/transport.h"

namespace ferry::daemon {

class WriteWindows final : private PinSink {
 public:
  // Both outlive this.
  WriteWindows(transport::Transport& transport, Registrar& registrar, uint64_t keep_ns)
      : transport_(transport), registrar_(registrar), keep_ns_(keep_ns) {}

  // Begins to register it; its number, never 0.
  uint64_t Open(const RegionPlace& place, uint64_t size_bytes);
  // kOk: *remote is what the sender needs. kWouldBlock: not yet. Else the NIC would not have it.
  ErrorCode Find(uint64_t window, transport::MemoryRegion* remote) const;
  // 0 is none.
  void Close(uint64_t window, uint64_t now_ns);

  // Once in a turn.
  void Advance(uint64_t now_ns);
  // When there is something to do even if nothing happens; UINT64_MAX: never.
  uint64_t next_ns() const { return next_ns_; }

 private:
  struct Window {
    RegionPlace place;
    std::shared_ptr<Pinning> pinning;  // null once it has ended
    ErrorCode error = ErrorCode::kWouldBlock;
    transport::MemoryRegion remote;
    uint64_t closed_ns = UINT64_MAX;  // when it may go
  };

  void OnPinned(Pinning& pinning) override;
  bool TryRelease(Window& window);

  transport::Transport& transport_;
  Registrar& registrar_;
  const uint64_t keep_ns_;
  uint64_t last_ = 0;
  uint64_t next_ns_ = UINT64_MAX;
  std::map<uint64_t, Window> windows_;  // stay where they are while they are pinned
};

}  // namespace ferry::daemon
