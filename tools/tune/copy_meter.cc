#include "tools/tune/copy_meter.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "tools/tune/samples.h"

namespace ferry::tools {
namespace {

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

}  // namespace

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

}  // namespace ferry::tools
