// A bounded ring for many producers and one consumer (shm/layout/mpsc_ring_layout.h).
//
// The bounded queue with a turn per slot, after D. Vyukov. Producers are ordered by ticket. A ring
// is lossless: a ticket once taken must be published, so TryPush takes one only when its slot is
// free, and a producer that takes one first (Reserve: a single fetch-add, for GPU threads) waits
// for its turn. Instead of its slot it may look at the head, and at what others last saw of it: it
// waits only where its ticket is a ring's length past that. So do producers on devices, for whom
// reading a slot is dear (gpu_backends/device). Both kinds may share a ring.
//
// Killed producers. One killed between ticket and publication leaves a hole that the consumer
// cannot tell from a slow producer. PeekStalled shows it; once nobody alive can hold that ticket
// (the producers are the threads of one process, and that process is dead), SkipStalled steps over
// it.
//
// Calling thread: any number of producers; one consumer at a time. Only Push blocks (it yields).
// Layout and slots lie in the same mapping, which must outlive the ring.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>

#include "common/status.h"
#include "shm/atomic.h"
#include "shm/layout/mpsc_ring_layout.h"
#include "shm/wait_policy.h"

namespace ferry::shm {

class MpscRing {
 public:
  // Bytes of a ring with `capacity` slots.
  static constexpr uint64_t SizeBytes(uint32_t capacity) {
    return sizeof(MpscRingLayout) + uint64_t{capacity} * sizeof(MpscSlot);
  }
  // Prepares zeroed memory of SizeBytes(capacity). kInvalidArgument: not a power of two, or
  // below 2.
  static Status Initialize(MpscRingLayout* layout, uint32_t capacity);
  // A ring in `size_bytes` of shared memory. kNotInitialized: try again once its owner has made it;
  // kCorrupt: the capacity found there cannot be, or does not fit.
  static StatusOr<MpscRing> Attach(MpscRingLayout* layout, uint64_t size_bytes);

  // Producer: publishes a copy of `size_bytes` (at most kMpscPayloadBytes; the rest of the slot
  // keeps what it held). Returns false, and takes no ticket, when the ring is full.
  bool TryPush(const void* payload, uint32_t size_bytes);
  // The same, waiting for room. Must not be used where the consumer may be gone for good.
  void Push(const void* payload, uint32_t size_bytes, const WaitPolicy& policy = {});

  // Producer, in three steps. The ticket must be published, whatever happens.
  uint64_t Reserve() { return FetchAdd(layout_->tickets, 1, std::memory_order_relaxed); }
  bool IsTurn(uint64_t ticket) const;
  void Publish(uint64_t ticket, const void* payload, uint32_t size_bytes);

  // Consumer: the next payload (kMpscPayloadBytes), or null. It stays valid until Pop.
  const uint8_t* Peek();
  void Pop();

  // Consumer: the ticket at the head if it has been taken but not published.
  std::optional<uint64_t> PeekStalled();
  // Consumer: gives `ticket`, which PeekStalled returned, up. Its producer must be dead. Returns
  // false when it has been published after all.
  bool SkipStalled(uint64_t ticket);

  uint32_t capacity() const { return mask_ + 1; }

 private:
  MpscRing(MpscRingLayout* layout, uint32_t capacity)
      : layout_(layout),
        slots_(reinterpret_cast<MpscSlot*>(layout + 1)),
        mask_(capacity - 1),
        lap_shift_(static_cast<uint32_t>(__builtin_ctz(capacity))) {}

  MpscSlot& SlotOf(uint64_t ticket) const { return slots_[ticket & mask_]; }
  uint64_t FreeTurn(uint64_t ticket) const { return (ticket >> lap_shift_) * 2; }
  uint64_t FullTurn(uint64_t ticket) const { return FreeTurn(ticket) + 1; }
  uint64_t ConsumedTurn(uint64_t ticket) const { return FreeTurn(ticket) + 2; }
  uint64_t Head();

  MpscRingLayout* layout_;
  MpscSlot* slots_;
  uint32_t mask_;
  uint32_t lap_shift_;
};

inline bool MpscRing::IsTurn(uint64_t ticket) const {
  // Pairs with Pop: the slot has been read.
  return LoadAcquire(SlotOf(ticket).turn) == FreeTurn(ticket);
}

inline void MpscRing::Publish(uint64_t ticket, const void* payload, uint32_t size_bytes) {
  MpscSlot& slot = SlotOf(ticket);
  std::memcpy(slot.payload, payload, size_bytes);
  StoreRelease(slot.turn, FullTurn(ticket));  // Pairs with Peek: publishes the payload.
}

inline bool MpscRing::TryPush(const void* payload, uint32_t size_bytes) {
  uint64_t ticket = LoadRelaxed(layout_->tickets);
  for (;;) {
    if (IsTurn(ticket)) {
      if (CompareExchange(layout_->tickets, ticket, ticket + 1, std::memory_order_acquire)) {
        Publish(ticket, payload, size_bytes);
        return true;
      }
      continue;  // `ticket` is now another's next one
    }
    const uint64_t latest = LoadRelaxed(layout_->tickets);
    if (latest == ticket) {
      return false;  // the slot of the next ticket still holds the lap before
    }
    ticket = latest;
  }
}

// The number of the next ticket to consume. A consumer killed half-way through Pop has given the
// slot back but not moved the head: it moves here.
inline uint64_t MpscRing::Head() {
  uint64_t head = LoadRelaxed(layout_->head);
  if (LoadRelaxed(SlotOf(head).turn) >= ConsumedTurn(head)) [[unlikely]] {
    StoreRelaxed(layout_->head, ++head);
  }
  return head;
}

inline const uint8_t* MpscRing::Peek() {
  const uint64_t head = Head();
  MpscSlot& slot = SlotOf(head);
  return LoadAcquire(slot.turn) == FullTurn(head) ? slot.payload : nullptr;  // Pairs with Publish.
}

inline void MpscRing::Pop() {
  const uint64_t head = LoadRelaxed(layout_->head);
  StoreRelease(SlotOf(head).turn,
               ConsumedTurn(head));       // Pairs with IsTurn: the slot has been read.
  StoreRelease(layout_->head, head + 1);  // Pairs with producers that look at it instead.
}

}  // namespace ferry::shm
