// The progress lease: its holder may drain a rank's lanes and change its match table.
#pragma once

#include <cstdint>

#include "shm/layout/layout_check.h"

namespace ferry::shm {

// Lease word: 0 = free, otherwise the holder's id, plus kLeaseWanted when a thread waits for it,
// plus kLeaseBiased when the rank keeps it: then the rank's use shows in `owner`, and the word only
// names another process that has taken the lease from it for a moment.
inline constexpr uint32_t kLeaseFree = 0;
inline constexpr uint32_t kLeaseWanted = 0x8000'0000U;
inline constexpr uint32_t kLeaseBiased = 0x2000'0000U;
// Holder ids: a rank's thread uses its thread id; the daemon's progress worker this one.
inline constexpr uint32_t kLeaseWorker = 0x4000'0000U;

struct alignas(128) LeaseLayout {
  uint32_t word;
  uint32_t owner;      // biased: the rank's thread that is in it; 0 = none
  uint64_t handovers;  // times a holder gave way to a waiter (statistics)
  uint64_t reserved[14];
};
FERRY_ASSERT_LAYOUT(LeaseLayout, 128);
FERRY_ASSERT_OFFSET(LeaseLayout, word, 0);
FERRY_ASSERT_OFFSET(LeaseLayout, owner, 4);
FERRY_ASSERT_OFFSET(LeaseLayout, handovers, 8);

}  // namespace ferry::shm
