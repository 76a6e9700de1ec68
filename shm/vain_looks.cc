#include "shm/vain_looks.h"

#include <cstdint>

#include "shm/wait_policy.h"

namespace ferry::shm {

namespace {

// A yield to no other thread takes as long as some ten looks.
constexpr uint32_t kLooksPerYield = 512;
constexpr uint32_t kLooksPerYieldInACrowd = 8;

thread_local uint32_t looks_before_yield = kLooksPerYield;

}  // namespace

void NoteVainLook() {
  if (--looks_before_yield != 0) [[likely]] {
    return;
  }
  const bool is_crowded = YieldToOthers() != 0;
  looks_before_yield = is_crowded ? kLooksPerYieldInACrowd : kLooksPerYield;
}

}  // namespace ferry::shm
