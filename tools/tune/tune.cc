#include "tools/tune/tune.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "config/environment.h"
#include "gpu_backends/api/backend.h"
#include "gpu_backends/loader/loader.h"
#include "tools/display/new_file.h"
#include "transports/loader/loader.h"

namespace ferry::tools {
namespace {

constexpr uint64_t kShortestBytes = 16;  // what it takes to start at all
constexpr uint64_t kSmallestBytes = 4096;
constexpr uint64_t kLargestBytes = 4ULL << 20;
constexpr uint64_t kMostBytes = 1ULL << 30;

StatusOr<NetworkCurve> MeasureReads(const config::Options& options, const TunePlan& plan,
                                    std::span<const uint64_t> sizes) {
  transport::TransportOptions transport = transport::TransportOptionsFrom(options);
  transport.port = 0;  // a daemon may have the other
  if (!plan.peer.empty()) {
    const StatusOr<ServedMemory> memory = ServedMemoryFrom(plan.peer);
    FERRY_RETURN_IF_ERROR(memory.status());
    return MeasureNetwork(transport, *memory, sizes, plan.repetitions);
  }
  const auto server = MemoryServer::Start(transport, sizes.back());
  FERRY_RETURN_IF_ERROR(server.status());
  return MeasureNetwork(transport, (*server)->memory(), sizes, plan.repetitions);
}

// Gives memory back to its backend.
class Buffer {
 public:
  Buffer(gpu::GpuBackend* backend, void* memory) : backend_(backend), memory_(memory) {}
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { (void)backend_->Free(memory_); }
  void* get() const { return memory_; }

 private:
  gpu::GpuBackend* backend_;
  void* memory_;
};

// Medians of `repetitions` (1 or more) copies of each size (not 0). Takes three buffers of the
// largest size, and gives them back. kInvalidArgument for a device that the backend does not have;
// else the backend's error.
StatusOr<CopyCurves> MeasureCopies(gpu::GpuBackend& backend, int device,
                                   std::span<const uint64_t> sizes, uint32_t repetitions) {
  if (device < 0 || device >= backend.device_count()) {
    return Status(ErrorCode::kInvalidArgument, "there is no device " + std::to_string(device) +
                                                   "; the " + std::string(backend.name()) +
                                                   " backend has devices 0 to " +
                                                   std::to_string(backend.device_count() - 1));
  }
  const uint64_t largest = *std::max_element(sizes.begin(), sizes.end());
  const StatusOr<void*> device_memory = backend.AllocateDevice(device, largest);
  FERRY_RETURN_IF_ERROR(device_memory.status());
  const Buffer on_device(&backend, *device_memory);
  const StatusOr<void*> pinned_memory = backend.AllocatePinned(largest);
  FERRY_RETURN_IF_ERROR(pinned_memory.status());
  const Buffer pinned(&backend, *pinned_memory);
  std::vector<std::byte> pageable(largest, std::byte{1});
  const StatusOr<std::unique_ptr<gpu::Stream>> stream = backend.CreateStream(device);
  FERRY_RETURN_IF_ERROR(stream.status());
  CopyCurves curves;
  const auto measure = [&](Curve* curve, void* destination, const void* source) -> Status {
    StatusOr<Curve> measured =
        MeasureCurve(sizes, repetitions, [&](uint64_t size_bytes, uint32_t count) -> Status {
          for (uint32_t i = 0; i < count; ++i) {
            FERRY_RETURN_IF_ERROR((*stream)->CopyAsync(destination, source, size_bytes));
          }
          return (*stream)->Synchronize();
        });
    FERRY_RETURN_IF_ERROR(measured.status());
    *curve = std::move(*measured);
    return {};
  };
  FERRY_RETURN_IF_ERROR(measure(&curves.to_host, pinned.get(), on_device.get()));
  FERRY_RETURN_IF_ERROR(measure(&curves.to_device, on_device.get(), pinned.get()));
  FERRY_RETURN_IF_ERROR(measure(&curves.pageable_to_host, pageable.data(), on_device.get()));
  FERRY_RETURN_IF_ERROR(measure(&curves.pageable_to_device, on_device.get(), pageable.data()));
  return curves;
}

}  // namespace

StatusOr<std::vector<uint64_t>> SizesToMeasure(const TunePlan& plan) {
  std::vector<uint64_t> sizes = plan.sizes;
  if (sizes.empty()) {
    sizes.push_back(kShortestBytes);
    for (uint64_t size = kSmallestBytes; size <= kLargestBytes; size *= 2) {
      sizes.push_back(size);
    }
  }
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  if (sizes.size() < 2 || sizes.front() == 0 || sizes.back() > kMostBytes) {
    return Status(ErrorCode::kInvalidArgument,
                  "--sizes takes two sizes or more, of 1 byte to 1 GiB each, such as 4K,64K,1M");
  }
  return sizes;
}

StatusOr<TuneResult> Measure(const config::Options& options, const TunePlan& plan) {
  const StatusOr<std::vector<uint64_t>> sizes = SizesToMeasure(plan);
  FERRY_RETURN_IF_ERROR(sizes.status());
  const StatusOr<std::unique_ptr<gpu::GpuBackend>> backend = gpu::OpenBackend(options);
  FERRY_RETURN_IF_ERROR(backend.status());
  StatusOr<CopyCurves> copies = MeasureCopies(**backend, plan.device, *sizes, plan.repetitions);
  FERRY_RETURN_IF_ERROR(copies.status());
  StatusOr<gpu::DeviceInfo> device = (*backend)->GetDeviceInfo(plan.device);
  FERRY_RETURN_IF_ERROR(device.status());
  StatusOr<NetworkCurve> network = MeasureReads(options, plan, *sizes);
  FERRY_RETURN_IF_ERROR(network.status());
  TuneResult result{.host = config::HostName(),
                    .backend = std::string((*backend)->name()),
                    .device = plan.device,
                    .device_info = std::move(*device),
                    .copies = std::move(*copies),
                    .network = std::move(*network),
                    .loopback = plan.peer.empty(),
                    .sizes = *sizes,
                    .repetitions = plan.repetitions,
                    .longest_block_bytes = options.pipeline_block_bytes,
                    .choice = {}};
  result.choice =
      ChoosePipeline(result.stages(), {.smallest_bytes = std::max(kSmallestBytes, sizes->front()),
                                       .largest_bytes = sizes->back(),
                                       .longest_block_bytes = options.pipeline_block_bytes});
  return result;
}

StatusOr<TuneResult> MeasureAndWrite(const config::Options& options, const TunePlan& plan) {
  StatusOr<std::optional<NewFile>> fragment = FileIfNamed(plan.output, plan.force);
  FERRY_RETURN_IF_ERROR(fragment.status());
  StatusOr<std::optional<NewFile>> plot = FileIfNamed(plan.plot, plan.force);
  FERRY_RETURN_IF_ERROR(plot.status());
  StatusOr<TuneResult> result = Measure(options, plan);
  FERRY_RETURN_IF_ERROR(result.status());
  if (fragment->has_value()) {
    FERRY_RETURN_IF_ERROR((*fragment)->Commit(TuneFragment(*result)));
  }
  if (plot->has_value()) {
    FERRY_RETURN_IF_ERROR((*plot)->Commit(TunePlot(*result)));
  }
  return result;
}

StatusOr<std::unique_ptr<MemoryServer>> Serve(const config::Options& options,
                                              const TunePlan& plan) {
  const StatusOr<std::vector<uint64_t>> sizes = SizesToMeasure(plan);
  FERRY_RETURN_IF_ERROR(sizes.status());
  return MemoryServer::Start(transport::TransportOptionsFrom(options), sizes->back());
}

}  // namespace ferry::tools
