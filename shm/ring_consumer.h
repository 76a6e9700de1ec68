// The daemon's end of a ring of devices (shm/layout/device_ring_layout.h).
//
// The ring is the rank's memory, so nothing there is believed: the consumer itself knows its
// position and the length of the ring, copies each request once, and looks at the copy. A rank that
// scribbles into the ring confuses its own producers only. A ticket that is never published (its
// producer was killed) stops this ring and nothing else.
//
// Calling thread: one. Nothing blocks. The memory outlives this; the capacity is a power of two
// that fits it.
#pragma once

#include <cstdint>
#include <cstring>

#include "common/error_code.h"
#include "shm/atomic.h"
#include "shm/layout/device_ring_layout.h"

namespace ferry::shm {

class RingConsumer {
 public:
  // For a ring that nobody has consumed from.
  RingConsumer(MpscRingLayout* layout, uint32_t capacity)
      : layout_(layout),
        slots_(reinterpret_cast<MpscSlot*>(layout + 1)),
        mask_(capacity - 1),
        lap_shift_(static_cast<uint32_t>(__builtin_ctz(capacity))) {}

  // The next request, and the number by which its answer is known. False: there is none yet.
  bool Take(RingRequest* request, uint64_t* ticket) {
    MpscSlot& slot = slots_[head_ & mask_];
    const uint64_t full_turn = (head_ >> lap_shift_) * 2 + 1;
    if (LoadAcquire(slot.turn) != full_turn) {  // Pairs with the producers' publication.
      return false;
    }
    std::memcpy(request, slot.payload, sizeof(*request));
    *ticket = head_++;
    // Pairs with MpscRing::IsTurn: the slot has been read.
    StoreRelease(slot.turn, full_turn + 1);
    if (head_ % kShowEvery == 0) {
      ShowHead();
    }
    return true;
  }

  // Gives the slots of all that was taken to producers that look at the head. After each batch.
  void ShowHead() {
    StoreRelease(layout_->head, head_);  // Pairs with ferry_device_ring_post.
  }

  // Producers that wait for room or for an answer stop, with that.
  void End(ErrorCode error) {
    StoreRelease(layout_->ended, static_cast<uint64_t>(error));  // Pairs with them.
  }

  uint64_t head() const { return head_; }

  static void Answer(RingCompletion* completion, uint64_t ticket, uint64_t value,
                     ErrorCode status) {
    StoreRelaxed(completion->value, value);
    // Pairs with ferry_device_ring_test: publishes the value, and what the daemon did before.
    StoreRelease(completion->done,
                 ((ticket + 1) << kRingStatusBits) | static_cast<uint64_t>(status));
  }

 private:
  static constexpr uint64_t kShowEvery = 32;

  MpscRingLayout* layout_;
  MpscSlot* slots_;
  uint64_t mask_;
  uint32_t lap_shift_;
  uint64_t head_ = 0;
};

}  // namespace ferry::shm
