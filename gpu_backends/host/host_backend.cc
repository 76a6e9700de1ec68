#include "gpu_backends/host/host_backend.h"

#include <cstddef>
#include <string>
#include <utility>

#include "gpu_backends/base/allocation_table.h"
#include "gpu_backends/base/argument_checks.h"
#include "gpu_backends/base/fork_guard.h"
#include "gpu_backends/base/mapping.h"
#include "gpu_backends/host/emulated_link.h"
#include "gpu_backends/host/host_stream.h"

namespace ferry::gpu {
namespace {

constexpr int kMaxDevices = 64;

Status InvalidArgument(std::string message) {
  return {ErrorCode::kInvalidArgument, std::move(message)};
}

Status CheckLink(const HostLinkOptions& link) {
  if ((link.h2d_mb_per_s == 0) != (link.d2h_mb_per_s == 0)) {
    return InvalidArgument("the emulated link has " + std::to_string(link.h2d_mb_per_s) +
                           " MB/s to the device and " + std::to_string(link.d2h_mb_per_s) +
                           " MB/s from it: give both directions a bandwidth, or neither");
  }
  if (link.engines < 1 || link.engines > 2) {
    return InvalidArgument("an emulated device has 1 or 2 copy engines, not " +
                           std::to_string(link.engines));
  }
  return {};
}

class HostBackend final : public GpuBackend {
 public:
  explicit HostBackend(const HostBackendOptions& options)
      : options_(options), table_(options.device_count) {
    if (options.link.enabled()) {
      link_ = std::make_unique<EmulatedLink>(options.link, options.device_count);
    }
  }

  std::string_view name() const override { return "host"; }
  std::string version() const override { return "emulated"; }
  int device_count() const override { return options_.device_count; }
  StatusOr<DeviceInfo> GetDeviceInfo(int device) const override;
  PointerInfo Identify(const void* pointer) const override;

  StatusOr<void*> AllocateDevice(int device, uint64_t size_bytes) override;
  StatusOr<void*> AllocatePinned(uint64_t size_bytes) override;
  StatusOr<void*> AllocateManaged(int device, uint64_t size_bytes) override;
  Status Free(void* pointer) override;

  StatusOr<IpcHandle> ExportIpc(const void* pointer) override;
  StatusOr<void*> ImportIpc(const IpcHandle& handle) override;
  Status CloseIpc(void* pointer) override;
  StatusOr<Dmabuf> ExportDmabuf(const void* pointer) override;
  Status LetKernelsReach(int device, const void* pointer) override;

  Status RegisterHostMemory(void* pointer, uint64_t size_bytes) override;
  // The threads that stand for its streams reach what the process reaches.
  Status RegisterIoMemory(void* pointer, uint64_t size_bytes) override {
    return RegisterHostMemory(pointer, size_bytes);
  }
  Status UnregisterHostMemory(void* pointer) override;

  StatusOr<std::unique_ptr<Stream>> CreateStream(int device) override;
  StatusOr<std::unique_ptr<Stream>> AdoptStream(int device, void* native) override;
  StatusOr<std::unique_ptr<Event>> CreateEvent(int device) override;

  void* Behind(const void* pointer) const { return table_.Behind(pointer); }

 private:
  // The checks that open every call: not in a forked child, and a device that exists.
  Status CheckDevice(int device) const;
  // Returns if CPUs and network may touch device memory directly: not over an emulated link.
  DirectAccess DeviceAccess() const { return {link_ == nullptr, link_ == nullptr}; }
  StatusOr<void*> AllocateReserved(int device, uint64_t size_bytes);
  // Allocates memory that CPUs reach: pinned, or managed with `device` as its home.
  StatusOr<void*> AllocateHost(PointerKind kind, int device, uint64_t size_bytes);
  // Maps device memory, and enters it; returns the address that users see.
  StatusOr<void*> EnterDevice(Allocation allocation, int fd);
  // Gives `mapping` to `allocation`, which then owns it, and enters it; returns its address.
  StatusOr<void*> Enter(Allocation allocation, Mapping mapping);

  const HostBackendOptions options_;
  const ForkGuard fork_guard_;
  AllocationTable table_;
  std::unique_ptr<EmulatedLink> link_;  // null: copies run at memory speed
};

StatusOr<DeviceInfo> HostBackend::GetDeviceInfo(int device) const {
  FERRY_RETURN_IF_ERROR(CheckDevice(device));
  DeviceInfo info;
  info.name = "emulated device " + std::to_string(device);
  info.total_bytes = options_.device_memory_bytes;
  info.free_bytes = info.total_bytes - table_.Reserved(device);
  info.direct = DeviceAccess();
  info.stream_words = StreamWords::kHelper;
  info.ipc = true;
  info.managed = true;
  info.host_words = true;  // a kernel is a function
  info.host_atomics = true;
  info.on_cpus = true;
  return info;
}

PointerInfo HostBackend::Identify(const void* pointer) const {
  // In a forked child the table's lock may be held by a thread that does not exist there.
  if (fork_guard_.InChild()) {
    return {};
  }
  PointerInfo info = table_.Identify(pointer);
  info.direct = info.kind == PointerKind::kDevice ? DeviceAccess() : DirectAccess{true, true};
  return info;
}

StatusOr<void*> HostBackend::AllocateDevice(int device, uint64_t size_bytes) {
  FERRY_RETURN_IF_ERROR(CheckDevice(device));
  FERRY_RETURN_IF_ERROR(CheckSize(size_bytes, "AllocateDevice"));
  FERRY_RETURN_IF_ERROR(table_.Reserve(device, size_bytes, options_.device_memory_bytes));
  StatusOr<void*> pointer = AllocateReserved(device, size_bytes);
  if (!pointer.ok()) {
    table_.Unreserve(device, size_bytes);
  }
  return pointer;
}

StatusOr<void*> HostBackend::AllocateReserved(int device, uint64_t size_bytes) {
  StatusOr<UniqueFd> fd = CreateSealedMemfd(size_bytes);
  FERRY_RETURN_IF_ERROR(fd.status());
  Allocation allocation;
  allocation.kind = PointerKind::kDevice;
  allocation.device = device;
  allocation.size_bytes = size_bytes;
  allocation.fd = std::move(*fd);
  const int memory = allocation.fd.get();
  return EnterDevice(std::move(allocation), memory);
}

StatusOr<void*> HostBackend::AllocatePinned(uint64_t size_bytes) {
  FERRY_RETURN_IF_ERROR(fork_guard_.Check());
  FERRY_RETURN_IF_ERROR(CheckSize(size_bytes, "AllocatePinned"));
  return AllocateHost(PointerKind::kPinned, -1, size_bytes);
}

StatusOr<void*> HostBackend::AllocateManaged(int device, uint64_t size_bytes) {
  FERRY_RETURN_IF_ERROR(CheckDevice(device));
  FERRY_RETURN_IF_ERROR(CheckSize(size_bytes, "AllocateManaged"));
  return AllocateHost(PointerKind::kManaged, device, size_bytes);
}

StatusOr<void*> HostBackend::AllocateHost(PointerKind kind, int device, uint64_t size_bytes) {
  StatusOr<Mapping> mapping = Mapping::Anonymous(size_bytes);
  FERRY_RETURN_IF_ERROR(mapping.status());
  Allocation allocation;
  allocation.kind = kind;
  allocation.device = device;
  allocation.size_bytes = size_bytes;
  return Enter(std::move(allocation), std::move(*mapping));
}

Status HostBackend::Free(void* pointer) {
  FERRY_RETURN_IF_ERROR(fork_guard_.Check());
  StatusOr<Allocation> allocation = table_.Remove(pointer, Origin::kAllocated, "Free");
  FERRY_RETURN_IF_ERROR(allocation.status());
  if (allocation->kind == PointerKind::kDevice) {
    table_.Unreserve(allocation->device, allocation->size_bytes);
  }
  return {};
}

StatusOr<Dmabuf> HostBackend::ExportDmabuf(const void* /*pointer*/) {
  FERRY_RETURN_IF_ERROR(fork_guard_.Check());
  return Status(ErrorCode::kUnsupported, "ExportDmabuf: an emulated device's memory is no dma-buf");
}

// A kernel is a function of this process, which reaches what its threads do.
Status HostBackend::LetKernelsReach(int device, const void* pointer) {
  FERRY_RETURN_IF_ERROR(CheckDevice(device));
  const bool is_guarded = link_ != nullptr && options_.link.guard;
  return is_guarded && Identify(pointer).kind == PointerKind::kDevice
             ? Status(ErrorCode::kUnsupported,
                      "functions do not reach device memory behind a guarded link")
             : Status();
}

StatusOr<IpcHandle> HostBackend::ExportIpc(const void* pointer) {
  FERRY_RETURN_IF_ERROR(fork_guard_.Check());
  return table_.Export(pointer);
}

StatusOr<void*> HostBackend::ImportIpc(const IpcHandle& handle) {
  FERRY_RETURN_IF_ERROR(fork_guard_.Check());
  FERRY_RETURN_IF_ERROR(CheckIpcHandle(handle));
  if (!handle.fd.valid()) {
    return InvalidArgument("ImportIpc: the handle has no descriptor; another backend made it");
  }
  FERRY_RETURN_IF_ERROR(CheckSealedMemfd(handle.fd.get(), handle.size_bytes));
  Allocation allocation;
  allocation.kind = PointerKind::kDevice;
  allocation.origin = Origin::kImported;
  allocation.device = handle.device;
  allocation.size_bytes = handle.size_bytes;
  allocation.handle_offset_bytes = handle.offset_bytes;
  return EnterDevice(std::move(allocation), handle.fd.get());
}

StatusOr<void*> HostBackend::EnterDevice(Allocation allocation, int fd) {
  StatusOr<Mapping> mapping = Mapping::Shared(fd, allocation.size_bytes);
  FERRY_RETURN_IF_ERROR(mapping.status());
  if (link_ == nullptr || !options_.link.guard) {
    return Enter(std::move(allocation), std::move(*mapping));
  }
  StatusOr<Mapping> untouchable = Mapping::Untouchable(fd, allocation.size_bytes);
  FERRY_RETURN_IF_ERROR(untouchable.status());
  allocation.behind = std::move(*mapping);
  return Enter(std::move(allocation), std::move(*untouchable));
}

Status HostBackend::CloseIpc(void* pointer) {
  FERRY_RETURN_IF_ERROR(fork_guard_.Check());
  return table_.Remove(pointer, Origin::kImported, "CloseIpc").status();
}

Status HostBackend::RegisterHostMemory(void* pointer, uint64_t size_bytes) {
  FERRY_RETURN_IF_ERROR(fork_guard_.Check());
  FERRY_RETURN_IF_ERROR(CheckHostRange(pointer, size_bytes));
  Allocation allocation;
  allocation.kind = PointerKind::kPinned;
  allocation.origin = Origin::kRegistered;
  allocation.base = pointer;
  allocation.size_bytes = size_bytes;
  return table_.Insert(std::move(allocation));
}

Status HostBackend::UnregisterHostMemory(void* pointer) {
  FERRY_RETURN_IF_ERROR(fork_guard_.Check());
  return table_.Remove(pointer, Origin::kRegistered, "UnregisterHostMemory").status();
}

StatusOr<std::unique_ptr<Stream>> HostBackend::CreateStream(int device) {
  FERRY_RETURN_IF_ERROR(CheckDevice(device));
  return std::unique_ptr<Stream>(std::make_unique<HostStream>(
      device, &table_, &fork_guard_, link_.get(), options_.costs, options_.wait_yield_ns));
}

StatusOr<std::unique_ptr<Stream>> HostBackend::AdoptStream(int device, void* /*native*/) {
  FERRY_RETURN_IF_ERROR(CheckDevice(device));
  return Status(ErrorCode::kUnsupported,
                "AdoptStream: an emulated device has no library to make streams with but Ferry's");
}

StatusOr<std::unique_ptr<Event>> HostBackend::CreateEvent(int device) {
  FERRY_RETURN_IF_ERROR(CheckDevice(device));
  return std::unique_ptr<Event>(std::make_unique<HostEvent>(&fork_guard_));
}

Status HostBackend::CheckDevice(int device) const {
  FERRY_RETURN_IF_ERROR(fork_guard_.Check());
  if (device < 0 || device >= options_.device_count) {
    return InvalidArgument("there is no device " + std::to_string(device) +
                           "; the host backend has devices 0 to " +
                           std::to_string(options_.device_count - 1));
  }
  return {};
}

StatusOr<void*> HostBackend::Enter(Allocation allocation, Mapping mapping) {
  void* pointer = static_cast<std::byte*>(mapping.data()) + allocation.handle_offset_bytes;
  allocation.base = mapping.data();
  allocation.mapping = std::move(mapping);
  FERRY_RETURN_IF_ERROR(table_.Insert(std::move(allocation)));
  return pointer;
}

}  // namespace

StatusOr<std::unique_ptr<GpuBackend>> CreateHostBackend(const HostBackendOptions& options) {
  if (options.device_count < 1 || options.device_count > kMaxDevices) {
    return InvalidArgument("the host backend emulates 1 to " + std::to_string(kMaxDevices) +
                           " devices, not " + std::to_string(options.device_count));
  }
  if (options.device_memory_bytes == 0) {
    return InvalidArgument("the host backend's devices need more than 0 bytes of memory");
  }
  FERRY_RETURN_IF_ERROR(CheckLink(options.link));
  return std::unique_ptr<GpuBackend>(std::make_unique<HostBackend>(options));
}

void* StreamAddress(const GpuBackend& host_backend, const void* pointer) {
  const auto* own = dynamic_cast<const HostBackend*>(&host_backend);
  return own != nullptr ? own->Behind(pointer) : const_cast<void*>(pointer);
}

}  // namespace ferry::gpu
