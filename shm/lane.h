// Producer and consumer ends of a lane (shm/layout/lane_layout.h).
//
// A single-producer single-consumer ring of 64-byte descriptors. A slot holds message number n when
// its stamp equals StampOf(n), so a consumer polls the slot itself: one cache line per message.
// Everything the producer must remember lies in the lane, so another thread, or the progress
// worker, can continue where the last one stopped or was killed. Neither end blocks, allocates or
// enters the kernel (but for LaneProducer::Open).
//
// Killed producers. The stamp is the publication: before it there is no message, after it a whole
// one. A producer killed between stamp and tail leaves the tail one behind; the next push sees the
// stamp at the tail and steps over it. A cell taken but not yet named by a published descriptor is
// lost: at most one per kill, as long as a producer takes one cell per message. A consumer killed
// between consuming a message and giving its cell back loses that cell, too.
//
// Calling thread: a producer end is used by the holder of the sending rank's lease (or the daemon's
// progress thread), a consumer end by the holder of the receiving rank's lease.
#pragma once

#include <cstdint>
#include <cstring>

#include "shm/atomic.h"
#include "shm/layout/lane_layout.h"

namespace ferry::shm {

inline constexpr uint32_t kNoCell = ~uint32_t{0};

// Returns how many neighbouring cells a message takes.
constexpr uint32_t CellsFor(uint64_t size_bytes) {
  return size_bytes <= kCellBytes
             ? 1
             : static_cast<uint32_t>((size_bytes + kCellBytes - 1) / kCellBytes);
}

// The stamp of message number `n` (from 0). Not 0 in the first lap, so that untouched slots hold
// nothing; later it only has to differ from the lap before, and may wrap.
constexpr uint32_t StampOf(uint64_t n) { return static_cast<uint32_t>(n / kLaneSlots) + 1; }

class LaneProducer {
 public:
  LaneProducer() = default;
  explicit LaneProducer(LaneLayout* lane) : lane_(lane) {}

  // False until Bind. Until then only has_lane, is_open and Bind may be called; threads may call
  // Bind at the same time with the same lane.
  bool has_lane() const { return LoadAcquire(lane_) != nullptr; }  // Pairs with Bind.
  void Bind(LaneLayout* lane) { StoreRelease(lane_, lane); }

  // Makes the lane usable at first use: prefaults its first page and marks it open. Idempotent;
  // survives a producer killed half-way. Enters the kernel. A failure to prefault is not one to
  // open: the pages are then taken as they are touched.
  void Open(uint32_t producer_rank);
  bool is_open() const;

  // Returns true if the lane has a free slot; re-reads the consumer's head only when it seems full.
  bool HasRoom() { return HasRoomAt(Tail()); }
  // Publishes a copy of `descriptor` (its stamp is set here). Returns false, and changes nothing,
  // when the lane is full.
  bool TryPush(const Descriptor& descriptor);

  // Returns the slot to fill in place of a copy (all but the stamp; it holds an old message), or
  // null when the lane is full. Publish makes it a message; without that, the next call returns the
  // same slot.
  Descriptor* TryReserve();
  void Publish(Descriptor* reserved);

  // After TryPush found the lane full: asks the consumer to wake this rank once it has made room.
  // Try again afterwards, since room may have come in between.
  void AskForRoom();

  // Takes a free slab cell, or kNoCell. The cell belongs to the producer until a descriptor that
  // names it is pushed; then to the consumer until LaneConsumer::ReleaseCell.
  uint32_t TryTakeCell();
  // Called after a message of `size_bytes` in a cell: takes the next cell ahead, and prefetches its
  // lines while no message waits for them. Lines that the consumer has read are in its core's cache
  // by now: a sender that first looks for a cell, and then writes to it, waits twice.
  void PrepareCell(uint64_t size_bytes);
  // Takes `count` neighbouring cells; returns the first, or kNoCell.
  uint32_t TryTakeCells(uint32_t count);
  void ReturnCell(uint32_t cell);  // not used after all
  uint8_t* Cell(uint32_t cell) const { return lane_->cells[cell]; }

 private:
  Descriptor* SlotOf(uint64_t n) const { return &lane_->slots[n % kLaneSlots]; }
  uint64_t Tail();
  bool HasRoomAt(uint64_t tail);
  uint32_t FindCell();

  LaneLayout* lane_ = nullptr;
  uint64_t known_head_ = 0;
  uint32_t cell_hint_ = 0;
  uint32_t next_cell_ = kNoCell;  // taken ahead
};

class LaneConsumer {
 public:
  LaneConsumer() = default;
  explicit LaneConsumer(LaneLayout* lane) : lane_(lane) {}

  // The next message, or null. It stays valid until the head passes it. Its contents come from the
  // producer, which may be faulty: copy, then check.
  const Descriptor* Peek() const;
  // The word a journal advances: store *HeadWord() + 1 to consume the message that Peek returned.
  uint64_t* HeadWord() const { return &lane_->consumer.head; }
  // Consumes the message that Peek returned, for consumers without a journal (the daemon).
  void Pop();
  // Gives a cell back to the producer; the data in it must not be read any more. Ignores a number
  // that is no cell's.
  void ReleaseCell(uint32_t cell);
  // Gives back all cells in which a message of `size_bytes` lies.
  void ReleaseCells(uint32_t first, uint64_t size_bytes);
  // `cell` comes from a descriptor: check it with IsCell first.
  const uint8_t* Cell(uint32_t cell) const { return lane_->cells[cell]; }
  static constexpr bool IsCell(uint32_t cell) { return cell < kLaneCells; }
  static constexpr bool IsRun(uint32_t first, uint64_t size_bytes) {
    return size_bytes <= kRunBytes && first < kLaneCells &&
           CellsFor(size_bytes) <= kLaneCells - first;
  }
  // Messages waiting, at least (reads the producer's tail). Never more than kLaneSlots.
  uint64_t Backlog() const;

 private:
  LaneLayout* lane_ = nullptr;
};

inline bool LaneProducer::is_open() const {
  const LaneLayout* const lane = LoadAcquire(lane_);  // Pairs with Bind.
  // Pairs with Open.
  return lane != nullptr &&
         LoadAcquire(lane->producer.state) == static_cast<uint32_t>(LaneState::kOpen);
}

// The number of the next message. Its slot already carries its stamp if the last producer was
// killed before it could store the tail: then the message is out, and the tail catches up here.
inline uint64_t LaneProducer::Tail() {
  uint64_t tail = LoadRelaxed(lane_->producer.tail);
  if (LoadRelaxed(SlotOf(tail)->stamp) == StampOf(tail)) [[unlikely]] {
    ++tail;
    StoreRelease(lane_->producer.tail, tail);  // Pairs with LaneConsumer::Backlog.
  }
  return tail;
}

inline bool LaneProducer::HasRoomAt(uint64_t tail) {
  if (tail - known_head_ < kLaneSlots) {
    return true;
  }
  // Pairs with LaneConsumer::Pop and Journal::Commit: the slots before the head are no longer read.
  known_head_ = LoadAcquire(lane_->consumer.head);
  return tail - known_head_ < kLaneSlots;  // false, too, for a head that is past the tail (corrupt)
}

inline Descriptor* LaneProducer::TryReserve() {
  const uint64_t tail = Tail();
  return HasRoomAt(tail) ? SlotOf(tail) : nullptr;
}

inline void LaneProducer::Publish(Descriptor* reserved) {
  const uint64_t tail = LoadRelaxed(lane_->producer.tail);
  // Pairs with LaneConsumer::Peek: publishes the rest of the slot, and the cell that it names.
  StoreRelease(reserved->stamp, StampOf(tail));
  StoreRelease(lane_->producer.tail, tail + 1);  // Pairs with LaneConsumer::Backlog.
}

inline bool LaneProducer::TryPush(const Descriptor& descriptor) {
  Descriptor* slot = TryReserve();
  if (slot == nullptr) {
    return false;
  }
  constexpr size_t kStampBytes = sizeof(descriptor.stamp);
  std::memcpy(reinterpret_cast<uint8_t*>(slot) + kStampBytes,
              reinterpret_cast<const uint8_t*>(&descriptor) + kStampBytes,
              sizeof(Descriptor) - kStampBytes);
  Publish(slot);
  return true;
}

inline const Descriptor* LaneConsumer::Peek() const {
  const uint64_t head = LoadRelaxed(lane_->consumer.head);
  const Descriptor* slot = &lane_->slots[head % kLaneSlots];
  // Pairs with LaneProducer::Publish: acquires the slot and its cell.
  return LoadAcquire(slot->stamp) == StampOf(head) ? slot : nullptr;
}

inline void LaneConsumer::Pop() {
  // Pairs with LaneProducer::HasRoomAt: the slot has been read.
  StoreRelease(lane_->consumer.head, LoadRelaxed(lane_->consumer.head) + 1);
}

}  // namespace ferry::shm
