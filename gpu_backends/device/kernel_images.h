// The images of Ferry's own kernels (kernel_list.h): of each format whose compiler the build has
// found.
#pragma once

#include "gpu_backends/device/device_image.h"

namespace ferry::gpu {

// All kernels but those of double precision.
std::span<const DeviceImage> KernelImages();
// The kernels of double precision.
std::span<const DeviceImage> DoubleKernelImages();

// Which compilers the build lacked, if it has no image of the format; empty if it has one.
std::string_view WhyNoKernelImages(ImageFormat format);

}  // namespace ferry::gpu
