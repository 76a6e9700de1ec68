// A counter: a 64-bit word that only grows; waiters compare it with a threshold.
#pragma once

#include <cstdint>

#include "shm/layout/layout_check.h"

namespace ferry::shm {

// Added to a counter that fails: every "greater or equal" wait fires, and the value shows why.
inline constexpr uint64_t kCounterFailure = uint64_t{1} << 62;

struct alignas(64) CounterLayout {
  uint64_t value;
  int32_t error;  // ErrorCode, valid once value >= kCounterFailure; stored before the value
  uint32_t reserved0;
  uint64_t reserved[6];
};
FERRY_ASSERT_LAYOUT(CounterLayout, 64);
FERRY_ASSERT_OFFSET(CounterLayout, value, 0);
FERRY_ASSERT_OFFSET(CounterLayout, error, 8);

}  // namespace ferry::shm
