// One GPU of a Level Zero driver.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "common/status.h"
#include "gpu_backends/api/types.h"
#include "gpu_backends/level_zero/level_zero_context.h"

namespace ferry::gpu {

// Thread-safe. The context outlives it.
class LevelZeroDevice {
 public:
  // Finds every GPU of the context's driver; it may have none. May block for a second on a device
  // that does not do what its driver says.
  static StatusOr<std::vector<std::unique_ptr<LevelZeroDevice>>> FindAll(LevelZeroContext* context);

  LevelZeroContext& context() const { return *context_; }
  ze_device_handle_t handle() const { return handle_; }
  const DeviceInfo& info() const { return info_; }
  // Returns true if the handle names this device or a part of it.
  bool Has(ze_device_handle_t handle) const;
  // Returns true if allocations of that size need the driver's relaxed limits.
  bool ExceedsLimit(uint64_t size_bytes) const { return size_bytes > largest_allocation_bytes_; }

  // Returns true if the device's command lists take kernels.
  bool runs_kernels() const { return runs_kernels_; }
  // Returns true if kernels reach registered host memory, by import or because they reach all
  // memory of the system.
  bool reaches_registered() const { return context_->has_imports() || reaches_system_; }
  // Returns true if kernels can change host memory by atomic operations while CPUs do.
  bool has_host_atomics() const { return has_host_atomics_; }

  // Fails while the device is lost.
  Status Check() const;
  // How often Check has failed. Work that was begun before the last failure never ends, even if the
  // device is reset.
  uint64_t losses() const { return losses_.load(); }
  // Returns true if the device has a copy engine: a group of queues that only copy. Its copies take
  // no part of the device from kernels.
  bool has_copy_engine() const { return copies_.count != 0; }
  // Makes an asynchronous immediate list; on the copy engine, if there is one and `copies` is true.
  StatusOr<ze_command_list_handle_t> CreateList(bool copies = false);

 private:
  LevelZeroDevice(LevelZeroContext* context, ze_device_handle_t handle)
      : context_(context), handle_(handle) {}
  Status Describe(const ze_device_properties_t& properties);
  Status DescribeMemory(const ze_device_properties_t& properties);
  Status FindSubDevices();
  Status ChooseQueueGroup();
  void FindPciAddress();
  // Returns true if a word that the device writes ends its own wait for it.
  bool WordsWork();

  LevelZeroContext* const context_;
  const ze_device_handle_t handle_;
  DeviceInfo info_;
  uint64_t largest_allocation_bytes_ = 0;
  std::vector<ze_device_handle_t> sub_devices_;
  struct Queues {
    uint32_t group = 0;
    uint32_t count = 0;
    std::atomic<uint32_t> next{0};
  };
  Queues queues_;  // for all that the device can do
  Queues copies_;  // that only copy
  bool runs_kernels_ = false;
  bool reaches_system_ = false;
  bool has_host_atomics_ = false;
  mutable std::atomic<uint64_t> losses_{0};
};

}  // namespace ferry::gpu
