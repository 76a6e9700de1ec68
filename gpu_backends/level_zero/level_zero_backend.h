// The Level Zero backend: Intel's GPUs, through libze_loader, which is opened at run time.
//
// The devices of all drivers that the loader knows are numbered consecutively. Each driver has a
// context of its own, so the devices of one cannot use memory of another; pinned memory is the
// first driver's.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "common/status.h"
#include "gpu_backends/api/backend.h"
#include "gpu_backends/driver/driver.h"

namespace ferry::gpu {

struct LevelZeroBackendOptions {
  std::string library;  // path of the loader; empty: as the dynamic linker finds libze_loader.so.1
};

// kNotFound: no loader, no driver or no GPU; kUnsupported: a loader or a driver of the wrong
// version; or the error of a driver that fails to start, with its call. A driver that fails does
// not affect the others. Any thread; may block while drivers start.
StatusOr<std::unique_ptr<GpuBackend>> CreateLevelZeroBackend(
    const LevelZeroBackendOptions& options);
// Opens the driver on which the backend is built. `library_path` is
// LevelZeroBackendOptions::library; errors, threads and blocking are those of
// CreateLevelZeroBackend.
StatusOr<std::unique_ptr<Driver>> OpenLevelZeroDriver(std::string_view library_path);

}  // namespace ferry::gpu
