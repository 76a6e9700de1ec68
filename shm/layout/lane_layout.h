// A lane: one sender's ring of descriptors into one receiver's inbox, with its slab of cells.
//
// A lane lies in the receiver's inbox at a fixed place per sender. Its pages stay untouched until
// the sender opens it (a memfd is sparse), so peers that never talk cost nothing.
#pragma once

#include <cstdint>

#include "shm/layout/descriptor.h"
#include "shm/layout/layout_check.h"

namespace ferry::shm {

inline constexpr uint32_t kLaneSlots = 256;  // power of two
inline constexpr uint32_t kLaneCells = 64;   // one cache line of cell states
inline constexpr uint32_t kCellBytes = 8192;
// The longest message that lies in neighbouring cells. Only the daemon writes such messages.
inline constexpr uint32_t kRunCells = 8;
inline constexpr uint32_t kRunBytes = kRunCells * kCellBytes;

enum class LaneState : uint32_t { kUnused = 0, kOpen = 1 };

enum class CellState : uint8_t { kFree = 0, kInUse = 1 };

// Written by the producer only.
struct alignas(128) LaneProducerWords {
  uint32_t state;  // LaneState
  uint32_t producer_rank;
  uint64_t tail;     // descriptors pushed so far; a new producer thread continues here
  uint32_t waiting;  // 1: the producer found the lane full and wants to be woken when there is room
  uint32_t reserved0;
  uint64_t reserved[13];
};
FERRY_ASSERT_LAYOUT(LaneProducerWords, 128);

// Written by the consumer only (through its journal).
struct alignas(128) LaneConsumerWords {
  uint64_t head;  // descriptors consumed so far
  uint64_t reserved[15];
};
FERRY_ASSERT_LAYOUT(LaneConsumerWords, 128);

struct alignas(4096) LaneLayout {
  LaneProducerWords producer;
  LaneConsumerWords consumer;
  alignas(128) uint8_t cell_state[kLaneCells];  // CellState: producer takes, consumer gives back
  alignas(128) Descriptor slots[kLaneSlots];
  alignas(4096) uint8_t cells[kLaneCells][kCellBytes];
};
FERRY_ASSERT_LAYOUT(LaneLayout, 544768);
FERRY_ASSERT_OFFSET(LaneLayout, producer, 0);
FERRY_ASSERT_OFFSET(LaneLayout, consumer, 128);
FERRY_ASSERT_OFFSET(LaneLayout, cell_state, 256);
FERRY_ASSERT_OFFSET(LaneLayout, slots, 384);
FERRY_ASSERT_OFFSET(LaneLayout, cells, 20480);

}  // namespace ferry::shm
