#include "client/memory/memory.h"

#include <sys/sysinfo.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "client/memory/failure_words.h"
#include "common/library_words.h"
#include "shm/layout/session_layout.h"
#include "shm/word_copy.h"

namespace ferry::client {
namespace {

// Its words are for those, too, who hand on the code alone.
Status Told(Status status) {
  if (!status.ok()) {
    (void)FailureWords::Tell(status.code(), status.message());
  }
  return status;
}

constexpr uint64_t kSmallBounceBufferBytes = 128 << 10;
constexpr uint64_t kIdleBounceBuffersHeapPart = 4;  // they hold at most this part of the heap
constexpr uint64_t kClearBytes = 4 << 20;           // zeros copied to device memory at a time

// The daemon takes no region that is larger than this.
uint64_t MachineBytes() {
  struct sysinfo machine {};
  sysinfo(&machine);
  return (uint64_t{machine.totalram} + machine.totalswap) * machine.mem_unit;
}

// Of a copy whose callers go by its code alone.
ErrorCode FindWords(const Status& copied) {
  return copied.ok() ? ErrorCode::kOk : FailureWords::Find(copied.code(), copied.message());
}

}  // namespace

Memory::Memory(uint64_t heap_bytes, gpu::BackendRegistry* backends, AttachConnection* attach)
    : BufferLooks(backends, attach), heap_bytes_(heap_bytes) {}

Memory::~Memory() {
  for (const auto& [pointer, allocation] : device_) {
    (void)state_.gpu.OwnerOf(pointer)->Free(const_cast<void*>(pointer));
  }
  if (keeps_mapped_) {
    (void)heap_.Release();
  }
}

void Memory::KeepMapped() {
  std::lock_guard lock(state_.mutex);
  keeps_mapped_ = true;
}

Status Memory::MakeHeap() {
  StatusOr<UniqueFd> fd = shm::CreateSegment("ferry-heap", heap_bytes_);
  FERRY_RETURN_IF_ERROR(fd.status());
  StatusOr<shm::Mapping> mapping = shm::MapSegment(fd->get(), 0);
  FERRY_RETURN_IF_ERROR(mapping.status());
  const StatusOr<uint32_t> region =
      state_.announcer.AnnounceHost(fd->get(), mapping->size_bytes(), 0);
  FERRY_RETURN_IF_ERROR(region.status());
  heap_ = std::move(*mapping);
  heap_pieces_ = OffsetAllocator(heap_.size_bytes());
  state_.regions.Add({heap_.base(), heap_.size_bytes(), *region});
  return {};
}

StatusOr<void*> Memory::AllocateHost(uint64_t size_bytes) {
  if (!heap_.valid()) {
    FERRY_RETURN_IF_ERROR(MakeHeap());
  }
  uint64_t offset = heap_pieces_.Allocate(size_bytes);
  while (offset == OffsetAllocator::kNone) {
    void* const idle = bounce_buffers_.Evict(0);
    if (idle == nullptr) {
      break;
    }
    ReleaseBounceBuffer(idle);
    offset = heap_pieces_.Allocate(size_bytes);
  }
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
  OwnRegion region{.base = static_cast<std::byte*>(*pointer),
                   .id = state_.announcer.NewNumber(),
                   .device = device};
  StatusOr<gpu::IpcHandle> handle = gpu->ExportIpc(*pointer);
  Status status = handle.ok() ? state_.announcer.AnnounceDevice(*gpu, &region, *handle,
                                                                gpu->Identify(*pointer).direct)
                              : handle.status();
  if (status.ok()) {
    status = Clear(*pointer, region.size_bytes);
    if (!status.ok()) {
      (void)state_.announcer.End(region.id, region.size_bytes);
    }
  }
  if (!status.ok()) {
    (void)gpu->Free(*pointer);
    return status;
  }
  device_[*pointer] = {region.id, size_bytes};
  state_.regions.Add(region);
  return *pointer;
}

// Device memory that is not in the table yet.
Status Memory::Clear(void* pointer, uint64_t size_bytes) {
  if (backend()->Identify(pointer).direct.cpu) {
    std::memset(pointer, 0, size_bytes);
    return {};
  }
  const std::vector<std::byte> zeros(std::min<uint64_t>(size_bytes, kClearBytes));
  for (uint64_t done = 0; done < size_bytes; done += zeros.size()) {
    const uint64_t part = std::min<uint64_t>(size_bytes - done, zeros.size());
    FERRY_RETURN_IF_ERROR(
        streams()->Copy(static_cast<std::byte*>(pointer) + done, zeros.data(), part));
  }
  return {};
}

StatusOr<void*> Memory::Allocate(uint64_t size_bytes, MemoryKind kind, int device) {
  std::lock_guard lock(state_.mutex);
  if (kind == MemoryKind::kDevice) {
    return AllocateDevice(size_bytes, device);
  }
  StatusOr<void*> pointer = AllocateHost(size_bytes);
  if (!pointer.ok()) {
    return pointer;
  }
  std::memset(*pointer, 0, size_bytes);  // so that its pages are this rank's from now on
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
  std::lock_guard lock(state_.mutex);
  return FreeLocked(pointer);
}

Status Memory::FreeLocked(void* pointer) {
  if (const auto found = device_.find(pointer); found != device_.end()) {
    const uint32_t region = found->second.region;
    // The daemon releases the memory before it is freed; a dead daemon has released it already.
    if (Status status = state_.announcer.End(region, found->second.size_bytes);
        !status.ok() && status.code() != ErrorCode::kDaemonDied) {
      return status;
    }
    state_.regions.Remove(region);
    device_.erase(found);
    return state_.gpu.OwnerOf(pointer)->Free(pointer);
  }
  if (const auto found = pinned_.find(pointer); found != pinned_.end()) {
    if (gpu::GpuBackend* gpu = state_.gpu.OwnerOf(pointer); gpu != nullptr) {
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
  std::lock_guard lock(state_.mutex);
  if (const auto found = device_.find(pointer); found != device_.end()) {
    return found->second.size_bytes;
  }
  return heap_.valid() ? heap_pieces_.SizeOf(static_cast<uint64_t>(
                             static_cast<const std::byte*>(pointer) - heap_.base()))
                       : 0;
}

uint64_t Memory::RegistrationSize(const void* pointer) const {
  std::lock_guard lock(state_.mutex);
  const auto found = registered_.find(pointer);
  return found == registered_.end() ? 0 : found->second;
}

void* Memory::AllocateBounceBuffer(uint64_t size_bytes, bool must) {
  std::lock_guard lock(state_.mutex);
  if (!must && (heap_refused_ || (size_bytes > kSmallBounceBufferBytes && !HasSpare(size_bytes)))) {
    return nullptr;
  }
  StatusOr<void*> pointer = AllocateHost(size_bytes);
  heap_refused_ = !heap_.valid();  // a message should not ask the daemon again
  return pointer.ok() ? *pointer : nullptr;
}

// Returns true if half of the heap stays free for the application without a block of this size.
bool Memory::HasSpare(uint64_t size_bytes) const {
  const uint64_t spare =
      heap_.valid() ? heap_pieces_.free_bytes() + bounce_buffers_.idle_bytes() : heap_bytes_;
  return spare >= heap_bytes_ / 2 + size_bytes;
}

StatusOr<void*> Memory::AllocateDeviceBounceBuffer(uint64_t size_bytes, bool kept, bool must) {
  std::lock_guard lock(state_.mutex);
  if (!must && (heap_refused_ || !HasSpare(size_bytes))) {
    return Status(ErrorCode::kOutOfMemory, "the rest of the heap is the application's");
  }
  if (!kept || backend() == nullptr) {
    StatusOr<void*> block = AllocateHost(size_bytes);
    heap_refused_ = !heap_.valid();
    return block;
  }
  if (void* const idle = bounce_buffers_.Take(size_bytes); idle != nullptr) {
    return idle;
  }
  const uint64_t block_bytes = shm::RoundUpToPage(size_bytes);
  StatusOr<void*> block = AllocateHost(block_bytes);
  heap_refused_ = !heap_.valid();
  // A backend that cannot register the block only copies more slowly, but then it is not worth
  // keeping.
  if (block.ok() && backend()->RegisterHostMemory(*block, block_bytes).ok()) {
    bounce_buffers_.Add(*block, block_bytes);
  }
  return block;
}

void Memory::ReleaseBounceBuffer(void* block) {
  (void)state_.gpu.OwnerOf(block)->UnregisterHostMemory(block);
  (void)FreeLocked(block);
}

void Memory::FreeBounceBuffer(void* pointer) {
  std::lock_guard lock(state_.mutex);
  if (!bounce_buffers_.Give(pointer)) {
    (void)FreeLocked(pointer);
    return;
  }
  while (void* const idle = bounce_buffers_.Evict(heap_bytes_ / kIdleBounceBuffersHeapPart)) {
    ReleaseBounceBuffer(idle);
  }
}

// ---- Memory of front ends -----------------------------------------------------------------------

Status Memory::Share(int fd, void* base, uint64_t size_bytes) {
  std::lock_guard lock(state_.mutex);
  const StatusOr<uint32_t> region = state_.announcer.AnnounceHost(fd, size_bytes, 0);
  FERRY_RETURN_IF_ERROR(region.status());
  shared_[base] = {*region, false};
  state_.regions.Add({static_cast<std::byte*>(base), size_bytes, *region});
  return {};
}

Status Memory::Unshare(void* base) {
  std::lock_guard lock(state_.mutex);
  const auto found = shared_.find(base);
  if (found == shared_.end()) {
    return {ErrorCode::kInvalidBuffer, "no memory is shared from this address on"};
  }
  const uint32_t region = found->second.region;
  const uint64_t size_bytes = state_.regions.ById(region).size_bytes;
  if (found->second.devices_reach) {
    (void)state_.gpu.OwnerOf(base)->UnregisterHostMemory(base);
  }
  state_.regions.Remove(region);
  shared_.erase(found);
  const Status status = state_.announcer.End(region, size_bytes);
  return status.code() == ErrorCode::kDaemonDied ? Status() : status;  // it has let go of it
}

uint64_t Memory::SharedSize(const void* base) const {
  std::lock_guard lock(state_.mutex);
  const auto found = shared_.find(base);
  return found == shared_.end() ? 0 : state_.regions.ById(found->second.region).size_bytes;
}

Status Memory::LetDevicesReach(const void* base) {
  std::lock_guard lock(state_.mutex);
  const auto found = shared_.find(base);
  if (found == shared_.end()) {
    return {ErrorCode::kInvalidBuffer, "no memory is shared from this address on"};
  }
  if (backend() == nullptr) {
    return {ErrorCode::kUnsupported, "no GPU backend is in use"};
  }
  if (!found->second.devices_reach) {
    FERRY_RETURN_IF_ERROR(backend()->RegisterHostMemory(
        const_cast<void*>(base), state_.regions.ById(found->second.region).size_bytes));
    found->second.devices_reach = true;
  }
  return {};
}

// ---- malloc's memory ----------------------------------------------------------------------------

void Memory::ExplainMalloc(uint32_t rank) const {
  if (const std::string why = state_.malloc_heap.WhyPrivate(); !why.empty()) {
    SayToUser(static_cast<int>(rank),
              "malloc's memory stays private, so large messages of this node take longer: " + why);
  }
}

shm::Location Memory::Lend(const void* pointer, uint64_t size_bytes) {
  std::lock_guard lock(state_.mutex);
  if (!lending_refused_) {
    const malloc_heap::HeapView view = state_.malloc_heap.Look();
    if (const Status status = LendUpTo(view); !status.ok()) {
      lending_refused_ = true;
      SayToUser(-1, "malloc's memory stays private, so large messages of this node take longer: " +
                        status.ToString());
    }
  }
  return state_.regions.FindForNode(pointer, size_bytes);
}

// Regions of less stay: messages on their way may name them.
Status Memory::LendUpTo(const malloc_heap::HeapView& view) {
  const uint64_t size_bytes = std::min(view.file_bytes, MachineBytes());
  if (view.fd < 0 || size_bytes <= lent_bytes_) {
    return {};  // forked; or another thread was here
  }
  const StatusOr<uint32_t> region =
      state_.announcer.AnnounceHost(view.fd, size_bytes, attach::kRegionLent);
  FERRY_RETURN_IF_ERROR(region.status());
  lent_bytes_ = size_bytes;
  state_.regions.Add({.base = view.base, .size_bytes = size_bytes, .id = *region, .lent = true});
  return {};
}

Status Memory::Register(void* pointer, uint64_t size_bytes) {
  std::lock_guard lock(state_.mutex);
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
  if (state_.regions.Find(pointer, 1).region != 0) {
    return {ErrorCode::kAlreadyExists,
            "ferry_alloc returned this memory, so it needs no registration"};
  }
  if (gpu::GpuBackend* gpu = backend(); gpu != nullptr) {
    const gpu::PointerInfo info = gpu->Identify(pointer);
    FERRY_RETURN_IF_ERROR(info.failure);
    const gpu::PointerKind kind = info.kind;
    if (kind == gpu::PointerKind::kDevice) {
      return {ErrorCode::kAlreadyExists,
              "this is device memory, which needs no registration: messages take it as it is"};
    }
    if (kind != gpu::PointerKind::kUnknown) {
      return {ErrorCode::kAlreadyExists,
              "devices reach this memory already (it was allocated or registered by the vendor's "
              "calls), so it needs no registration"};
    }
    FERRY_RETURN_IF_ERROR(gpu->RegisterHostMemory(pointer, size_bytes));
  }
  registered_[pointer] = size_bytes;
  return {};
}

Status Memory::Deregister(void* pointer) {
  std::lock_guard lock(state_.mutex);
  if (registered_.erase(pointer) == 0) {
    return {ErrorCode::kNotFound, "no registered range starts at this address"};
  }
  gpu::GpuBackend* gpu = state_.gpu.OwnerOf(pointer);
  return gpu == nullptr ? Status() : gpu->UnregisterHostMemory(pointer);
}

Status Memory::CopyStrided(const gpu::StridedCopy& copy) {
  return streams() != nullptr ? streams()->CopyStrided(copy)
                              : Status(ErrorCode::kUnsupported, "there is no GPU backend");
}

Status Memory::Reduce(const gpu::Reduction& reduction) {
  return Told(streams() != nullptr ? streams()->Reduce(reduction)
                                   : Status(ErrorCode::kUnsupported, "there is no GPU backend"));
}

bool Memory::CanReduce(int device, gpu::ReductionType type, gpu::ReductionOp op) {
  return streams() != nullptr && streams()->CanReduce(device, type, op);
}

Status Memory::Copy(void* destination, const void* source, uint64_t size_bytes) {
  const bool is_destination_by_stream = !IsPlain(destination);
  const bool is_source_by_stream = !IsPlain(source);
  if (streams() != nullptr) {
    return Told(streams()->Copy(
        destination, source, size_bytes,
        EndsOf(destination, is_destination_by_stream, source, is_source_by_stream)));
  }
  if (is_destination_by_stream || is_source_by_stream) {
    return Told(LookAt(is_destination_by_stream ? destination : source, size_bytes));
  }
  shm::CopyWords(destination, source, size_bytes);
  return {};
}

gpu::DeviceEnds Memory::EndsOf(const void* destination, bool is_destination_by_stream,
                               const void* source, bool is_source_by_stream) const {
  gpu::DeviceEnds ends{.destination = is_destination_by_stream, .source = is_source_by_stream};
  if (ends.destination) {
    ends.destination_device = state_.regions.Around(destination).device;
  }
  if (ends.source) {
    ends.source_device = state_.regions.Around(source).device;
  }
  return ends;
}

ErrorCode Memory::CopyToDevice(void* application, const void* source, uint64_t size_bytes) {
  return FindWords(
      streams()->Copy(application, source, size_bytes, EndsOf(application, true, source, false)));
}

ErrorCode Memory::CopyFromDevice(void* destination, const void* application, uint64_t size_bytes) {
  return FindWords(streams()->Copy(destination, application, size_bytes,
                                   EndsOf(destination, false, application, true)));
}

}  // namespace ferry::client
