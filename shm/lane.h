// Producer and consumer ends of a lane (shm/layout/lane_layout.h).
//
// A single-producer single-consumer ring of 64-byte descriptors. A slot holds message number n when its
// stamp equals StampOf(n), so a consumer polls the slot itself: one cache line per message. Everything
// the producer must remember lies in the lane, so another thread, or the progress worker, can continue
// where the last one stopped or was killed. Neither end blocks, allocates or enters the kernel.
//
// Calling thread: a producer end is used by the holder of the sending rank's lease (or the daemon's
// progress thread), a consumer end by the holder of the receiving rank's lease.
#pragma once

#include <cstdint>

#include "shm/layout/lane_layout.h"

namespace ferry::shm {

inline constexpr uint32_t kNoCell = ~uint32_t{0};

// The stamp of message number `n` (from 0): never 0, so that untouched slots hold nothing.
constexpr uint32_t StampOf(uint64_t n) { return static_cast<uint32_t>(n / kLaneSlots) + 1; }

class LaneProducer {
 public:
  LaneProducer() = default;
  explicit LaneProducer(LaneLayout* lane) : lane_(lane) {}

  // Makes the lane usable at first use: prefaults its pages and marks it open. Idempotent; survives a
  // producer killed half-way.
  void Open(uint32_t producer_rank);
  bool is_open() const;

  // Free slots as far as known; re-reads the consumer's head only when it looks full.
  bool HasRoom();
  // Publishes a copy of `descriptor` (its stamp is set here). Returns false, and changes nothing,
  // when the lane is full.
  bool TryPush(const Descriptor& descriptor);

  // Takes a free slab cell, or kNoCell. The cell belongs to the producer until a descriptor that
  // names it is pushed; then to the consumer until LaneConsumer::ReleaseCell.
  uint32_t TryTakeCell();
  void ReturnCell(uint32_t cell);  // not used after all
  uint8_t* Cell(uint32_t cell) const { return lane_->cells[cell]; }

 private:
  LaneLayout* lane_ = nullptr;
  uint64_t known_head_ = 0;
  uint32_t cell_hint_ = 0;
};

class LaneConsumer {
 public:
  LaneConsumer() = default;
  explicit LaneConsumer(LaneLayout* lane) : lane_(lane) {}

  // The next message, or null. It stays valid until the head passes it.
  const Descriptor* Peek() const;
  // The word a journal advances: store *HeadWord() + 1 to consume what Peek returned.
  uint64_t* HeadWord() const { return &lane_->consumer.head; }
  // Consumes what Peek returned, for consumers without a journal (the daemon).
  void Pop();
  // Gives a cell back to the producer; the data in it must not be read any more.
  void ReleaseCell(uint32_t cell);
  const uint8_t* Cell(uint32_t cell) const { return lane_->cells[cell]; }
  // Messages waiting, at least (reads the producer's tail).
  uint64_t Backlog() const;

 private:
  LaneLayout* lane_ = nullptr;
};

}  // namespace ferry::shm
