#include "gpu_backends/driver/kernel_modules.h"

#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "gpu_backends/device/kernel_images.h"

namespace ferry::gpu {
namespace {

constexpr uint32_t kGroupThreads = 256;
constexpr uint64_t kMostGroups = 4096;  // enough to fill any device

bool HasImageOf(ImageFormat format) { return WhyNoKernelImages(format).empty(); }

}  // namespace

KernelModules::KernelModules(int device_count, std::initializer_list<ImageFormat> formats,
                             Status unavailable, ModuleCalls calls)
    : formats_(formats),
      unavailable_(std::move(unavailable)),
      calls_(std::move(calls)),
      devices_(static_cast<size_t>(device_count)) {}

Status KernelModules::Known(int device) {
  FERRY_RETURN_IF_ERROR(unavailable_);
  OfDevice& own = devices_[static_cast<size_t>(device)];
  {
    std::lock_guard lock(own.mutex);
    if (own.tried) {
      return own.status;
    }
  }
  if (HasImageOf(formats_.front())) {
    return {};
  }
  // Only loading code of the other formats shows if the device takes it.
  return std::any_of(formats_.begin(), formats_.end(), HasImageOf) ? Load(device) : NoImage();
}

Status KernelModules::NoImage() const {
  return Status(ErrorCode::kUnsupported,
                "this build of Ferry has no kernels for such devices: it was made without " +
                    std::string(WhyNoKernelImages(formats_.front())));
}

Status KernelModules::Load(int device) {
  FERRY_RETURN_IF_ERROR(unavailable_);
  if (std::none_of(formats_.begin(), formats_.end(), HasImageOf)) {
    return NoImage();
  }
  OfDevice& own = devices_[static_cast<size_t>(device)];
  std::lock_guard lock(own.mutex);
  if (!own.tried) {
    own.tried = true;
    own.status = LoadImages(device, KernelImages(), /*is_double=*/false);
    own.double_status =
        own.status.ok() ? LoadImages(device, DoubleKernelImages(), /*is_double=*/true) : own.status;
  }
  return own.status;
}

Status KernelModules::LoadImages(int device, std::span<const DeviceImage> images, bool is_double) {
  Status first_failure;
  for (const ImageFormat format : formats_) {
    for (const DeviceImage& image : images) {
      if (image.format != format) {
        continue;
      }
      const StatusOr<void*> module = calls_.load(device, image);
      if (module.ok()) {
        devices_[static_cast<size_t>(device)].modules.push_back(*module);
        return FindAll(device, *module, is_double);
      }
      if (first_failure.ok()) {
        first_failure = module.status();
      }
    }
  }
  if (!HasImageOf(formats_.front())) {
    return Status(ErrorCode::kUnsupported, std::string(NoImage().message()) +
                                               ", and the device does not take other code: " +
                                               std::string(first_failure.message()));
  }
  return first_failure;
}

Status KernelModules::FindAll(int device, void* module, bool is_double) {
  for (size_t i = 0; i < kKernels.size(); ++i) {
    if (IsDouble(static_cast<Kernel>(i)) != is_double) {
      continue;
    }
    const StatusOr<void*> function = calls_.find(device, module, kKernels[i].name);
    FERRY_RETURN_IF_ERROR(function.status());
    devices_[static_cast<size_t>(device)].functions[i] = *function;
  }
  return {};
}

StatusOr<void*> KernelModules::Find(int device, Kernel kernel) const {
  const OfDevice& own = devices_[static_cast<size_t>(device)];
  FERRY_RETURN_IF_ERROR(IsDouble(kernel) ? own.double_status : own.status);
  return own.functions[static_cast<size_t>(kernel)];
}

void KernelModules::Unload(const std::function<void(void* function)>& visit) {
  for (size_t device = 0; device < devices_.size(); ++device) {
    OfDevice& own = devices_[device];
    std::lock_guard lock(own.mutex);
    for (void*& function : own.functions) {
      if (function != nullptr && visit != nullptr) {
        visit(function);
      }
      function = nullptr;
    }
    for (void* const module : std::exchange(own.modules, {})) {
      calls_.unload(static_cast<int>(device), module);
    }
  }
}

KernelModules::Shape KernelModules::ShapeOf(uint64_t threads) {
  if (threads <= kGroupThreads) {
    return {1, static_cast<uint32_t>(std::max<uint64_t>(threads, 1))};
  }
  return {static_cast<uint32_t>(std::min((threads - 1) / kGroupThreads + 1, kMostGroups)),
          kGroupThreads};
}

}  // namespace ferry::gpu
