#include "transports/ofi/memory.h"

#include <rdma/fi_errno.h>
#include <sys/mman.h>
#include <sys/random.h>

#include <cerrno>

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

StatusOr<FidPtr<fid_mr>> RegisterOnce(const Endpoint& endpoint, void* base, uint64_t bytes,
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
    error = fi_mr_reg(endpoint.domain.get(), base, bytes, access, 0, key, flags, &mr, nullptr);
  }
  if (error != 0) {
    return RegistrationError(error, "fi_mr_reg", bytes);
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
    StatusOr<FidPtr<fid_mr>> mr =
        RegisterOnce(*endpoint_, base, bytes, FabricAccess(access), counter);
    FERRY_RETURN_IF_ERROR(mr.status());
    prepared->mr = std::move(*mr);
  }
  return std::unique_ptr<Registration>(std::move(prepared));
}

StatusOr<MemoryRegion> RegionTable::Adopt(std::unique_ptr<Registration> registration) {
  std::unique_ptr<OfiRegistration> own(static_cast<OfiRegistration*>(registration.release()));
  if (own->mr == nullptr) {
    StatusOr<FidPtr<fid_mr>> mr =
        RegisterOnce(*endpoint_, own->base, own->bytes, FabricAccess(own->access), own->counter);
    FERRY_RETURN_IF_ERROR(mr.status());
    own->mr = std::move(*mr);
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
  region->descriptor = endpoint_->MrMode(FI_MR_LOCAL) ? fi_mr_desc(mr) : nullptr;
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
