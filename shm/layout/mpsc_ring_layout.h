// A bounded ring of 64-byte slots for many producers and one consumer (the reverse-offload ring).
//
// Followed in memory by MpscSlot[capacity]. A producer takes a ticket by fetch-add; slot `ticket %
// capacity` is its own once `turn` says so, and it publishes by storing `turn`.
#pragma once

#include <cstdint>

#include "shm/layout/layout_check.h"

namespace ferry::shm {

inline constexpr uint32_t kMpscPayloadBytes = 56;

struct alignas(64) MpscSlot {
  uint64_t turn;  // 2 * lap = free for that lap's producer, 2 * lap + 1 = holds its data
  uint8_t payload[kMpscPayloadBytes];
};
FERRY_ASSERT_LAYOUT(MpscSlot, 64);
FERRY_ASSERT_OFFSET(MpscSlot, turn, 0);
FERRY_ASSERT_OFFSET(MpscSlot, payload, 8);

struct alignas(128) MpscRingLayout {
  uint64_t tickets;                // taken so far by producers
  alignas(128) uint64_t head;      // consumed so far
  alignas(128) uint32_t capacity;  // power of two
  uint32_t reserved0;
  uint64_t reserved[15];
};
FERRY_ASSERT_LAYOUT(MpscRingLayout, 384);
FERRY_ASSERT_OFFSET(MpscRingLayout, tickets, 0);
FERRY_ASSERT_OFFSET(MpscRingLayout, head, 128);
FERRY_ASSERT_OFFSET(MpscRingLayout, capacity, 256);

}  // namespace ferry::shm
