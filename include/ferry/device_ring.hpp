// device_ring.hpp - a thin C++20 wrapper of device_ring.h: rings by which the threads of a GPU ask
// ferryd for something.
//
// Header-only; every call behaves as its C counterpart says, and throws ferry::Error instead of
// returning a code. A ring must be gone before the Session ends, and no kernel may use it then.
//
//   ferry::DeviceRing ring(0, 1024, 4096);
//   Launch(kernel, ring.address(), ring.Place(counter, sizeof(*counter)));
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "ferry/device_ring.h"
#include "ferry/ferry.hpp"

namespace ferry {

class DeviceRing {
 public:
  DeviceRing(int device, uint32_t slots, uint32_t completions) {
    Check(ferry_ring_create(device, slots, completions, &handle_));
  }
  DeviceRing(DeviceRing&& other) noexcept
      : handle_(std::exchange(other.handle_, FERRY_RING_NULL)) {}
  DeviceRing& operator=(DeviceRing&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  DeviceRing(const DeviceRing&) = delete;
  DeviceRing& operator=(const DeviceRing&) = delete;
  ~DeviceRing() {
    if (handle_ != FERRY_RING_NULL) {
      (void)ferry_ring_destroy(&handle_);
    }
  }

  ferry_ring handle() const { return handle_; }
  // The address that kernels give to ferry_device_ring_open.
  void* address() const {
    void* address = nullptr;
    Check(ferry_ring_address(handle_, &address));
    return address;
  }
  ferry_device_place Place(const void* pointer, size_t size_bytes) const {
    ferry_device_place place{};
    Check(ferry_ring_place(handle_, pointer, size_bytes, &place));
    return place;
  }
  ferry_device_place PrepareStart(ferry_request request) const {
    ferry_device_place place{};
    Check(ferry_ring_prepare_start(handle_, request, &place));
    return place;
  }
  ferry_ring_state state() const {
    ferry_ring_state state{};
    Check(ferry_ring_get_state(handle_, &state));
    return state;
  }

 private:
  ferry_ring handle_ = FERRY_RING_NULL;
};

}  // namespace ferry
