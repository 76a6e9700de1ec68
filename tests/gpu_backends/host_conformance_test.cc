// Runs the conformance suite on the host backend, as configured by default and with several
// devices.
#include "gpu_backends/host/host_backend.h"
#include "tests/conformance/gpu_backend_conformance.h"

namespace ferry::gpu {

std::vector<ConformanceBackend> ConformanceBackends() {
  HostBackendOptions three_devices;
  three_devices.device_count = 3;
  three_devices.device_memory_bytes = 8 << 20;
  three_devices.wait_yield_ns = 0;  // value waits sleep at once
  return {{"Host", [] { return CreateHostBackend({}); }},
          {"HostThreeDevices", [three_devices] { return CreateHostBackend(three_devices); }}};
}

}  // namespace ferry::gpu
