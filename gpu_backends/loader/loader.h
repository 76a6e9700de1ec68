// Opens the GPU backends. The only place that names concrete ones: the daemon, libferry and the
// tools come here.
//
// Calling thread: any.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/status.h"
#include "config/options.h"
#include "gpu_backends/api/backend.h"
#include "gpu_backends/api/gpu_source.h"

namespace ferry::gpu {

// The backend that the options name; with "auto" the first that can be opened. Takes no device
// memory; loads the vendor's library, which may take some ten milliseconds. What a backend says
// that was named and cannot be opened: kNotFound (no library, driver or device), kUnsupported (too
// old), what it finds wrong with its options.
StatusOr<std::unique_ptr<GpuBackend>> OpenBackend(const config::Options& options);

// Opens it when it is needed, and closes it once nobody has needed it for gpu_idle_release_ms.
std::shared_ptr<GpuSource> SourceOf(const config::Options& options,
                                    std::unique_ptr<GpuBackend> opened = nullptr);

struct BackendReport {
  std::string name;
  std::string version;  // empty where it could not be opened
  uint32_t devices = 0;
  std::string why_not;  // it could not be
};

// Of all backends of this build, in the order in which "auto" tries them; opens and closes each.
std::vector<BackendReport> ReportBackends(const config::Options& options);

}  // namespace ferry::gpu
