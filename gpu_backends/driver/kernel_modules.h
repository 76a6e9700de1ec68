// The vendor's modules with Ferry's own kernels (gpu_backends/device): for each device one module
// of double precision and one for the other kernels, loaded when first needed.
#pragma once

#include <array>
#include <functional>
#include <initializer_list>
#include <mutex>
#include <string_view>
#include <vector>

#include "common/status.h"
#include "gpu_backends/device/device_image.h"
#include "gpu_backends/device/kernel_list.h"

namespace ferry::gpu {

// The vendor's calls, on one device: modules and functions are its own objects.
struct ModuleCalls {
  std::function<StatusOr<void*>(int device, const DeviceImage& image)> load;
  std::function<StatusOr<void*>(int device, void* module, const char* kernel)> find;
  std::function<void(int device, void* module)> unload;
};

// Thread-safe.
class KernelModules {
 public:
  // Images of `formats` are tried in that order until one loads. `unavailable`: why the vendor
  // cannot load any; kOk otherwise.
  KernelModules(int device_count, std::initializer_list<ImageFormat> formats, Status unavailable,
                ModuleCalls calls);
  KernelModules(const KernelModules&) = delete;
  KernelModules& operator=(const KernelModules&) = delete;

  // The first call loads all kernels of a device at once: to load one, a vendor may wait for the
  // device, which may itself be waiting for later work. Returns the result of the first call; the
  // kernels of double precision may still be missing.
  Status Load(int device);
  // Returns the result of Load or, before it, the expected one as far as is known. Loads the
  // kernels, if the build has no code of the first format, but some of another that the device may
  // take.
  Status Known(int device);
  // Returns the vendor's function. Only after Load has returned kOk. kUnsupported: the device has
  // no double precision.
  StatusOr<void*> Find(int device, Kernel kernel) const;
  // Calls visit(function) for each loaded function, then unloads all modules. The driver calls it
  // at its end.
  void Unload(const std::function<void(void* function)>& visit = nullptr);

  // The division of a launch: a number of groups, and threads in each.
  struct Shape {
    uint32_t groups;
    uint32_t group_threads;
  };
  static Shape ShapeOf(uint64_t threads);

 private:
  struct OfDevice {
    std::mutex mutex;
    bool tried = false;
    Status status;         // of all kernels but those of double precision
    Status double_status;  // of those of double precision
    std::vector<void*> modules;
    std::array<void*, kKernels.size()> functions{};
  };

  // Returns the error that the build has no kernels for such devices.
  Status NoImage() const;
  Status LoadImages(int device, std::span<const DeviceImage> images, bool is_double);
  Status FindAll(int device, void* module, bool is_double);

  const std::vector<ImageFormat> formats_;
  const Status unavailable_;
  const ModuleCalls calls_;
  std::vector<OfDevice> devices_;
};

}  // namespace ferry::gpu
