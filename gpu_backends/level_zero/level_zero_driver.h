// Level Zero as a Driver: Intel's GPUs, through the loader.
//
// The devices of all drivers that the loader knows are numbered consecutively. Each driver has a
// context of its own, so the devices of one cannot use memory of another; pinned memory is the
// first driver's.
#pragma once

#include <memory>
#include <string_view>

#include "common/status.h"
#include "gpu_backends/driver/driver.h"

namespace ferry::gpu {

// `library_path` as in LevelZeroBackendOptions. kNotFound: no loader, no driver or no GPU;
// kUnsupported: a loader or a driver of the wrong version; or the error of a driver that fails to
// start, with its call. A driver that fails does not affect the others. May block while drivers
// start. Any thread.
StatusOr<std::unique_ptr<Driver>> OpenLevelZeroDriver(std::string_view library_path);

}  // namespace ferry::gpu
