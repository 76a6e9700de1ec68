#include "client/memory/buffer_looks.h"

#include <string>

#include "client/memory/buffer_words.h"

namespace ferry::client {

bool BufferLooks::IsPlainByLook(const void* pointer) {
  if (const OwnRegion region = state_.regions.Around(pointer); region) {
    return !region.by_stream;
  }
  if (state_.malloc_heap.Contains(pointer)) {
    return true;
  }
  const bool has_vendor = state_.gpu.HasVendor();
  if (!state_.regions.addresses().MayHaveVendor()) {
    return true;
  }
  if (has_vendor) {
    const gpu::PointerInfo info = backend()->Identify(pointer);
    if (info.kind != gpu::PointerKind::kUnknown) {
      return !IsDeviceOnly(info);
    }
  }
  // Memory that no backend knows may be device memory that has been freed, or of a vendor without
  // a backend.
  return state_.readable.Contains(pointer);
}

Status BufferLooks::LookCloser(const void* pointer, uint64_t size_bytes) {
  const OwnRegion region = state_.regions.Around(pointer);
  if (region && !region.adopted) {
    return region.by_stream ? CheckEnd(region, pointer, size_bytes) : Status();
  }
  if (size_bytes == 0 || (!region && state_.malloc_heap.Contains(pointer))) {
    return {};
  }
  const bool has_vendor = state_.gpu.HasVendor();
  if (!state_.regions.addresses().MayHaveVendor()) {
    return {};
  }
  if (has_vendor) {
    return adopted_.LookAt(pointer, size_bytes);
  }
  if (state_.readable.Contains(pointer)) {
    return {};
  }
  const std::string why_no_vendor = state_.gpu.WhyNoVendor();
  return {ErrorCode::kInvalidBuffer,
          "CPUs reach no memory at " + AddressText(pointer) +
              (why_no_vendor.empty()
                   ? std::string("; is it a device's?")
                   : "; if it is a device's: its vendor's library cannot be used here: " +
                         why_no_vendor)};
}

int BufferLooks::DeviceByStream(const void* pointer) {
  if (IsPlain(pointer)) {
    return -1;
  }
  (void)LookCloser(pointer, 1);  // a call with the whole buffer says what is wrong with it
  const OwnRegion region = state_.regions.Around(pointer);
  return region.by_stream ? region.device : IsPlain(pointer) ? -1 : 0;
}

shm::Location BufferLooks::LocateForGood(const void* pointer, uint64_t size_bytes) {
  if (LookAt(pointer, size_bytes).ok() && state_.regions.Around(pointer).adopted) {
    adopted_.NoteLocated(pointer, size_bytes);
  }
  shm::Location where = state_.regions.Find(pointer, size_bytes);
  if (where.region == 0 && !state_.regions.addresses().IsPlain(pointer) &&
      (IsByStream(pointer) || IsOutOfKernelsReach(pointer, size_bytes))) {
    where.flags |= shm::kLocationByStream;
  }
  return where;
}

// Memory that drivers allocate themselves often consists of pages that have no place in the
// kernel's lists. Managed memory may be wherever the driver has it just now.
bool BufferLooks::IsHiddenByDriver(const void* pointer, uint64_t size_bytes) {
  if (size_bytes == 0 || state_.regions.Around(pointer) || state_.malloc_heap.Contains(pointer) ||
      !state_.gpu.HasVendor()) {
    return false;
  }
  const gpu::PointerInfo info = backend()->Identify(pointer);
  return !info.failure.ok() ||  // it may be anything, and a bounce buffer serves for all
         info.kind == gpu::PointerKind::kManaged || info.kind == gpu::PointerKind::kDevice ||
         (info.kind == gpu::PointerKind::kPinned &&
          !(IsReachedByKernel(pointer) &&
            IsReachedByKernel(static_cast<const std::byte*>(pointer) + size_bytes - 1)));
}

bool BufferLooks::IsRegionByStream(const void* pointer) const {
  return state_.regions.Around(pointer).by_stream;
}

bool BufferLooks::IsDevice(const void* pointer) const {
  const gpu::GpuBackend* const gpu = backend();
  return gpu != nullptr && gpu->Identify(pointer).kind == gpu::PointerKind::kDevice;
}

}  // namespace ferry::client
