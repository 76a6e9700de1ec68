#include "gpu_backends/loader/loader.h"

#include "gpu_backends/host/host_backend.h"

namespace ferry::gpu {
namespace {

HostBackendOptions HostOptions(const config::Options& options) {
  HostBackendOptions host;
  host.device_count = static_cast<int>(options.host_gpu_count);
  host.device_memory_bytes = options.host_gpu_memory_bytes;
  host.link = {.h2d_mb_per_s = options.host_link_h2d_mb_per_s,
               .d2h_mb_per_s = options.host_link_d2h_mb_per_s,
               .pageable_h2d_mb_per_s = options.host_link_pageable_h2d_mb_per_s,
               .pageable_d2h_mb_per_s = options.host_link_pageable_d2h_mb_per_s,
               .d2d_mb_per_s = options.host_link_d2d_mb_per_s,
               .latency_us = options.host_link_latency_us,
               .pageable_latency_us = options.host_link_pageable_latency_us,
               .engines = options.host_link_engines,
               .guard = options.host_link_guard != 0};
  host.costs = {.launch_us = options.host_launch_us, .synchronize_us = options.host_synchronize_us};
  return host;
}

}  // namespace

StatusOr<std::unique_ptr<GpuBackend>> OpenBackend(const config::Options& options) {
  if (options.gpu_backend != "host") {
    return Status(ErrorCode::kConfiguration,
                  "gpu_backend is '" + options.gpu_backend + "'; this build has only 'host'");
  }
  return CreateHostBackend(HostOptions(options));
}

}  // namespace ferry::gpu
