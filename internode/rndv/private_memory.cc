#include "internode/rndv/private_memory.h"

#include <memory>

namespace ferry::progress {
namespace {

// The region covers all addresses of a process but its first page, since no memory begins at 0.
constexpr uintptr_t kFirstAddress = 4096;
constexpr uint64_t kAllBytes = (uint64_t{1} << 57) - kFirstAddress;
// A region number that no other region has.
constexpr uint64_t kAllRegion = UINT64_MAX;

}  // namespace

PrivateMemory::PrivateMemory(transport::Transport& transport, Registrar& registrar,
                             Registrations& registrations, Home* home)
    : registrar_(registrar),
      registrations_(registrations),
      home_(home),
      registers_(!transport.capabilities().pins),
      keeps_(!registers_ && home != nullptr && home->WatchesMemory()) {
  all_.base = reinterpret_cast<std::byte*>(kFirstAddress);
  all_.size_bytes = kAllBytes;
  all_.identity.region = kAllRegion;
  all_.name = "the rank's memory";
  // The home notes memory that the program unmaps after Watch, so that its registration ends, too.
  all_.pin = [&transport, home](
                 std::byte* base,
                 uint64_t bytes) -> StatusOr<std::unique_ptr<transport::Registration>> {
    const auto begin = reinterpret_cast<uintptr_t>(base);
    FERRY_RETURN_IF_ERROR(home->Watch({begin, begin + bytes}));
    return transport.PrepareMemory(base, bytes, transport::Access::kRemoteRead);
  };
}

std::byte* PrivateMemory::Reach(const ServedRank& rank, uint64_t address, uint64_t bytes,
                                transport::Access access, PinnedMemory* pinned) const {
  std::byte* const base =
      home_ == nullptr || !registers_ || bytes == 0 ? nullptr : home_->Reach(rank, address, bytes);
  if (base == nullptr) {
    return nullptr;
  }
  *pinned = PinnedMemory(registrar_, {.base = base, .bytes = bytes, .access = access});
  return pinned->is_pinned() ? base : nullptr;
}

ErrorCode PrivateMemory::Keep(const ServedRank& rank, uint64_t address, uint64_t bytes, UseFor use,
                              uint64_t now_ns, Claim* claim) const {
  if (home_->Reach(rank, address, bytes) == nullptr) {
    return ErrorCode::kInvalidBuffer;
  }
  gone_.clear();
  home_->TakeGone(&gone_);
  for (const MemoryRange& range : gone_) {
    registrations_.Forget(all_, range.begin, range.end);
  }
  return registrations_.TryHold(all_, address - kFirstAddress, bytes, use, now_ns, claim);
}

}  // namespace ferry::progress
