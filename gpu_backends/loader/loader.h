// Opens the GPU backends. This is the only place that names concrete backends; the daemon, libferry
// and the tools call it.
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

// Opens the backend that the options name; with "auto" the first that can be opened. Takes no
// device memory; loads the vendor's library, which may take some ten milliseconds. If a backend was
// named and cannot be opened, returns its error: kNotFound (no library, driver or device),
// kUnsupported (too old), or one about its options.
StatusOr<std::unique_ptr<GpuBackend>> OpenBackend(const config::Options& options);

// Opens a backend, like OpenBackend, in a program's process, in which a loaded library stays: where
// the program has loaded no vendor's library, and there is no device, "auto" loads none either.
// LateVendors finds libraries that the program loads later.
StatusOr<std::unique_ptr<GpuBackend>> OpenProgramsBackend(config::Options options);

// Returns a source that opens the backend when it is needed, and closes it once it has been idle
// for gpu_idle_release_ms.
std::shared_ptr<GpuSource> SourceOf(const config::Options& options,
                                    std::unique_ptr<GpuBackend> opened = nullptr);

// Returns true if that source may open a GPU here: a vendor's device, whose driver is loaded, is
// there, or the options name a backend, or a library that is there. The emulation on CPUs counts if
// it is named. `root`: where /dev and /sys are, for tests.
bool MayHaveGpus(const config::Options& options, const std::string& root = "");

struct BackendReport {
  std::string name;
  std::string version;  // empty where it could not be opened
  uint32_t devices = 0;
  std::string why_not;  // why it could not be opened
};

// Reports on all backends of this build, in the order in which "auto" tries them; opens and closes
// each.
std::vector<BackendReport> ReportBackends(const config::Options& options);

}  // namespace ferry::gpu
