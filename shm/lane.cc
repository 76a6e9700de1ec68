#include "shm/lane.h"

#include <algorithm>

#include "shm/segment.h"

namespace ferry::shm {

void LaneProducer::Open(uint32_t producer_rank) {
  if (is_open()) {
    return;
  }
  // Only a matter of who pays for the pages, and when: on failure the first touch tries again.
  (void)Prefault(reinterpret_cast<std::byte*>(lane_), sizeof(LaneLayout));
  StoreRelaxed(lane_->producer.producer_rank, producer_rank);
  // Pairs with is_open: publishes producer_rank.
  StoreRelease(lane_->producer.state, static_cast<uint32_t>(LaneState::kOpen));
}

uint32_t LaneProducer::TryTakeCell() {
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
  // Pairs with the consumer's notice (RankEngine::NoticeRoom): sequentially consistent, so that
  // either it sees this word or the next TryPush sees its head.
  Exchange(lane_->producer.waiting, 1U, std::memory_order_seq_cst);
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
