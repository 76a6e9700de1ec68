// Ends requests. Several may notice the end of a transfer at once: the thread that waits for it,
// one that helps it along, an engine that learns of a death.
#pragma once

#include <cstdint>

#include "shm/atomic.h"
#include "shm/layout/request_layout.h"

namespace ferry::engine {

static_assert(offsetof(shm::RequestLayout, generation) == offsetof(shm::RequestLayout, state) + 4,
              "state and generation are compared and swapped as one word");

// A bit of RequestLayout::flags that the rank alone looks at: a send that the application takes for
// over. Its failure says nothing to the application.
inline constexpr uint32_t kRequestUnwatched = 1U << 30;

// Moves a slot that still has this generation from kTransferring to kComplete. False: another
// thread or process ended it, and it may be another request by now. Any thread, with or without the
// lease.
inline bool EndTransfer(shm::RequestLayout& slot, uint32_t generation) {
  const uint64_t life = uint64_t{generation} << 32;
  uint64_t expected = life | static_cast<uint32_t>(shm::RequestState::kTransferring);
  // Pairs with the rank's test and wait: publishes the status words.
  return shm::CompareExchange(shm::PairAt(slot.state), expected,
                              life | static_cast<uint32_t>(shm::RequestState::kComplete),
                              std::memory_order_acq_rel);
}

}  // namespace ferry::engine
