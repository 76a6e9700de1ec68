// ferryd: names the concrete transport, data plane and GPU backends, and hands them to its life
// (ferryd.h).
#include <array>
#include <optional>
#include <utility>

#include "daemon/ferryd.h"
#include "daemon/placement/placement.h"
#include "daemon/progress/progress_plane.h"
#include "gpu_backends/host/host_backend.h"
#include "transports/ofi/environment.h"
#include "transports/ofi/ofi_transport.h"

namespace {

using ferry::ErrorCode;
using ferry::Status;
using ferry::StatusOr;
using ferry::config::Options;
using ferry::daemon::DaemonParts;
using ferry::daemon::Placement;

StatusOr<std::unique_ptr<ferry::transport::Transport>> OpenTransport(const Options& options) {
  ferry::transport::TransportOptions transport;
  transport.provider = options.provider;
  transport.source_address = options.fabric_address;
  transport.port = static_cast<uint16_t>(options.fabric_port);
  transport.post_timeout_ns = options.operation_timeout_ms * 1'000'000;
  return ferry::transport::CreateOfiTransport(transport);
}

// What `ferryctl gpus` shows: the devices of the backend in use.
std::vector<ferry::control::GpuStatus> ListGpus(const ferry::gpu::GpuBackend& backend,
                                                const Placement& placement) {
  std::vector<ferry::control::GpuStatus> gpus;
  for (int device = 0; device < backend.device_count(); ++device) {
    ferry::control::GpuStatus& gpu = gpus.emplace_back();
    gpu.set_backend(std::string(backend.name()));
    gpu.set_device(static_cast<uint32_t>(device));
    const StatusOr<ferry::gpu::DeviceInfo> info = backend.GetDeviceInfo(device);
    if (!info.ok()) {
      gpu.set_note(info.status().ToString());
      continue;
    }
    gpu.set_name(info->name);
    gpu.set_pci(info->pci_address);
    gpu.set_numa_node(info->numa_node);
    gpu.set_nic(placement.nic_name());
    const ferry::topology::Device* place = placement.Find(info->pci_address);
    const std::optional<uint32_t> distance = placement.DistanceTo(place);
    gpu.set_nic_distance(distance ? static_cast<int32_t>(*distance) : -1);
    if (place != nullptr) {
      gpu.set_cpus(place->cpus.Text());
      gpu.set_numa_node(static_cast<int32_t>(place->node));
    }
    gpu.set_total_bytes(info->total_bytes);
  }
  return gpus;
}

StatusOr<std::shared_ptr<ferry::gpu::GpuBackend>> OpenBackend(const Options& options) {
  if (options.gpu_backend != "host") {
    return Status(ErrorCode::kConfiguration,
                  "gpu_backend is '" + options.gpu_backend + "'; this build has only 'host'");
  }
  ferry::gpu::HostBackendOptions host;
  host.device_count = static_cast<int>(options.host_gpu_count);
  host.device_memory_bytes = options.host_gpu_memory_bytes;
  host.link = {.h2d_mb_per_s = options.host_link_h2d_mb_per_s,
               .d2h_mb_per_s = options.host_link_d2h_mb_per_s,
               .pageable_h2d_mb_per_s = options.host_link_pageable_h2d_mb_per_s,
               .pageable_d2h_mb_per_s = options.host_link_pageable_d2h_mb_per_s,
               .d2d_mb_per_s = options.host_link_d2d_mb_per_s,
               .latency_us = options.host_link_latency_us,
               .pageable_latency_us = options.host_link_pageable_latency_us,
               .engines = options.host_link_engines};
  auto backend = ferry::gpu::CreateHostBackend(host);
  FERRY_RETURN_IF_ERROR(backend.status());
  return std::shared_ptr<ferry::gpu::GpuBackend>(std::move(*backend));
}

StatusOr<DaemonParts> MakeParts(const Options& options, ferry::daemon::PlaneHooks hooks) {
  auto backend = OpenBackend(options);
  FERRY_RETURN_IF_ERROR(backend.status());
  auto transport = OpenTransport(options);
  FERRY_RETURN_IF_ERROR(transport.status());
  auto placement = Placement::DecideHere(options, (*transport)->Describe());
  FERRY_RETURN_IF_ERROR(placement.status());
  auto plane = ferry::daemon::ProgressPlane::Create(options, std::move(*transport),
                                                    std::move(hooks), *placement);
  FERRY_RETURN_IF_ERROR(plane.status());
  DaemonParts parts;
  parts.data_plane = std::move(*plane);
  parts.gpus = [backend = *backend, placement = *placement] {
    return ListGpus(*backend, *placement);
  };
  return parts;
}

}  // namespace

int main(int argc, char** argv) {
  std::array<ferry::daemon::Variable, ferry::transport::kRequiredEnvironment.size()> environment{};
  for (size_t i = 0; i < environment.size(); ++i) {
    environment[i] = {ferry::transport::kRequiredEnvironment[i].name,
                      ferry::transport::kRequiredEnvironment[i].value};
  }
  ferry::daemon::EnsureEnvironment(argv, environment);
  return ferry::daemon::RunFerryd(argc, argv, MakeParts);
}
