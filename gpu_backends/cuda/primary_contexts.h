// The primary contexts of a process's devices: retained when they are first used, and made the
// calling thread's current context for the length of a call.
#pragma once

#include <mutex>
#include <vector>

#include "common/status.h"
#include "gpu_backends/cuda/cuda_api.h"

namespace ferry::gpu {

// Thread-safe.
class PrimaryContexts {
 public:
  // `api` outlives this. `devices` holds one CUDA device for each of Ferry's.
  PrimaryContexts(const CudaApi& api, std::vector<CudaDevice> devices);
  ~PrimaryContexts();  // releases them
  PrimaryContexts(const PrimaryContexts&) = delete;
  PrimaryContexts& operator=(const PrimaryContexts&) = delete;

  const CudaApi& api() const { return api_; }
  int device_count() const { return static_cast<int>(devices_.size()); }
  CudaDevice native(int device) const { return devices_[device]; }
  // Ferry's number of a CUDA device; -1 if it is none of these.
  int DeviceOf(CudaDevice native) const;

  // The device's context. Blocks while it is made, if need be.
  StatusOr<CudaContext> Get(int device);
  // Returns true if the device's context exists, be it made by Ferry or by the application.
  bool IsActive(int device) const;
  // A device whose context is active, preferably one that Ferry uses; -1: none is.
  int ActiveDevice() const;
  // The device in whose context host memory is allocated and registered: one that is in use, since
  // each context costs the GPU hundreds of MB. Returns the same device from the first call on.
  int HostDevice();

 private:
  int ActiveDeviceLocked() const;

  const CudaApi& api_;
  const std::vector<CudaDevice> devices_;
  mutable std::mutex mutex_;
  std::vector<CudaContext> contexts_;  // null: not used so far
  int host_device_ = -1;
};

// Makes a device's primary context the thread's current one while the scope lives, on top of the
// context that the application has made current.
class CudaScope {
 public:
  CudaScope(PrimaryContexts& contexts, int device);
  ~CudaScope();
  CudaScope(const CudaScope&) = delete;
  CudaScope& operator=(const CudaScope&) = delete;

  const Status& status() const { return status_; }

 private:
  const CudaApi& api_;
  Status status_;
};

}  // namespace ferry::gpu
