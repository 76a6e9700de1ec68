// Memory of ranks that belongs to no region, where the home of the core reaches it: registered for
// as long as an offer or a pull needs it, and not kept, so that nothing is left of what the program
// frees.
//
// Only where the transport pins nothing: there, registering is an entry in a table.
//
// Calling thread: the progress thread. Does not block.
#pragma once

#include <cstddef>
#include <cstdint>

#include "progress/registration/pinned_memory.h"
#include "progress/registration/registrar.h"
#include "progress/traffic/home.h"
#include "transports/api/transport.h"

namespace ferry::progress {

class PrivateMemory {
 public:
  // The registrar outlives this. `home` may be null.
  PrivateMemory(transport::Transport& transport, Registrar& registrar, Home* home)
      : registrar_(registrar), home_(transport.capabilities().pins ? nullptr : home) {}

  // As Home::Locate, for memory that may be of no region, too.
  ErrorCode Locate(const ServedRank& rank, uint64_t bytes, NamedBy by, shm::Location* where) const {
    return home_ == nullptr || where->region == 0 ? ErrorCode::kOk
                                                  : home_->Locate(rank, bytes, by, where);
  }

  // Where it lies, for a CPU and for now. Null: it is not reached.
  std::byte* At(const ServedRank& rank, uint64_t address, uint64_t bytes) const {
    return home_ == nullptr ? nullptr : home_->Reach(rank, address, bytes);
  }

  // Where it lies; its registration goes into *pinned. Null: it is not reached, or was refused.
  std::byte* Reach(const ServedRank& rank, uint64_t address, uint64_t bytes,
                   transport::Access access, PinnedMemory* pinned) const {
    std::byte* const base =
        home_ == nullptr || bytes == 0 ? nullptr : home_->Reach(rank, address, bytes);
    if (base == nullptr) {
      return nullptr;
    }
    *pinned = PinnedMemory(registrar_, {.base = base, .bytes = bytes, .access = access});
    return pinned->is_pinned() ? base : nullptr;
  }

 private:
  Registrar& registrar_;
  Home* const home_;
};

}  // namespace ferry::progress
