#include "shm/mpsc_ring.h"

#include <bit>
#include <string>

namespace ferry::shm {
Status MpscRing::Initialize(MpscRingLayout* layout, uint32_t capacity) {
  if (!std::has_single_bit(capacity)) {
    return {ErrorCode::kInvalidArgument,
            "ring capacity " + std::to_string(capacity) + " is not a power of two"};
  }
  StoreRelease(layout->capacity, capacity);  // Pairs with Attach.
  return {};
}

StatusOr<MpscRing> MpscRing::Attach(MpscRingLayout* layout, uint64_t size_bytes) {
  if (size_bytes < sizeof(MpscRingLayout)) {
    return Status(ErrorCode::kCorrupt,
                  "ring of " + std::to_string(size_bytes) + " bytes: too small for its header");
  }
  const uint32_t capacity = LoadAcquire(layout->capacity);  // Pairs with Initialize.
  if (capacity == 0) {
    return Status(ErrorCode::kNotInitialized, "ring has no capacity yet: try again");
  }
  if (!std::has_single_bit(capacity) || SizeBytes(capacity) > size_bytes) {
    return Status(ErrorCode::kCorrupt, "ring of " + std::to_string(size_bytes) +
                                           " bytes claims a capacity of " +
                                           std::to_string(capacity));
  }
  return MpscRing(layout, capacity);
}

void MpscRing::Push(const void* payload, uint32_t size_bytes, const WaitPolicy& policy) {
  const uint64_t ticket = Reserve();
  Waiter waiter(policy);
  while (!IsTurn(ticket)) {
    waiter.Idle();  // there is no word to sleep on: it goes on yielding
  }
  Publish(ticket, payload, size_bytes);
}

std::optional<uint64_t> MpscRing::PeekStalled() {
  const uint64_t head = LoadRelaxed(layout_->head);
  const bool taken = LoadRelaxed(layout_->tickets) > head;
  return taken && !IsPublished(head) ? std::optional(head) : std::nullopt;
}

bool MpscRing::SkipStalled(uint64_t ticket) {
  if (LoadRelaxed(layout_->head) != ticket || IsPublished(ticket)) {
    return false;
  }
  Pop();
  return true;
}

}  // namespace ferry::shm
