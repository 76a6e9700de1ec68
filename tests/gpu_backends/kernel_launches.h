// Launches of Ferry's own kernels, by every vendor's driver. A test links
// //tests/gpu_backends:kernel_launches and defines KernelDrivers().
#pragma once

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "common/status.h"
#include "gpu_backends/device/device_image.h"
#include "gpu_backends/driver/driver.h"

namespace ferry::gpu {

struct KernelDriver {
  std::string name;
  std::function<StatusOr<std::unique_ptr<Driver>>()> open;
  ImageFormat format;  // of the kernels that it loads
};

// For gtest.
inline std::ostream& operator<<(std::ostream& stream, const KernelDriver& driver) {
  return stream << driver.name;
}

// Over stand-ins that run kernels.
std::vector<KernelDriver> KernelDrivers();

}  // namespace ferry::gpu
