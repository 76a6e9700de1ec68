#include "daemon/pairs/write_windows.h"

namespace ferry::daemon {

uint64_t WriteWindows::Open(const RegionPlace& place, uint64_t size_bytes) {
  windows_[++last_] = PinnedMemory(registrar_, {.base = place.address(),
                                                .bytes = size_bytes,
                                                .access = transport::Access::kRemoteWrite,
                                                .memory = place.region});
  return last_;
}

ErrorCode WriteWindows::Find(uint64_t window, transport::MemoryRegion* remote) const {
  const PinnedMemory& found = windows_.at(window);
  if (found.is_pinned()) {
    *remote = found.region();
  }
  return found.code();
}

void WriteWindows::Close(uint64_t window, uint64_t now_ns) {
  if (auto found = windows_.extract(window)) {
    found.mapped().ReleaseAt(now_ns + keep_ns_);
  }
}

}  // namespace ferry::daemon
