// ferryd: opens transport, data plane and GPU backend, and hands them to its life (ferryd.h).
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "common/topology/discover.h"
#include "config/environment.h"
#include "daemon/ferryd.h"
#include "daemon/placement/placement.h"
#include "daemon/progress/progress_plane.h"
#include "gpu_backends/loader/loader.h"
#include "transports/loader/loader.h"

namespace {

using ferry::Status;
using ferry::StatusOr;
using ferry::config::Options;
using ferry::daemon::DaemonParts;
using ferry::daemon::Placement;

std::string_view NameOf(ferry::gpu::StreamWords words) {
  switch (words) {
    case ferry::gpu::StreamWords::kNative:
      return "device";
    case ferry::gpu::StreamWords::kKernel:
      return "kernel";
    case ferry::gpu::StreamWords::kHelper:
      break;
  }
  return "cpu";
}

// How the NIC gets at the device's memory, or why only by staging memory.
std::string WayToNic(const ferry::gpu::DeviceInfo& info, std::string_view backend,
                     const ferry::transport::Capabilities& nic) {
  if (info.direct.network) {
    return "as host memory";
  }
  const bool by_address = nic.reaches_devices && info.ipc && !info.on_cpus;
  if (nic.takes_dmabufs && info.dmabuf) {
    return by_address ? "by dma-buf or address" : "by dma-buf";
  }
  return by_address             ? "by address"
         : info.on_cpus         ? "staged: no NIC reaches an emulated device"
         : !nic.reaches_devices ? "staged: the network has no FI_HMEM"
                                : "staged: " + std::string(backend) + " exports none of it";
}

void Describe(const ferry::gpu::DeviceInfo& info, const Placement& placement,
              ferry::control::GpuStatus* gpu) {
  gpu->set_name(info.name);
  gpu->set_pci(info.pci_address);
  gpu->set_numa_node(info.numa_node);
  gpu->set_nic(placement.nic_name());
  const ferry::topology::Device* place = placement.Find(info.pci_address);
  const std::optional<uint32_t> distance = placement.DistanceTo(place);
  gpu->set_nic_distance(distance ? static_cast<int32_t>(*distance) : -1);
  if (place != nullptr) {
    gpu->set_cpus(place->cpus.Text());
    gpu->set_numa_node(static_cast<int32_t>(place->node));
  }
  gpu->set_total_bytes(info.total_bytes);
  gpu->set_free_bytes(info.free_bytes);
  gpu->set_ipc(info.ipc);
  gpu->set_dmabuf(info.dmabuf);
  gpu->set_managed(info.managed);
  gpu->set_stream_words(std::string(NameOf(info.stream_words)));
  gpu->set_kernels(info.kernels);
  if (!info.no_kernels_because.empty()) {
    gpu->set_note("no kernels: " + info.no_kernels_because);
  }
}

// Lists, for `ferryctl gpus`, the devices of the backend in use, and the backends there are.
ferry::control::GpusReply ListGpus(ferry::gpu::GpuSource& gpus, const Options& options,
                                   const Placement& placement,
                                   const ferry::transport::Capabilities& nic) {
  ferry::control::GpusReply reply;
  const auto opened = gpus.Get();
  if (!opened.ok()) {
    reply.add_gpus()->set_note(opened.status().ToString());
    return reply;
  }
  const ferry::gpu::GpuBackend& backend = *(*opened)->backend;
  for (int device = 0; device < backend.device_count(); ++device) {
    ferry::control::GpuStatus& gpu = *reply.add_gpus();
    gpu.set_backend(std::string(backend.name()));
    gpu.set_device(static_cast<uint32_t>(device));
    const StatusOr<ferry::gpu::DeviceInfo> info = backend.GetDeviceInfo(device);
    if (info.ok()) {
      Describe(*info, placement, &gpu);
      gpu.set_to_nic(WayToNic(*info, backend.name(), nic));
    } else {
      gpu.set_note(info.status().ToString());
    }
  }
  for (const ferry::gpu::BackendReport& report : ferry::gpu::ReportBackends(options)) {
    ferry::control::GpuBackendStatus& status = *reply.add_backends();
    status.set_name(report.name);
    status.set_version(report.version);
    status.set_devices(report.devices);
    status.set_in_use(report.name == backend.name());
    status.set_note(report.why_not);
  }
  return reply;
}

StatusOr<DaemonParts> MakeParts(const Options& options, ferry::daemon::PlaneHooks hooks) {
  auto opened = ferry::gpu::OpenBackend(options);
  FERRY_RETURN_IF_ERROR(opened.status());
  const auto gpus = ferry::gpu::SourceOf(options, std::move(*opened));
  auto transport = ferry::transport::OpenTransport(ferry::transport::TransportOptionsFrom(options));
  FERRY_RETURN_IF_ERROR(transport.status());
  ferry::daemon::Nics nics;
  for (const ferry::transport::Transport* rail : (*transport)->Rails()) {
    nics.push_back(rail->Describe());
  }
  const ferry::transport::Capabilities nic = (*transport)->capabilities();
  auto placement = Placement::DecideHere(options, nics);
  FERRY_RETURN_IF_ERROR(placement.status());
  auto plane = ferry::daemon::ProgressPlane::Create(options, std::move(*transport),
                                                    std::move(hooks), *placement, gpus);
  FERRY_RETURN_IF_ERROR(plane.status());
  DaemonParts parts;
  parts.data_plane = std::move(*plane);
  parts.gpus = [gpus, options, placement = *placement, nic] {
    return ListGpus(*gpus, options, *placement, nic);
  };
  return parts;
}

}  // namespace

int main(int argc, char** argv) {
  constexpr ferry::config::Variable kTopology[] = {
      {ferry::topology::kPluginsVariable, ferry::topology::kPluginsLeftOut}};
  for (const Status& status :
       {ferry::transport::EnsureEnvironment(), ferry::config::EnsureEnvironment(kTopology)}) {
    if (!status.ok()) {
      std::fprintf(stderr, "ferryd: %s\n", status.message().c_str());
    }
  }
  return ferry::daemon::RunFerryd(argc, argv, MakeParts);
}
