// PrivateMemory: memory of ranks that belongs to no region, where the home of the core reaches it.
//
// Where the transport pins nothing, registering is an entry in a table: memory is registered for as
// long as an RTS or a rendezvous get needs it (Reach). Where registering pins memory that would
// cost too much: there long data stays registered (Keep), if the home watches the program's changes
// of its mappings, and the rest goes through staging blocks.
//
// Calling thread: the progress thread. Does not block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "internode/delivery/home.h"
#include "internode/registration/pinned_memory.h"
#include "internode/registration/registrar.h"
#include "internode/registration/registrations.h"
#include "transports/api/transport.h"

namespace ferry::progress {

class PrivateMemory {
 public:
  // Shorter data is not pinned, since copying it takes less time.
  static constexpr uint64_t kLeastKept = 32 << 10;

  // The first three references outlive this. `home` may be null.
  PrivateMemory(transport::Transport& transport, Registrar& registrar, Registrations& registrations,
                Home* home);

  // Like Home::Locate, also for memory of no region.
  ErrorCode Locate(const ServedRank& rank, uint64_t bytes, NamedBy by, shm::Location* where) const {
    return home_ == nullptr || where->region == 0 ? ErrorCode::kOk
                                                  : home_->Locate(rank, bytes, by, where);
  }

  // Returns true in the core of a rank.
  bool has_home() const { return home_ != nullptr; }

  // Like Home::Land; kUnsupported without a home.
  ErrorCode Land(const ServedRank& rank, uint32_t request, uint64_t bytes,
                 shm::Location* where) const {
    return home_ == nullptr ? ErrorCode::kUnsupported : home_->Land(rank, request, bytes, where);
  }

  // Like Home::LockOf; null without a home.
  shm::ElementLock* LockOf(const ServedRank& rank, uint32_t region) const {
    return home_ == nullptr ? nullptr : home_->LockOf(rank, region);
  }

  // Returns where the memory is mapped, for a CPU and for now. Null: it is not reached.
  std::byte* At(const ServedRank& rank, uint64_t address, uint64_t bytes) const {
    return home_ == nullptr ? nullptr : home_->Reach(rank, address, bytes);
  }

  // Registers the memory, and returns where it is mapped; *pinned gets the registration. Null: the
  // memory is not reached, or the registration was refused.
  std::byte* Reach(const ServedRank& rank, uint64_t address, uint64_t bytes,
                   transport::Access access, PinnedMemory* pinned) const;

  // Returns true if data of this length is to stay registered.
  bool MayKeep(uint64_t bytes) const { return keeps_ && bytes >= kLeastKept; }
  // Makes `claim` hold the memory, as Registrations::Hold says. Call it only if MayKeep returns
  // true. kOk and kWouldBlock as there; any other error: the data goes through staging blocks.
  ErrorCode Keep(const ServedRank& rank, uint64_t address, uint64_t bytes, UseFor use,
                 uint64_t now_ns, Claim* claim) const;

 private:
  Registrar& registrar_;
  Registrations& registrations_;
  Home* const home_;
  const bool registers_;
  const bool keeps_;
  ClaimableRegion all_;  // the memory of this process
  mutable std::vector<MemoryRange> gone_;
};

}  // namespace ferry::progress
