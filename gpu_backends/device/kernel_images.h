// The images of Ferry's own kernels (kernel_list.h). Empty where the build found no compiler for
// them.
#pragma once

#include "gpu_backends/device/device_image.h"

namespace ferry::gpu {

// All kernels but those of double precision.
std::span<const DeviceImage> KernelImages();
// The kernels of double precision.
std::span<const DeviceImage> DoubleKernelImages();

}  // namespace ferry::gpu
