// HIP as DriverBackend sees it.
//
// HIP knows a current device and a last error for each thread. Both belong to the application, so
// each call leaves them as they were.
#pragma once

#include <memory>
#include <string_view>

#include "common/status.h"
#include "gpu_backends/driver/driver.h"

namespace ferry::gpu {

// `library` and the errors are those of CreateHipBackend.
StatusOr<std::unique_ptr<Driver>> OpenHipDriver(std::string_view library);

}  // namespace ferry::gpu
