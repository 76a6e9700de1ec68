#include "shm/lane.h"

#include <algorithm>
#include <utility>

#include "shm/fence.h"
#include "shm/segment.h"

// Without it gcc prefetches for reading only. Processors that cannot prefetch for writing ignore
// it.
#if defined(__x86_64__)
#define FERRY_TARGET_PREFETCH_FOR_WRITING __attribute__((target("prfchw")))
#else
#define FERRY_TARGET_PREFETCH_FOR_WRITING
#endif

namespace ferry::shm {
namespace {

// The producer's and consumer's words and the first descriptors.
constexpr uint64_t kOpenedBytes = 4096;

constexpr uint64_t kCacheLineBytes = 64;

}  // namespace

void LaneProducer::Open(uint32_t producer_rank) {
  if (is_open()) {
    return;
  }
  // This only decides who pays for the pages, and when: on failure the first touch tries again. The
  // others are taken as messages come to lie there: most lanes of a crowded node see few.
  (void)Prefault(reinterpret_cast<std::byte*>(lane_), kOpenedBytes);
  StoreRelaxed(lane_->producer.producer_rank, producer_rank);
  // Pairs with is_open: publishes producer_rank.
  StoreRelease(lane_->producer.state, static_cast<uint32_t>(LaneState::kOpen));
}

uint32_t LaneProducer::TryTakeCell() {
  return next_cell_ != kNoCell ? std::exchange(next_cell_, kNoCell) : FindCell();
}

FERRY_TARGET_PREFETCH_FOR_WRITING void LaneProducer::PrepareCell(uint64_t size_bytes) {
  if (next_cell_ == kNoCell) {
    next_cell_ = FindCell();
  }
  if (next_cell_ != kNoCell) {
    const uint8_t* const cell = Cell(next_cell_);
    for (uint64_t at = 0; at < size_bytes; at += kCacheLineBytes) {
      __builtin_prefetch(cell + at, /*for writing*/ 1, /*to stay*/ 3);
    }
  }
}

uint32_t LaneProducer::FindCell() {
  // Starts from the first cell again as soon as that is free, so that a lane takes pages for as
  // many cells as are in use at a time, and the same ones stay in the cache. The order of their
  // release is that of the messages, mostly: then the next cells are free as well. As below.
  if (LoadAcquire(lane_->cell_state[0]) == static_cast<uint8_t>(CellState::kFree)) {
    cell_hint_ = 0;
  }
  for (uint32_t i = 0; i < kLaneCells; ++i) {
    const uint32_t cell = (cell_hint_ + i) % kLaneCells;
    uint8_t& state = lane_->cell_state[cell];
    // Pairs with LaneConsumer::ReleaseCell: the consumer has read the cell. No compare-and-swap is
    // needed: a free cell has no other taker.
    if (LoadAcquire(state) == static_cast<uint8_t>(CellState::kFree)) {
      StoreRelaxed(state, static_cast<uint8_t>(CellState::kInUse));
      cell_hint_ = cell + 1;
      return cell;
    }
  }
  return kNoCell;
}

uint32_t LaneProducer::TryTakeCells(uint32_t count) {
  if (count == 1) {
    return TryTakeCell();
  }
  const auto is_free = [this](uint32_t cell) {
    // As in TryTakeCell.
    return LoadAcquire(lane_->cell_state[cell]) == static_cast<uint8_t>(CellState::kFree);
  };
  uint32_t free = 0;  // so many before `cell`
  for (uint32_t cell = 0; cell < kLaneCells; ++cell) {
    free = is_free(cell) ? free + 1 : 0;
    if (free == count) {
      const uint32_t first = cell + 1 - count;
      for (uint32_t i = first; i <= cell; ++i) {
        StoreRelaxed(lane_->cell_state[i], static_cast<uint8_t>(CellState::kInUse));
      }
      return first;
    }
  }
  return kNoCell;
}

void LaneProducer::AskForRoom() {
  // Pairs with the consumer's notice (RankEngine::NoticeRoom): either it sees this word or the next
  // TryPush sees its head. The fence is for the load of the head, which only acquires.
  Exchange(lane_->producer.waiting, 1U, std::memory_order_seq_cst);
  FullFence();
}

void LaneProducer::ReturnCell(uint32_t cell) {
  cell_hint_ = cell;
  StoreRelaxed(lane_->cell_state[cell], static_cast<uint8_t>(CellState::kFree));
}

void LaneConsumer::ReleaseCell(uint32_t cell) {
  if (!IsCell(cell)) {
    return;
  }
  // Pairs with LaneProducer::TryTakeCell: the cell has been read.
  StoreRelease(lane_->cell_state[cell], static_cast<uint8_t>(CellState::kFree));
}

void LaneConsumer::ReleaseCells(uint32_t first, uint64_t size_bytes) {
  for (uint32_t i = 0; i < CellsFor(std::min<uint64_t>(size_bytes, kRunBytes)); ++i) {
    ReleaseCell(first + i);
  }
}

uint64_t LaneConsumer::Backlog() const {
  const uint64_t head = LoadRelaxed(lane_->consumer.head);
  const uint64_t tail = LoadAcquire(lane_->producer.tail);  // Pairs with LaneProducer::Publish.
  // The tail lags while a message is between its stamp and the tail.
  return tail > head ? std::min<uint64_t>(tail - head, kLaneSlots) : 0;
}

}  // namespace ferry::shm
