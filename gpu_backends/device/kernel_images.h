// The images of Ferry's own kernels (kernel_list.h): of each format whose compiler the build has
// found.
#pragma once

#include "gpu_backends/device/device_image.h"

namespace ferry::gpu {

// Returns the images of all kernels but those of double precision.
std::span<const DeviceImage> KernelImages();
// Returns the images of the kernels of double precision.
std::span<const DeviceImage> DoubleKernelImages();

// Says which compilers the build lacked, if it has no image of the format; empty if it has one.
std::string_view WhyNoKernelImages(ImageFormat format);

}  // namespace ferry::gpu
