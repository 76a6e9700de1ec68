#include "client/core/memory.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "shm/layout/session_layout.h"

namespace ferry::client {
namespace {

constexpr uint64_t kSmallBounceBytes = 128 << 10;

}  // namespace

Memory::Memory(uint64_t heap_bytes, gpu::BackendRegistry* backends, AttachConnection* attach,
               ControlLibrary* control)
    : heap_bytes_(heap_bytes), backends_(backends), attach_(attach), control_(control) {}

Memory::~Memory() {
  for (const auto& [pointer, allocation] : device_) {
    (void)backend()->Free(const_cast<void*>(pointer));
  }
}

gpu::GpuBackend* Memory::backend() const {
  const std::vector<gpu::GpuBackend*> all = backends_->List();
  return all.empty() ? nullptr : all.front();
}

Status Memory::Announce(uint32_t region, uint64_t size_bytes, int fd, uint32_t kind, int device,
                        uint64_t allocation_id) {
  FERRY_RETURN_IF_ERROR(attach_->SendRegion(region, size_bytes, fd));
  ferry_control_region description{};
  description.region = region;
  description.kind = kind;
  description.device = static_cast<uint32_t>(device);
  description.size_bytes = size_bytes;
  description.allocation_id = allocation_id;
  return control_->RegisterRegion(description);
}

Status Memory::MakeHeap() {
  StatusOr<UniqueFd> fd = shm::CreateSegment("ferry-heap", heap_bytes_);
  FERRY_RETURN_IF_ERROR(fd.status());
  StatusOr<shm::Mapping> mapping = shm::MapSegment(fd->get(), 0);
  FERRY_RETURN_IF_ERROR(mapping.status());
  const uint32_t region = next_region_++;
  FERRY_RETURN_IF_ERROR(Announce(region, mapping->size_bytes(), fd->get(),
                                 FERRY_CONTROL_REGION_HOST_HEAP, 0, region));
  heap_ = std::move(*mapping);
  heap_pieces_ = OffsetAllocator(heap_.size_bytes());
  regions_.Add({heap_.base(), heap_.size_bytes(), region});
  return {};
}

StatusOr<void*> Memory::AllocateHost(uint64_t size_bytes) {
  if (!heap_.valid()) {
    FERRY_RETURN_IF_ERROR(MakeHeap());
  }
  const uint64_t offset = heap_pieces_.Allocate(size_bytes);
  if (offset == OffsetAllocator::kNone) {
    return Status(ErrorCode::kOutOfMemory,
                  std::to_string(size_bytes) + " bytes asked for, " +
                      std::to_string(heap_pieces_.free_bytes()) + " of " +
                      std::to_string(heap_.size_bytes()) +
                      " free in the heap, in pieces; raise heap_bytes (FERRY_HEAP_BYTES)");
  }
  return static_cast<void*>(heap_.base() + offset);
}

StatusOr<void*> Memory::AllocateDevice(uint64_t size_bytes, int device) {
  gpu::GpuBackend* gpu = backend();
  if (gpu == nullptr) {
    return Status(ErrorCode::kUnsupported, "no GPU backend is in use");
  }
  // Whole pages: that is what other processes map.
  StatusOr<void*> pointer =
      gpu->AllocateDevice(device, shm::RoundUpToPage(std::max<uint64_t>(size_bytes, 1)));
  FERRY_RETURN_IF_ERROR(pointer.status());
  StatusOr<gpu::IpcHandle> handle = gpu->ExportIpc(*pointer);
  Status status = handle.status();
  uint32_t region = next_region_++;
  if (status.ok()) {
    status = Announce(region, handle->size_bytes, handle->fd.get(), FERRY_CONTROL_REGION_DEVICE,
                      device, handle->allocation_id);
  }
  if (!status.ok()) {
    (void)gpu->Free(*pointer);
    return status;
  }
  std::memset(*pointer, 0, handle->size_bytes);
  device_[*pointer] = {region, size_bytes};
  regions_.Add({static_cast<std::byte*>(*pointer), handle->size_bytes, region});
  return *pointer;
}

StatusOr<void*> Memory::Allocate(uint64_t size_bytes, MemoryKind kind, int device) {
  std::lock_guard lock(mutex_);
  if (kind == MemoryKind::kDevice) {
    return AllocateDevice(size_bytes, device);
  }
  StatusOr<void*> pointer = AllocateHost(size_bytes);
  if (!pointer.ok()) {
    return pointer;
  }
  std::memset(*pointer, 0, size_bytes);  // and so its pages are this rank's from now on
  if (kind == MemoryKind::kHost) {
    return pointer;
  }
  if (gpu::GpuBackend* gpu = backend(); gpu != nullptr) {
    if (Status status = gpu->RegisterHostMemory(*pointer, std::max<uint64_t>(size_bytes, 1));
        !status.ok()) {
      heap_pieces_.Free(static_cast<uint64_t>(static_cast<std::byte*>(*pointer) - heap_.base()));
      return status;
    }
  }
  pinned_[*pointer] = size_bytes;
  return pointer;
}

Status Memory::Free(void* pointer) {
  std::lock_guard lock(mutex_);
  if (const auto found = device_.find(pointer); found != device_.end()) {
    const uint32_t region = found->second.region;
    // The daemon lets go of the memory before it is freed; if it is dead, it has.
    if (Status status = control_->DeregisterRegion(region, found->second.size_bytes);
        !status.ok() && status.code() != ErrorCode::kDaemonDied) {
      return status;
    }
    regions_.Remove(region);
    device_.erase(found);
    return backend()->Free(pointer);
  }
  if (const auto found = pinned_.find(pointer); found != pinned_.end()) {
    if (gpu::GpuBackend* gpu = backend(); gpu != nullptr) {
      FERRY_RETURN_IF_ERROR(gpu->UnregisterHostMemory(pointer));
    }
    pinned_.erase(found);
  }
  const auto offset = static_cast<uint64_t>(static_cast<std::byte*>(pointer) - heap_.base());
  if (registered_.count(pointer) != 0) {
    return {ErrorCode::kInvalidBuffer,
            "ferry_free was given memory of the application's own that is registered; call "
            "ferry_deregister"};
  }
  if (!heap_.valid() || heap_pieces_.Free(offset) == 0) {
    return {ErrorCode::kInvalidBuffer,
            "ferry_free was given an address that ferry_alloc did not "
            "return, or that is free already"};
  }
  return {};
}

uint64_t Memory::AllocationSize(const void* pointer) const {
  std::lock_guard lock(mutex_);
  if (const auto found = device_.find(pointer); found != device_.end()) {
    return found->second.size_bytes;
  }
  return heap_.valid() ? heap_pieces_.SizeOf(static_cast<uint64_t>(
                             static_cast<const std::byte*>(pointer) - heap_.base()))
                       : 0;
}

uint64_t Memory::RegistrationSize(const void* pointer) const {
  std::lock_guard lock(mutex_);
  const auto found = registered_.find(pointer);
  return found == registered_.end() ? 0 : found->second;
}

void* Memory::AllocateBounce(uint64_t size_bytes, bool must) {
  std::lock_guard lock(mutex_);
  const uint64_t spare = heap_.valid() ? heap_pieces_.free_bytes() : heap_bytes_;
  if (!must &&
      (heap_refused_ || (size_bytes > kSmallBounceBytes && spare < heap_bytes_ / 2 + size_bytes))) {
    return nullptr;
  }
  StatusOr<void*> pointer = AllocateHost(size_bytes);
  heap_refused_ = !heap_.valid();  // a message should not ask the daemon again
  return pointer.ok() ? *pointer : nullptr;
}

void Memory::FreeBounce(void* pointer) { (void)Free(pointer); }

Status Memory::Register(void* pointer, uint64_t size_bytes) {
  std::lock_guard lock(mutex_);
  auto* begin = static_cast<std::byte*>(pointer);
  const auto after = registered_.upper_bound(pointer);
  const bool overlaps_next = after != registered_.end() &&
                             static_cast<const std::byte*>(after->first) < begin + size_bytes;
  const bool overlaps_previous =
      after != registered_.begin() &&
      static_cast<const std::byte*>(std::prev(after)->first) + std::prev(after)->second > begin;
  if (overlaps_next || overlaps_previous) {
    return {ErrorCode::kAlreadyExists,
            "the range overlaps one that is registered already; deregister that first"};
  }
  if (regions_.Find(pointer, 1).region != 0) {
    return {ErrorCode::kAlreadyExists,
            "ferry_alloc returned this memory, so it needs no registration"};
  }
  if (gpu::GpuBackend* gpu = backend(); gpu != nullptr) {
    FERRY_RETURN_IF_ERROR(gpu->RegisterHostMemory(pointer, size_bytes));
  }
  registered_[pointer] = size_bytes;
  return {};
}

Status Memory::Deregister(void* pointer) {
  std::lock_guard lock(mutex_);
  if (registered_.erase(pointer) == 0) {
    return {ErrorCode::kNotFound, "no registered range starts at this address"};
  }
  gpu::GpuBackend* gpu = backend();
  return gpu == nullptr ? Status() : gpu->UnregisterHostMemory(pointer);
}

Status Memory::Copy(void* destination, const void* source, uint64_t size_bytes) {
  const gpu::BackendRegistry::Match to = backends_->Identify(destination);
  const gpu::BackendRegistry::Match from = backends_->Identify(source);
  const bool to_device = to.info.kind == gpu::PointerKind::kDevice;
  const bool from_device = from.info.kind == gpu::PointerKind::kDevice;
  if (!to_device && !from_device) {
    std::memmove(destination, source, size_bytes);
    return {};
  }
  gpu::GpuBackend* gpu = to_device ? to.backend : from.backend;
  StatusOr<std::unique_ptr<gpu::Stream>> stream =
      gpu->CreateStream(to_device ? to.info.device : from.info.device);
  FERRY_RETURN_IF_ERROR(stream.status());
  FERRY_RETURN_IF_ERROR((*stream)->CopyAsync(destination, source, size_bytes));
  return (*stream)->Synchronize();
}

}  // namespace ferry::client
