#include "gpu_backends/driver/driver_backend.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "gpu_backends/api/copy_streams.h"
#include "gpu_backends/base/allocation_table.h"
#include "gpu_backends/base/argument_checks.h"
#include "gpu_backends/base/fork_guard.h"
#include "gpu_backends/driver/driver_stream.h"
#include "gpu_backends/driver/page_registrations.h"
#include "gpu_backends/driver/parked_streams.h"
#include "gpu_backends/driver/stream_kernels.h"

namespace ferry::gpu {
namespace {

// The numbers of the table's allocations are below, those that vendors give are above.
constexpr uint64_t kVendorsIds = 1ULL << 63;

Status InvalidArgument(std::string message) {
  return {ErrorCode::kInvalidArgument, std::move(message)};
}

// Keeps an object alive and reachable until the process ends.
void KeepForGood(std::shared_ptr<void> object) {
  struct Kept {
    std::mutex mutex;
    std::vector<std::shared_ptr<void>> objects;
  };
  static Kept& kept = *new Kept;
  std::lock_guard lock(kept.mutex);
  kept.objects.push_back(std::move(object));
}

// Memory of other processes that a vendor has mapped here.
//
// When a handle is opened again, vendors return the existing mapping or refuse. So each handle is
// opened once, and closed after its last use. Small allocations may share a block, all of which is
// mapped with any of them: what its owner has freed may still be open here when what lies there now
// is opened, at the same addresses. Then only the new one is listed in the table.
//
// Thread-safe; Open and Close block for as long as the driver maps memory.
class Imports {
 public:
  // All of them outlive this. Imports are entered into the table.
  Imports(Driver& driver, AllocationTable& table, ParkedStreams& parked)
      : driver_(driver), table_(table), parked_(parked) {}

  // As of GpuBackend::ImportIpc and CloseIpc.
  StatusOr<void*> Open(int device, const IpcHandle& handle);
  Status Close(void* pointer);

 private:
  using Opaque = std::array<uint8_t, 64>;
  struct Import {
    std::byte* base = nullptr;
    uint64_t size_bytes = 0;
    Opaque opaque{};              // set where there is no descriptor to identify the handle
    std::vector<void*> pointers;  // what Open returned
    bool is_listed = false;       // in the table

    bool Overlaps(const Import& other) const {
      return base < other.base + other.size_bytes && other.base < base + size_bytes;
    }
  };

  // Closes the driver's import. One that the driver fails to close is closed later.
  Status CloseSurely(void* base);
  void CloseLate();
  // The import of the handle's allocation; null: there is none.
  Import* FindLocked(const IpcHandle& handle);
  StatusOr<Import*> MapLocked(int device, const IpcHandle& handle);

  Driver& driver_;
  AllocationTable& table_;
  ParkedStreams& parked_;
  std::mutex mutex_;
  std::list<Import> imports_;  // in the order of their opening
  std::mutex unclosed_mutex_;
  std::vector<void*> unclosed_;
};

Status Imports::CloseSurely(void* base) {
  Status closed = driver_.CloseImport(base);
  if (closed.code() == ErrorCode::kSystem) {
    std::lock_guard lock(unclosed_mutex_);
    unclosed_.push_back(base);
  }
  return closed;
}

// The exporter's memory is free only then. Before another import, which may lie at the address of
// one that has been closed although the driver said that it had failed to.
void Imports::CloseLate() {
  std::vector<void*> unclosed;
  {
    std::lock_guard lock(unclosed_mutex_);
    unclosed.swap(unclosed_);
  }
  for (void* const base : unclosed) {
    (void)CloseSurely(base);
  }
}

Imports::Import* Imports::FindLocked(const IpcHandle& handle) {
  const auto found = std::find_if(imports_.begin(), imports_.end(), [&](const Import& each) {
    return each.is_listed && each.opaque == handle.opaque;
  });
  return handle.fd.valid() || found == imports_.end() ? nullptr : &*found;
}

StatusOr<Imports::Import*> Imports::MapLocked(int device, const IpcHandle& handle) {
  CloseLate();
  StatusOr<void*> base = driver_.Import(device, handle);
  FERRY_RETURN_IF_ERROR(base.status());
  {
    std::lock_guard lock(unclosed_mutex_);
    std::erase(unclosed_, *base);
  }
  Import import;
  import.base = static_cast<std::byte*>(*base);
  import.size_bytes = handle.size_bytes;
  import.opaque = handle.fd.valid() ? Opaque{} : handle.opaque;
  import.is_listed = true;
  for (Import& other : imports_) {
    if (other.is_listed && other.Overlaps(import)) {
      (void)table_.Remove(other.base, Origin::kImported, "ImportIpc");
      other.is_listed = false;
    }
  }
  Allocation allocation;
  allocation.kind = PointerKind::kDevice;
  allocation.origin = Origin::kImported;
  allocation.device = device;
  allocation.base = *base;
  allocation.size_bytes = handle.size_bytes;
  if (Status status = table_.Insert(std::move(allocation)); !status.ok()) {
    (void)CloseSurely(*base);
    return status;
  }
  return &imports_.emplace_back(std::move(import));
}

StatusOr<void*> Imports::Open(int device, const IpcHandle& handle) {
  std::lock_guard lock(mutex_);
  Import* import = FindLocked(handle);
  if (import == nullptr) {
    const StatusOr<Import*> mapped = MapLocked(device, handle);
    FERRY_RETURN_IF_ERROR(mapped.status());
    import = *mapped;
  }
  void* const pointer = import->base + handle.offset_bytes;
  import->pointers.push_back(pointer);
  return pointer;
}

Status Imports::Close(void* pointer) {
  std::lock_guard lock(mutex_);
  const auto import = std::find_if(imports_.begin(), imports_.end(), [&](const Import& each) {
    return std::find(each.pointers.begin(), each.pointers.end(), pointer) != each.pointers.end();
  });
  if (import == imports_.end()) {
    void* const base = table_.Identify(pointer).base;
    const bool is_inside = std::any_of(imports_.begin(), imports_.end(), [&](const Import& each) {
      return each.is_listed && each.base == base;
    });
    return is_inside ? Status(ErrorCode::kInvalidBuffer,
                              "CloseIpc: the pointer lies in an import, but is not what ImportIpc "
                              "returned")
                     : table_.Remove(pointer, Origin::kImported, "CloseIpc").status();
  }
  import->pointers.erase(std::find(import->pointers.begin(), import->pointers.end(), pointer));
  if (!import->pointers.empty()) {
    return {};
  }
  void* const base = import->base;
  const bool was_listed = import->is_listed;
  imports_.erase(import);
  if (was_listed) {
    FERRY_RETURN_IF_ERROR(table_.Remove(base, Origin::kImported, "CloseIpc").status());
  }
  return parked_.Release([this, base] { return CloseSurely(base); });
}

class DriverBackend final : public GpuBackend {
 public:
  DriverBackend(std::unique_ptr<Driver> driver, std::vector<DeviceInfo> devices);
  ~DriverBackend() override;

  std::string_view name() const override { return driver().name(); }
  std::string version() const override { return driver().version(); }
  bool is_vendors() const override { return true; }
  int device_count() const override { return driver().device_count(); }
  StatusOr<DeviceInfo> GetDeviceInfo(int device) const override;
  PointerInfo Identify(const void* pointer) const override;
  StatusOr<MemoryPiece> PieceAround(const void* pointer, const PointerInfo& info) const override;

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
  Status RegisterIoMemory(void* pointer, uint64_t size_bytes) override;
  Status UnregisterHostMemory(void* pointer) override;

  StatusOr<std::unique_ptr<Stream>> CreateStream(int device) override;
  StatusOr<std::unique_ptr<Stream>> AdoptStream(int device, void* native) override;
  StatusOr<std::unique_ptr<Event>> CreateEvent(int device) override;

 private:
  Driver& driver() const { return *around_.driver; }
  // The checks that open every call: not in a forked child, and a device that exists.
  Status CheckDevice(int device) const;
  // Asks the vendor about memory that is not in the table.
  PointerInfo AskDriver(const void* pointer) const;
  // Enters an allocation into the table, or releases it.
  StatusOr<void*> Enter(PointerKind kind, int device, uint64_t size_bytes, StatusOr<void*> made);
  // The exportable allocation around a pointer.
  StatusOr<PointerInfo> Exportable(const void* pointer) const;
  Status RegisterPages(void* pointer, uint64_t size_bytes, PageRegistrations::Kind kind);
  Status ReleaseVendors(const Allocation& allocation);

  const ForkGuard fork_guard_;
  AllocationTable table_;
  const ArgumentChecks checks_;
  PageRegistrations registrations_;
  ParkedStreams parked_;
  std::unique_ptr<CopyStreams> copies_;
  Imports imports_;
  StreamSurroundings around_;
  std::vector<DeviceInfo> devices_;
};

DriverBackend::DriverBackend(std::unique_ptr<Driver> driver, std::vector<DeviceInfo> devices)
    : table_(driver->device_count()),
      checks_(
          table_,
          [this](const void* pointer) { return AskDriver(pointer).kind != PointerKind::kUnknown; }),
      registrations_(*driver),
      parked_(*driver),
      copies_(std::make_unique<CopyStreams>(*this)),
      imports_(*driver, table_, parked_),
      around_{std::move(driver), fork_guard_, table_,   checks_,
              registrations_,    parked_,     *copies_, nullptr},
      devices_(std::move(devices)) {
  around_.controls = std::make_shared<StreamControls>(around_.driver);
}

DriverBackend::~DriverBackend() {
  if (fork_guard_.InChild()) {
    (void)copies_.release();
    // Streams neither work nor end in a forked child.
    (void)new std::shared_ptr<Driver>(around_.driver);
    (void)new std::shared_ptr<StreamControls>(around_.controls);
    return;
  }
  copies_.reset();
  if (!parked_.Sweep()) {
    // Some stream still waits for something that may never come, and may use any of the memory
    // afterwards. So the process keeps all of it.
    KeepForGood(around_.driver);
    KeepForGood(around_.controls);
    return;
  }
  for (const Allocation& allocation : table_.RemoveAll()) {
    (void)ReleaseVendors(allocation);
  }
}

Status DriverBackend::CheckDevice(int device) const {
  FERRY_RETURN_IF_ERROR(fork_guard_.Check());
  if (device < 0 || device >= device_count()) {
    return InvalidArgument("there is no device " + std::to_string(device) + "; " +
                           std::string(name()) + " has devices 0 to " +
                           std::to_string(device_count() - 1));
  }
  return {};
}

StatusOr<DeviceInfo> DriverBackend::GetDeviceInfo(int device) const {
  FERRY_RETURN_IF_ERROR(CheckDevice(device));
  StatusOr<DeviceInfo> info = driver().GetDeviceInfo(device);
  if (info.ok()) {
    const KernelPowers powers = driver().kernel_powers(device);
    info->host_words = powers.host_words;
    info->host_atomics = powers.host_atomics;
  }
  return info;
}

PointerInfo DriverBackend::Identify(const void* pointer) const {
  if (fork_guard_.InChild() || pointer == nullptr) {
    return {};
  }
  PointerInfo info = table_.Identify(pointer);
  if (info.kind == PointerKind::kUnknown) {
    info = AskDriver(pointer);
  }
  switch (info.kind) {
    case PointerKind::kDevice:
      info.direct =
          devices_[info.device >= 0 && info.device < device_count() ? info.device : 0].direct;
      break;
    case PointerKind::kManaged:
      info.direct = {true, false};  // a NIC cannot follow its pages
      break;
    case PointerKind::kPinned:
      info.direct = {true, true};
      break;
    case PointerKind::kUnknown:
      break;
  }
  return info;
}

StatusOr<MemoryPiece> DriverBackend::PieceAround(const void* pointer,
                                                 const PointerInfo& info) const {
  return PieceOrWhole(driver(), pointer, info);
}

PointerInfo DriverBackend::AskDriver(const void* pointer) const {
  PointerInfo info = driver().Identify(pointer);
  if (!info.failure.ok()) {
    return info;
  }
  // Vendors round sizes up: memory behind an allocation of the table is no allocation.
  if (info.kind == PointerKind::kUnknown ||
      table_.Identify(info.base).kind != PointerKind::kUnknown) {
    return {};
  }
  if (info.allocation_id != 0) {
    info.allocation_id |= kVendorsIds;
  }
  return info;
}

// ---- Allocation ----

StatusOr<void*> DriverBackend::Enter(PointerKind kind, int device, uint64_t size_bytes,
                                     StatusOr<void*> made) {
  FERRY_RETURN_IF_ERROR(made.status());
  Allocation allocation;
  allocation.kind = kind;
  allocation.device = device;
  allocation.base = *made;
  allocation.size_bytes = size_bytes;
  if (Status status = table_.Insert(std::move(allocation)); !status.ok()) {
    (void)driver().Free(kind, *made);
    return status;
  }
  return made;
}

StatusOr<void*> DriverBackend::AllocateDevice(int device, uint64_t size_bytes) {
  FERRY_RETURN_IF_ERROR(CheckDevice(device));
  FERRY_RETURN_IF_ERROR(CheckSize(size_bytes, "AllocateDevice"));
  parked_.Sweep();  // memory kept for parked streams may be free by now
  const uint64_t total_bytes = devices_[device].total_bytes;
  StatusOr<void*> made = size_bytes > total_bytes
                             ? StatusOr<void*>(Status(ErrorCode::kOutOfMemory, "it has less"))
                             : driver().AllocateDevice(device, size_bytes);
  if (made.status().code() == ErrorCode::kOutOfMemory) {
    const StatusOr<DeviceInfo> now = driver().GetDeviceInfo(device);
    return Status(
        ErrorCode::kOutOfMemory,
        "device " + std::to_string(device) + " cannot allocate " + std::to_string(size_bytes) +
            " bytes: " + std::to_string(now.ok() ? now->free_bytes : 0) + " of its " +
            std::to_string(total_bytes) + " bytes are free (" + made.status().message() + ")");
  }
  return Enter(PointerKind::kDevice, device, size_bytes, std::move(made));
}

StatusOr<void*> DriverBackend::AllocatePinned(uint64_t size_bytes) {
  FERRY_RETURN_IF_ERROR(fork_guard_.Check());
  FERRY_RETURN_IF_ERROR(CheckSize(size_bytes, "AllocatePinned"));
  return Enter(PointerKind::kPinned, -1, size_bytes, driver().AllocatePinned(size_bytes));
}

StatusOr<void*> DriverBackend::AllocateManaged(int device, uint64_t size_bytes) {
  FERRY_RETURN_IF_ERROR(CheckDevice(device));
  FERRY_RETURN_IF_ERROR(CheckSize(size_bytes, "AllocateManaged"));
  if (!devices_[device].managed) {
    return Status(ErrorCode::kUnsupported,
                  "AllocateManaged: device " + std::to_string(device) + " has no managed memory");
  }
  return Enter(PointerKind::kManaged, device, size_bytes,
               driver().AllocateManaged(device, size_bytes));
}

Status DriverBackend::Free(void* pointer) {
  FERRY_RETURN_IF_ERROR(fork_guard_.Check());
  const StatusOr<Allocation> allocation = table_.Remove(pointer, Origin::kAllocated, "Free");
  FERRY_RETURN_IF_ERROR(allocation.status());
  return parked_.Release([this, kind = allocation->kind, base = allocation->base] {
    return driver().Free(kind, base);
  });
}

Status DriverBackend::ReleaseVendors(const Allocation& allocation) {
  switch (allocation.origin) {
    case Origin::kAllocated:
      return driver().Free(allocation.kind, allocation.base);
    case Origin::kImported:
      return driver().CloseImport(allocation.base);
    case Origin::kRegistered:
      return registrations_.Remove(allocation.base, allocation.size_bytes);
  }
  return {};
}

// ---- Sharing ----

StatusOr<PointerInfo> DriverBackend::Exportable(const void* pointer) const {
  FERRY_RETURN_IF_ERROR(fork_guard_.Check());
  StatusOr<PointerInfo> info = table_.Exportable(pointer);
  if (info.ok() && info->kind == PointerKind::kUnknown && pointer != nullptr) {
    info = AskDriver(pointer);
    FERRY_RETURN_IF_ERROR(info->failure);
  }
  if (info.ok() && info->kind != PointerKind::kDevice) {
    return Status(ErrorCode::kInvalidBuffer,
                  "only device memory that this process allocated can be exported");
  }
  return info;
}

StatusOr<IpcHandle> DriverBackend::ExportIpc(const void* pointer) {
  const StatusOr<PointerInfo> info = Exportable(pointer);
  FERRY_RETURN_IF_ERROR(info.status());
  IpcHandle handle;
  FERRY_RETURN_IF_ERROR(driver().Export(info->base, &handle));
  handle.offset_bytes = static_cast<uint64_t>(static_cast<const std::byte*>(pointer) -
                                              static_cast<const std::byte*>(info->base));
  handle.size_bytes = info->size_bytes;
  handle.allocation_id = info->allocation_id;
  handle.device = info->device;
  return handle;
}

StatusOr<Dmabuf> DriverBackend::ExportDmabuf(const void* pointer) {
  const StatusOr<PointerInfo> info = Exportable(pointer);
  FERRY_RETURN_IF_ERROR(info.status());
  StatusOr<Dmabuf> dmabuf = driver().ExportDmabuf(info->base, info->size_bytes);
  if (dmabuf.ok()) {
    dmabuf->offset_bytes += static_cast<uint64_t>(static_cast<const std::byte*>(pointer) -
                                                  static_cast<const std::byte*>(info->base));
  }
  return dmabuf;
}

StatusOr<void*> DriverBackend::ImportIpc(const IpcHandle& handle) {
  FERRY_RETURN_IF_ERROR(fork_guard_.Check());
  FERRY_RETURN_IF_ERROR(CheckIpcHandle(handle));
  // The exporter may have more devices than this process, or others.
  const int device = handle.device >= 0 && handle.device < device_count() ? handle.device : 0;
  return imports_.Open(device, handle);
}

Status DriverBackend::CloseIpc(void* pointer) {
  FERRY_RETURN_IF_ERROR(fork_guard_.Check());
  return imports_.Close(pointer);
}

Status DriverBackend::LetKernelsReach(int device, const void* pointer) {
  FERRY_RETURN_IF_ERROR(CheckDevice(device));
  const PointerInfo info = Identify(pointer);
  FERRY_RETURN_IF_ERROR(info.failure);
  if (info.kind != PointerKind::kDevice) {
    return {ErrorCode::kUnsupported,
            "LetKernelsReach: " + std::string(name()) + " knows no device memory at this address"};
  }
  return info.device == device ? Status() : driver().LetKernelsReach(device, info.device);
}

Status DriverBackend::RegisterHostMemory(void* pointer, uint64_t size_bytes) {
  return RegisterPages(pointer, size_bytes, PageRegistrations::Kind::kMemory);
}

Status DriverBackend::RegisterIoMemory(void* pointer, uint64_t size_bytes) {
  return RegisterPages(pointer, size_bytes, PageRegistrations::Kind::kIo);
}

Status DriverBackend::RegisterPages(void* pointer, uint64_t size_bytes,
                                    PageRegistrations::Kind kind) {
  FERRY_RETURN_IF_ERROR(fork_guard_.Check());
  FERRY_RETURN_IF_ERROR(CheckHostRange(pointer, size_bytes));
  Allocation allocation;
  allocation.kind = PointerKind::kPinned;
  allocation.origin = Origin::kRegistered;
  allocation.base = pointer;
  allocation.size_bytes = size_bytes;
  FERRY_RETURN_IF_ERROR(table_.Insert(std::move(allocation)));
  Status status = registrations_.Add(pointer, size_bytes, kind);
  if (!status.ok()) {
    (void)table_.Remove(pointer, Origin::kRegistered, "RegisterHostMemory");
  }
  return status;
}

Status DriverBackend::UnregisterHostMemory(void* pointer) {
  FERRY_RETURN_IF_ERROR(fork_guard_.Check());
  const StatusOr<Allocation> allocation =
      table_.Remove(pointer, Origin::kRegistered, "UnregisterHostMemory");
  FERRY_RETURN_IF_ERROR(allocation.status());
  return registrations_.Remove(pointer, allocation->size_bytes);
}

// ---- Streams ----

StatusOr<std::unique_ptr<Stream>> DriverBackend::CreateStream(int device) {
  FERRY_RETURN_IF_ERROR(CheckDevice(device));
  const StatusOr<NativeStream> native = driver().CreateStream(device);
  FERRY_RETURN_IF_ERROR(native.status());
  return std::unique_ptr<Stream>(
      std::make_unique<DriverStream>(around_, device, *native, /*adopted=*/false));
}

StatusOr<std::unique_ptr<Stream>> DriverBackend::AdoptStream(int device, void* native) {
  FERRY_RETURN_IF_ERROR(CheckDevice(device));
  if (native == nullptr) {
    return InvalidArgument("AdoptStream: the stream is null; make one with the vendor's library");
  }
  FERRY_RETURN_IF_ERROR(driver().CheckStream(device, native));
  return std::unique_ptr<Stream>(
      std::make_unique<DriverStream>(around_, device, native, /*adopted=*/true));
}

StatusOr<std::unique_ptr<Event>> DriverBackend::CreateEvent(int device) {
  FERRY_RETURN_IF_ERROR(CheckDevice(device));
  return std::unique_ptr<Event>(std::make_unique<DriverEvent>(around_));
}

}  // namespace

StatusOr<std::unique_ptr<GpuBackend>> CreateDriverBackend(std::unique_ptr<Driver> driver) {
  std::vector<DeviceInfo> devices;
  for (int device = 0; device < driver->device_count(); ++device) {
    StatusOr<DeviceInfo> info = driver->GetDeviceInfo(device);
    if (!info.ok()) {
      return Status(info.status().code(),
                    "device " + std::to_string(device) +
                        " does not describe itself: " + info.status().message());
    }
    devices.push_back(std::move(*info));
  }
  return std::unique_ptr<GpuBackend>(
      std::make_unique<DriverBackend>(std::move(driver), std::move(devices)));
}

}  // namespace ferry::gpu
