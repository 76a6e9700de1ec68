#include "transports/ofi/memory.h"

#include <rdma/fi_errno.h>
#include <sys/mman.h>
#include <sys/random.h>

#include <array>
#include <cerrno>
#include <functional>

#include "transports/ofi/library.h"
#include "transports/ofi/provider.h"

namespace ferry::transport {
namespace {

constexpr int kKeyAttempts = 8;

uint64_t FabricAccess(Access access) {
  uint64_t bits = FI_SEND | FI_RECV | FI_READ | FI_WRITE;
  if (Includes(access, Access::kRemoteRead)) {
    bits |= FI_REMOTE_READ;
  }
  if (Includes(access, Access::kRemoteWrite)) {
    bits |= FI_REMOTE_WRITE;
  }
  return bits;
}

// A key that cannot be guessed, as wide as the provider allows: only keys guard the data plane.
StatusOr<uint64_t> RandomKey(const Endpoint& endpoint) {
  uint64_t key = 0;
  if (getrandom(&key, sizeof(key), 0) != static_cast<ssize_t>(sizeof(key))) {
    return StatusFromErrno(errno, "getrandom");
  }
  const size_t width = endpoint.info->domain_attr->mr_key_size;
  return width >= sizeof(key) ? key : key & ((uint64_t{1} << (8 * width)) - 1);
}

Status RegistrationError(int fabric_error, const char* call, uint64_t bytes) {
  return SetUpError(fabric_error, std::string(call) + " of " + std::to_string(bytes) + " bytes");
}

// How a provider registers memory: fi_mr_reg or fi_mr_regattr. `call` names it for messages.
struct Method {
  const char* call;
  std::function<int(uint64_t access, uint64_t key, uint64_t flags, fid_mr** mr)> run;
};

StatusOr<FidPtr<fid_mr>> RegisterBy(const Method& method, const Endpoint& endpoint, uint64_t bytes,
                                    uint64_t access, fid_cntr* counter) {
  const uint64_t flags = counter != nullptr ? FI_RMA_EVENT : 0;
  fid_mr* mr = nullptr;
  int error = -FI_ENOKEY;
  // Where keys are narrow, a random key may be taken already.
  for (int attempt = 0; attempt < kKeyAttempts && error == -FI_ENOKEY; attempt++) {
    uint64_t key = 0;
    if (!endpoint.MrMode(FI_MR_PROV_KEY)) {
      StatusOr<uint64_t> random = RandomKey(endpoint);
      FERRY_RETURN_IF_ERROR(random.status());
      key = *random;
    }
    error = method.run(access, key, flags, &mr);
  }
  if (error != 0) {
    return RegistrationError(error, method.call, bytes);
  }
  FidPtr<fid_mr> owner(mr);
  if (counter != nullptr) {
    if (error = fi_mr_bind(mr, &counter->fid, FI_REMOTE_WRITE); error != 0) {
      return RegistrationError(error, "fi_mr_bind to a counter", bytes);
    }
  }
  if (endpoint.MrMode(FI_MR_ENDPOINT)) {
    error = fi_mr_bind(mr, &endpoint.endpoint->fid, 0);
    if (error == 0) {
      error = fi_mr_enable(mr);
    }
    if (error != 0) {
      return RegistrationError(error, "fi_mr_enable", bytes);
    }
  }
  return owner;
}

StatusOr<FidPtr<fid_mr>> RegisterOnce(const Endpoint& endpoint, void* base, uint64_t bytes,
                                      uint64_t access, fid_cntr* counter) {
  const auto run = [&](uint64_t bits, uint64_t key, uint64_t flags, fid_mr** mr) {
    return fi_mr_reg(endpoint.domain.get(), base, bytes, bits, 0, key, flags, mr, nullptr);
  };
  return RegisterBy({"fi_mr_reg", run}, endpoint, bytes, access, counter);
}

// ---- Device memory -----------------------------------------------------------------------------

// As the headers of libfabric 1.20 and later have them. Debian 12's are older, and the library that
// is opened may be newer.
constexpr uint64_t kRegisterDmabuf = uint64_t{1} << 40;  // FI_MR_DMABUF
struct DmabufRange {                                     // fi_mr_dmabuf
  int fd;
  uint64_t offset;
  size_t len;
  void* base_addr;
};
struct DeviceAttributes {
  fi_mr_attr first;
  std::array<uint64_t, 8> added_later;  // all zero: none of it is used
};

fi_hmem_iface InterfaceOf(const DeviceMemory& memory) {
  switch (memory.interface) {
    case DeviceMemory::Interface::kCuda:
      return FI_HMEM_CUDA;
    case DeviceMemory::Interface::kRocr:
      return FI_HMEM_ROCR;
    case DeviceMemory::Interface::kLevelZero:
      return FI_HMEM_ZE;
    case DeviceMemory::Interface::kNone:
      break;
  }
  return FI_HMEM_SYSTEM;
}

// One range of it: `range` is an iovec or, with kRegisterDmabuf, a DmabufRange.
Method DeviceMethod(const Endpoint& endpoint, const char* call, const DeviceMemory& memory,
                    const void* range, uint64_t more_flags) {
  return {call, [=, &endpoint](uint64_t access, uint64_t key, uint64_t flags, fid_mr** mr) {
            DeviceAttributes attributes{};
            attributes.first.mr_iov = static_cast<const iovec*>(range);
            attributes.first.iov_count = 1;
            attributes.first.access = access;
            attributes.first.requested_key = key;
            attributes.first.iface = InterfaceOf(memory);
            if (memory.interface == DeviceMemory::Interface::kCuda) {
              attributes.first.device.cuda = memory.device;
            } else if (memory.interface == DeviceMemory::Interface::kLevelZero) {
              attributes.first.device.ze = memory.device;  // of the first driver
            }
            return fi_mr_regattr(endpoint.domain.get(), &attributes.first, flags | more_flags, mr);
          }};
}

// By its dma-buf, which the system keeps for the NIC whatever its owner does, else by its address.
StatusOr<FidPtr<fid_mr>> RegisterDevice(const Endpoint& endpoint, const DeviceMemory& memory,
                                        std::byte* base, uint64_t bytes, uint64_t access,
                                        fid_cntr* counter) {
  Status refusal(ErrorCode::kUnsupported,
                 "provider " + endpoint.description.provider +
                     (endpoint.ReachesDevices() ? " takes no dma-bufs (libfabric before 1.20)"
                                                : " reaches no device memory (FI_HMEM)"));
  if (memory.dmabuf >= 0 && endpoint.TakesDmabufs()) {
    const uint64_t offset = reinterpret_cast<uintptr_t>(base) - memory.dmabuf_begin;
    const DmabufRange range{memory.dmabuf, offset, bytes,
                            reinterpret_cast<void*>(memory.dmabuf_begin)};
    StatusOr<FidPtr<fid_mr>> mr = RegisterBy(
        DeviceMethod(endpoint, "fi_mr_regattr with a dma-buf", memory, &range, kRegisterDmabuf),
        endpoint, bytes, access, counter);
    if (mr.ok() || !memory.is_mapped) {
      return mr;
    }
    refusal = mr.status();
  }
  if (!memory.is_mapped || !endpoint.ReachesDevices()) {
    return refusal;
  }
  const iovec range{base, bytes};
  StatusOr<FidPtr<fid_mr>> mr =
      RegisterBy(DeviceMethod(endpoint, "fi_mr_regattr with an address", memory, &range, 0),
                 endpoint, bytes, access, counter);
  const bool was_refused = memory.dmabuf >= 0 && endpoint.TakesDmabufs();
  return mr.ok() || !was_refused
             ? std::move(mr)
             : Status(mr.status().code(), refusal.message() + "; " + mr.status().message());
}

}  // namespace

RegionTable::RegionTable(const Endpoint* endpoint)
    : endpoint_(endpoint), pins_(PinsMemory(*endpoint->info)) {}

StatusOr<std::unique_ptr<Registration>> RegionTable::Prepare(void* base, uint64_t bytes,
                                                             Access access,
                                                             fid_cntr* counter) const {
  const auto start = reinterpret_cast<uintptr_t>(base);
  if (base == nullptr || bytes == 0 || start + bytes < start) {
    return Status(ErrorCode::kInvalidArgument,
                  "PrepareMemory wants an address and at least one byte, within the address space; "
                  "got " +
                      std::to_string(bytes) + " bytes at " + std::to_string(start));
  }
  auto prepared = std::make_unique<OfiRegistration>();
  prepared->base = static_cast<std::byte*>(base);
  prepared->bytes = bytes;
  prepared->access = access;
  prepared->counter = counter;
  if (pins_) {
    FERRY_RETURN_IF_ERROR(Register(prepared.get()));
  }
  return std::unique_ptr<Registration>(std::move(prepared));
}

StatusOr<std::unique_ptr<Registration>> RegionTable::PrepareDevice(const DeviceMemory& memory,
                                                                   void* base, uint64_t bytes,
                                                                   Access access,
                                                                   fid_cntr* counter) const {
  auto prepared = std::make_unique<OfiRegistration>();
  prepared->base = static_cast<std::byte*>(base);
  prepared->bytes = bytes;
  prepared->access = access;
  prepared->counter = counter;
  prepared->device = memory;
  if (pins_) {
    FERRY_RETURN_IF_ERROR(Register(prepared.get()));
  }
  return std::unique_ptr<Registration>(std::move(prepared));
}

Status RegionTable::Register(OfiRegistration* registration) const {
  OfiRegistration& own = *registration;
  StatusOr<FidPtr<fid_mr>> mr =
      own.device
          ? RegisterDevice(*endpoint_, *own.device, own.base, own.bytes, FabricAccess(own.access),
                           own.counter)
          : RegisterOnce(*endpoint_, own.base, own.bytes, FabricAccess(own.access), own.counter);
  FERRY_RETURN_IF_ERROR(mr.status());
  own.mr = std::move(*mr);
  return Status();
}

StatusOr<MemoryRegion> RegionTable::Adopt(std::unique_ptr<Registration> registration) {
  std::unique_ptr<OfiRegistration> own(static_cast<OfiRegistration*>(registration.release()));
  if (own->mr == nullptr) {
    FERRY_RETURN_IF_ERROR(Register(own.get()));
  }
  fid_mr* const mr = own->mr.get();
  MemoryRegion result;
  result.handle = regions_.Insert();
  result.key = fi_mr_key(mr);
  result.remote_base =
      endpoint_->MrMode(FI_MR_VIRT_ADDR) ? reinterpret_cast<uintptr_t>(own->base) : 0;
  Region* region = regions_.Find(result.handle);
  region->base = own->base;
  region->bytes = own->bytes;
  region->descriptor = own->device || endpoint_->MrMode(FI_MR_LOCAL) ? fi_mr_desc(mr) : nullptr;
  region->registration = std::move(own);
  return result;
}

StatusOr<std::unique_ptr<Registration>> RegionTable::Release(RegionHandle handle) {
  Region* region = regions_.Find(handle);
  if (region == nullptr) {
    return Status(ErrorCode::kNotFound, "ReleaseMemory: no such region");
  }
  if (region->users != 0) {
    return Status(ErrorCode::kWouldBlock,
                  "ReleaseMemory: " + std::to_string(region->users) +
                      " operations still use the region; Poll and try again");
  }
  std::unique_ptr<OfiRegistration> registration = std::move(region->registration);
  regions_.Erase(handle);
  if (!pins_) {
    registration->mr.reset();
  }
  return std::unique_ptr<Registration>(std::move(registration));
}

StatusOr<std::unique_ptr<Arena>> Arena::Create(const Endpoint& endpoint, size_t bytes) {
  void* base =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, /*fd=*/-1, 0);
  if (base == MAP_FAILED) {
    return StatusFromErrno(errno, "mmap of " + std::to_string(bytes) + " bytes for messages");
  }
  std::unique_ptr<Arena> arena(new Arena(static_cast<std::byte*>(base), bytes));
  if (endpoint.MrMode(FI_MR_LOCAL)) {
    StatusOr<FidPtr<fid_mr>> mr =
        RegisterOnce(endpoint, base, bytes, FabricAccess(Access::kLocal), nullptr);
    FERRY_RETURN_IF_ERROR(mr.status());
    arena->mr_ = std::move(*mr);
    arena->descriptor_ = fi_mr_desc(arena->mr_.get());
  }
  return arena;
}

Arena::~Arena() {
  mr_.reset();
  munmap(base_, bytes_);
}

}  // namespace ferry::transport
