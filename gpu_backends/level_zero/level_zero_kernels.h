// Ferry's own kernels on the devices of Level Zero.
#pragma once

#include <level_zero/ze_api.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "common/status.h"
#include "gpu_backends/driver/driver.h"
#include "gpu_backends/driver/kernel_modules.h"
#include "gpu_backends/level_zero/level_zero_device.h"

namespace ferry::gpu {

// Thread-safe.
class LevelZeroKernels {
 public:
  // Appends to a list. A thread that has the list to itself calls it once, perhaps later.
  using Append = std::function<Status(ze_command_list_handle_t list)>;

  // The devices outlive it.
  explicit LevelZeroKernels(std::span<const std::unique_ptr<LevelZeroDevice>> devices);
  LevelZeroKernels(const LevelZeroKernels&) = delete;
  LevelZeroKernels& operator=(const LevelZeroKernels&) = delete;

  Status Load(int device) { return modules_.Load(device); }
  Status Known(int device);
  // Returns a function that launches the kernel. Arguments are those of Driver::Launch.
  StatusOr<Append> Prepare(int device, Kernel kernel, uint64_t threads,
                           std::span<const KernelArgument> arguments);
  // Unloads the kernels; nothing may run on the devices any more.
  void Unload();

 private:
  static Status Available(std::span<const std::unique_ptr<LevelZeroDevice>> devices);
  Status Usable(int device) const;
  StatusOr<void*> LoadModule(int device, const DeviceImage& image) const;
  StatusOr<void*> FindKernel(int device, void* module, const char* kernel) const;

  const std::span<const std::unique_ptr<LevelZeroDevice>> devices_;
  KernelModules modules_;
  std::mutex arguments_;  // kernels are objects that keep their arguments until they are appended
};

}  // namespace ferry::gpu
