// Memory of ranks that belongs to no region, where the home of the core reaches it.
//
// Where the transport pins nothing, registering is an entry in a table: it is done for as long as
// an RTS or a rendezvous get needs it (Reach). Where memory is pinned that would be dear: there
// long data stays registered (Keep), if the home watches what the program does with its memory, and
// the rest goes by a stage.
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
  // Shorter data is copied sooner than it is pinned.
  static constexpr uint64_t kLeastKept = 32 << 10;

  // The first three outlive this. `home` may be null.
  PrivateMemory(transport::Transport& transport, Registrar& registrar, Registrations& registrations,
                Home* home);

  // As Home::Locate, for memory that may be of no region, too.
  ErrorCode Locate(const ServedRank& rank, uint64_t bytes, NamedBy by, shm::Location* where) const {
    return home_ == nullptr || where->region == 0 ? ErrorCode::kOk
                                                  : home_->Locate(rank, bytes, by, where);
  }

  // Home::LockOf.
  shm::ElementLock* LockOf(const ServedRank& rank, uint32_t region) const {
    return home_ == nullptr ? nullptr : home_->LockOf(rank, region);
  }

  // Where it lies, for a CPU and for now. Null: it is not reached.
  std::byte* At(const ServedRank& rank, uint64_t address, uint64_t bytes) const {
    return home_ == nullptr ? nullptr : home_->Reach(rank, address, bytes);
  }

  // Where it lies; its registration goes into *pinned. Null: it is not reached, or was refused.
  std::byte* Reach(const ServedRank& rank, uint64_t address, uint64_t bytes,
                   transport::Access access, PinnedMemory* pinned) const;

  // Whether data of this length is to stay registered.
  bool MayKeep(uint64_t bytes) const { return keeps_ && bytes >= kLeastKept; }
  // Has `claim` hold it, as Registrations::Hold says. Everything but kOk and kWouldBlock: it goes
  // by a stage. Only if MayKeep.
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
