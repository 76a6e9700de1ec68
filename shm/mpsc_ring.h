// A bounded ring for many producers and one consumer (shm/layout/mpsc_ring_layout.h).
//
// Producers are ordered by ticket, as in D. Vyukov's bounded queue, and publish by a number in the
// slot. A ring is lossless: a ticket once taken must be published, so TryPush takes one only when
// its slot is free, and a producer that takes one first (Reserve: a single fetch-add, for GPU
// threads) waits for its turn. A slot is free once its ticket is less than a ring's length past the
// head; so a producer reads the head that another producer last saw, and the head itself only when
// that is too old. Producers on devices do the same (gpu_backends/device). Both kinds may share a
// ring.
//
// Killed producers. A producer killed between ticket and publication leaves a hole that the
// consumer cannot tell from a slow producer. PeekStalled shows it; once no live thread can hold
// that ticket (the producers are the threads of one process, and that process is dead), SkipStalled
// steps over it.
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
  // keeps its bytes). Returns false, and takes no ticket, when the ring is full.
  bool TryPush(const void* payload, uint32_t size_bytes);
  // Publishes as TryPush does, and waits for room. Must not be used where the consumer may be gone
  // for good.
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
  // Consumer: steps over `ticket`, which PeekStalled returned. Its producer must be dead. Returns
  // false when it has been published after all.
  bool SkipStalled(uint64_t ticket);

  uint32_t capacity() const { return mask_ + 1; }

 private:
  MpscRing(MpscRingLayout* layout, uint32_t capacity)
      : layout_(layout), slots_(reinterpret_cast<MpscSlot*>(layout + 1)), mask_(capacity - 1) {}

  MpscSlot& SlotOf(uint64_t ticket) const { return slots_[ticket & mask_]; }
  // Returns true if the payload of this ticket has been published.
  bool IsPublished(uint64_t ticket) const {
    return LoadAcquire(SlotOf(ticket).number) == ticket + 1;  // Pairs with Publish.
  }
  bool HasRoom(uint64_t ticket, uint64_t head) const {
    return static_cast<int64_t>(ticket - head) <= static_cast<int64_t>(mask_);
  }

  MpscRingLayout* layout_;
  MpscSlot* slots_;
  uint32_t mask_;
};

inline bool MpscRing::IsTurn(uint64_t ticket) const {
  // Pairs with the store below, by the producer that saw that head.
  if (HasRoom(ticket, LoadAcquire(layout_->head_seen))) {
    return true;
  }
  const uint64_t head = LoadAcquire(layout_->head);  // Pairs with Pop: the slots have been read.
  if (!HasRoom(ticket, head)) {
    return false;
  }
  StoreRelease(layout_->head_seen, head);  // Pairs with the load above. An older one does no harm.
  return true;
}

inline void MpscRing::Publish(uint64_t ticket, const void* payload, uint32_t size_bytes) {
  MpscSlot& slot = SlotOf(ticket);
  std::memcpy(slot.payload, payload, size_bytes);
  StoreRelease(slot.number, ticket + 1);  // Pairs with IsPublished: publishes the payload.
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

inline const uint8_t* MpscRing::Peek() {
  const uint64_t head = LoadRelaxed(layout_->head);
  return IsPublished(head) ? SlotOf(head).payload : nullptr;
}

inline void MpscRing::Pop() {
  // Pairs with IsTurn: the slot has been read.
  StoreRelease(layout_->head, LoadRelaxed(layout_->head) + 1);
}

}  // namespace ferry::shm
