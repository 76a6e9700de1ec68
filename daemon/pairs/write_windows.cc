#include "daemon/pairs/write_windows.h"

#include <algorithm>
#include <utility>

namespace ferry::daemon {

uint64_t WriteWindows::Open(const RegionPlace& place, uint64_t size_bytes) {
  Window& window = windows_[++last_];
  window.place = place;
  window.pinning = std::make_shared<Pinning>();
  window.pinning->base = place.address();
  window.pinning->bytes = size_bytes;
  window.pinning->access = transport::Access::kRemoteWrite;
  window.pinning->memory = place.region;
  window.pinning->sink = this;
  window.pinning->context = &window;
  registrar_.Pin(window.pinning);
  return last_;
}

void WriteWindows::OnPinned(Pinning& pinning) {
  Window& window = *static_cast<Window*>(pinning.context);
  window.pinning.reset();
  window.error = pinning.status.code();
  if (window.error != ErrorCode::kOk) {
    return;
  }
  StatusOr<transport::MemoryRegion> adopted =
      transport_.AdoptMemory(std::move(pinning.registration));
  window.error = adopted.status().code();
  if (adopted.ok()) {
    window.remote = *adopted;
  }
}

ErrorCode WriteWindows::Find(uint64_t window, transport::MemoryRegion* remote) const {
  const Window& found = windows_.at(window);
  *remote = found.remote;
  return found.error;
}

void WriteWindows::Close(uint64_t window, uint64_t now_ns) {
  if (const auto found = windows_.find(window); found != windows_.end()) {
    found->second.closed_ns = now_ns + keep_ns_;
    next_ns_ = std::min(next_ns_, found->second.closed_ns);
  }
}

// True: nothing of it is with the NIC, or will be.
bool WriteWindows::TryRelease(Window& window) {
  if (window.pinning != nullptr) {
    return false;
  }
  if (window.error != ErrorCode::kOk) {
    return true;
  }
  auto released = transport_.ReleaseMemory(window.remote.handle);
  if (released.status().code() == ErrorCode::kWouldBlock) {
    return false;
  }
  registrar_.Unpin(released.ok() ? std::move(*released) : nullptr, window.place.region, nullptr);
  return true;
}

void WriteWindows::Advance(uint64_t now_ns) {
  if (now_ns < next_ns_) {
    return;
  }
  next_ns_ = UINT64_MAX;
  for (auto next = windows_.begin(); next != windows_.end();) {
    const auto current = next++;
    Window& window = current->second;
    if (now_ns >= window.closed_ns && TryRelease(window)) {
      windows_.erase(current);
    } else if (window.closed_ns != UINT64_MAX) {
      next_ns_ = std::min(next_ns_, std::max(window.closed_ns, now_ns + keep_ns_ / 8));
    }
  }
}

}  // namespace ferry::daemon
