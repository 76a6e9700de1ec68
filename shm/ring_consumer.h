// The daemon's end of a ring of devices (shm/layout/device_ring_layout.h).
//
// The ring is the rank's memory, so nothing there is believed: the consumer keeps its position and
// the length of the ring itself, copies each request once, and looks at the copy. A rank that
// scribbles into the ring confuses its own producers only. A ticket that is never published (its
// producer was killed) stops this ring and nothing else.
//
// The consumer takes many requests at once, in a loop that is so short that the processor fetches
// several slots from the producers' caches at the same time; and it writes to none of them, so that
// no line crosses twice.
//
// Calling thread: one. Nothing blocks. The memory outlives this; the capacity is a power of two
// that fits it.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>

#include "common/error_code.h"
#include "shm/atomic.h"
#include "shm/layout/device_ring_layout.h"

namespace ferry::shm {

class RingConsumer {
 public:
  // Consumes from the beginning of a ring, which had no consumer before.
  RingConsumer(MpscRingLayout* layout, uint32_t capacity)
      : layout_(layout), slots_(reinterpret_cast<MpscSlot*>(layout + 1)), mask_(capacity - 1) {}

  // Copies the next requests, as many as there are and `requests` has room for, and gives their
  // slots back. Returns how many; the ticket of the first is the value of head() before the call.
  size_t Take(std::span<RingRequest> requests) {
    size_t count = 0;
    for (; count < requests.size(); ++count) {
      const uint64_t ticket = head_ + count;
      const MpscSlot& slot = slots_[ticket & mask_];
      if (LoadAcquire(slot.number) != ticket + 1) {  // Pairs with the producers' publication.
        break;
      }
      std::memcpy(&requests[count], slot.payload, sizeof(RingRequest));
    }
    if (count != 0) {
      head_ += count;
      StoreRelease(layout_->head, head_);  // Pairs with producers that look for room.
    }
    return count;
  }
  // Copies the next request, and stores its ticket; false: there is none yet.
  bool Take(RingRequest* request, uint64_t* ticket) {
    *ticket = head_;
    return Take({request, 1}) != 0;
  }

  // Ends the ring: producers that wait for room or for an answer stop waiting, with this error.
  void End(ErrorCode error) {
    StoreRelease(layout_->ended, static_cast<uint64_t>(error));  // Pairs with them.
  }

  // Publishes that the operations in other ranks' memory with tickets before `ticket` are over, and
  // the first failure, if any, that no answer has reported.
  void ShowOver(uint64_t ticket, ErrorCode failed) {
    if (failed != ErrorCode::kOk) {
      StoreRelaxed(layout_->failed, static_cast<uint64_t>(failed));
    }
    // Pairs with ferry_device_ring_quiet: publishes the failure, and what gets have brought.
    StoreRelease(layout_->over, ticket);
  }

  uint64_t head() const { return head_; }

  static void Answer(RingCompletion* completion, uint64_t ticket, uint64_t value,
                     ErrorCode status) {
    StoreRelaxed(completion->value, value);
    // Pairs with ferry_device_ring_test: publishes the value, and the daemon's earlier stores.
    StoreRelease(completion->done,
                 ((ticket + 1) << kRingStatusBits) | static_cast<uint64_t>(status));
  }

 private:
  MpscRingLayout* layout_;
  MpscSlot* slots_;
  uint64_t mask_;
  uint64_t head_ = 0;
};

}  // namespace ferry::shm
