#include "transports/tcp/tcp_memory.h"

#include <sys/random.h>

#include <cerrno>
#include <string>

namespace ferry::transport {

StatusOr<std::unique_ptr<Registration>> TcpMemory::Prepare(void* base, uint64_t bytes,
                                                           Access access) {
  const auto start = reinterpret_cast<uintptr_t>(base);
  if (base == nullptr || bytes == 0 || start + bytes < start) {
    return Status(ErrorCode::kInvalidArgument,
                  "PrepareMemory wants an address and at least one byte, within the address space; "
                  "got " +
                      std::to_string(bytes) + " bytes");
  }
  auto prepared = std::make_unique<TcpRegistration>();
  prepared->base = static_cast<std::byte*>(base);
  prepared->bytes = bytes;
  prepared->access = access;
  return std::unique_ptr<Registration>(std::move(prepared));
}

StatusOr<uint64_t> TcpMemory::RandomKey() {
  if (keys_left_ == 0) {
    if (getrandom(keys_.data(), sizeof(keys_), 0) != static_cast<ssize_t>(sizeof(keys_))) {
      return StatusFromErrno(errno, "getrandom");
    }
    keys_left_ = keys_.size();
  }
  return keys_[--keys_left_];
}

StatusOr<MemoryRegion> TcpMemory::Adopt(std::unique_ptr<Registration> registration) {
  const std::unique_ptr<TcpRegistration> own(static_cast<TcpRegistration*>(registration.release()));
  uint64_t key = 0;
  while (key == 0 || by_key_.contains(key)) {
    StatusOr<uint64_t> random = RandomKey();
    FERRY_RETURN_IF_ERROR(random.status());
    key = *random;
  }
  const RegionHandle handle = regions_.Insert();
  *regions_.Find(handle) = {own->base, own->bytes, own->access, key};
  by_key_.emplace(key, handle);
  return MemoryRegion{handle, key, /*remote_base=*/0};
}

std::unique_ptr<Registration> TcpMemory::Release(RegionHandle handle) {
  const TcpRegion* region = regions_.Find(handle);
  auto registration = std::make_unique<TcpRegistration>();
  registration->base = region->base;
  registration->bytes = region->bytes;
  registration->access = region->access;
  by_key_.erase(region->key);
  regions_.Erase(handle);
  return registration;
}

TcpRegion* TcpMemory::FindForPeer(uint64_t key, uint64_t address, uint64_t bytes, Access access) {
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) {
    return nullptr;
  }
  TcpRegion* region = regions_.Find(found->second);
  const bool within = address <= region->bytes && bytes <= region->bytes - address;
  return within && Includes(region->access, access) ? region : nullptr;
}

}  // namespace ferry::transport
