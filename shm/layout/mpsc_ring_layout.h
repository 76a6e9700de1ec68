// A bounded ring of 64-byte slots for many producers and one consumer.
//
// Followed in memory by MpscSlot[capacity]. A producer takes tickets by fetch-add; slot `ticket %
// capacity` is its own once the ticket is less than `capacity` past `head`, and it publishes by
// storing `number`. The consumer writes to no slot: each line goes one way only.
#pragma once

#include <cstdint>

#include "shm/layout/layout_check.h"

namespace ferry::shm {

inline constexpr uint32_t kMpscPayloadBytes = 56;

struct alignas(64) MpscSlot {
  uint64_t number;  // of the payload: its ticket + 1
  uint8_t payload[kMpscPayloadBytes];
};
FERRY_ASSERT_LAYOUT(MpscSlot, 64);
FERRY_ASSERT_OFFSET(MpscSlot, number, 0);
FERRY_ASSERT_OFFSET(MpscSlot, payload, 8);

struct alignas(128) MpscRingLayout {
  uint64_t tickets;            // taken so far by producers
  uint64_t head_seen;          // the value of `head` when a producer last had to read it
  alignas(128) uint64_t head;  // consumed so far
  uint64_t ended;              // ErrorCode: why the ring has no consumer any more (0: it has one)
  // For rings of devices. The operations in other ranks' memory with tickets before `over` are
  // over. `failed`, stored before it, is the ErrorCode of the first that has failed and has no
  // answer to report it.
  uint64_t over;
  uint64_t failed;
  alignas(128) uint32_t capacity;  // power of two
  // The rest is for rings of devices (device_ring_layout.h), written by the maker of the ring.
  uint32_t completions;  // how many RingCompletions follow the slots
  uint32_t region;       // of the rank: where the ring lies
  uint32_t reserved0;
  uint64_t completions_offset;  // in it, of the first of them
  uint64_t producer_words;      // address, for the device, of the words used in place of `tickets`
                                // and `head_seen`; 0: these
  uint64_t reserved[12];
};
FERRY_ASSERT_LAYOUT(MpscRingLayout, 384);
FERRY_ASSERT_OFFSET(MpscRingLayout, tickets, 0);
FERRY_ASSERT_OFFSET(MpscRingLayout, head_seen, 8);
FERRY_ASSERT_OFFSET(MpscRingLayout, head, 128);
FERRY_ASSERT_OFFSET(MpscRingLayout, ended, 136);
FERRY_ASSERT_OFFSET(MpscRingLayout, over, 144);
FERRY_ASSERT_OFFSET(MpscRingLayout, failed, 152);
FERRY_ASSERT_OFFSET(MpscRingLayout, capacity, 256);
FERRY_ASSERT_OFFSET(MpscRingLayout, completions, 260);
FERRY_ASSERT_OFFSET(MpscRingLayout, region, 264);
FERRY_ASSERT_OFFSET(MpscRingLayout, completions_offset, 272);
FERRY_ASSERT_OFFSET(MpscRingLayout, producer_words, 280);

}  // namespace ferry::shm
