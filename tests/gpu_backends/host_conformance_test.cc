// Runs the conformance suite on the host backend: as configured by default, with several devices,
// and over emulated links.
#include "gpu_backends/host/host_backend.h"
#include "tests/conformance/gpu_backend_conformance.h"

namespace ferry::gpu {

std::vector<ConformanceBackend> ConformanceBackends() {
  HostBackendOptions three_devices;
  three_devices.device_count = 3;
  three_devices.device_memory_bytes = 8 << 20;
  three_devices.wait_yield_ns = 0;  // value waits sleep at once
  HostBackendOptions shared_engine;
  shared_engine.link = PaperLink(1);
  HostBackendOptions two_engines = three_devices;
  two_engines.link = PaperLink(2);
  return {{"Host", [] { return CreateHostBackend({}); }},
          {"HostThreeDevices", [=] { return CreateHostBackend(three_devices); }},
          {"HostLinkSharedEngine", [=] { return CreateHostBackend(shared_engine); }},
          {"HostLinkTwoEngines", [=] { return CreateHostBackend(two_engines); }}};
}

}  // namespace ferry::gpu
