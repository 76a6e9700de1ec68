#include "daemon/progress/offers.h"

namespace ferry::daemon {
namespace {

// The most bytes that unanswered offers of one rank carry: as many as one lane has cells for.
constexpr uint64_t kMaxCarriedBytes = uint64_t{shm::kLaneCells} * shm::kCellBytes;
// Longer data goes along only by itself: in a stream RMA, which spares copies, is faster.
constexpr uint64_t kMaxStreamedBytes = 32 << 10;

}  // namespace

ErrorCode OfferRegion(Registrations& registrations, ServedRank& rank, const shm::Location& where,
                      uint64_t now_ns, Claim* claim, Offer* offer, WireRts* wire) {
  ServedRegion* const region = rank.FindRegion(where, offer->size_bytes);
  if (region == nullptr) {
    return ErrorCode::kInvalidBuffer;
  }
  const ClaimableRegion& memory = region->memory;
  if (memory.region->by_stream) {
    if (!memory.region->is_staged()) {
      return ErrorCode::kUnsupported;  // its rank was told to stage by itself
    }
    offer->state = Offer::State::kDevice;
    offer->region = region;
    offer->address = where.address;
    return ErrorCode::kOk;
  }
  if (offer->size_bytes != 0) {
    if (const ErrorCode code = registrations.Hold(memory, where.address, offer->size_bytes,
                                                  UseFor::kPeer, now_ns, claim);
        code != ErrorCode::kOk) {
      return code;
    }
    wire->key = claim->key();
    wire->address = claim->RemoteAddress(memory.base() + where.address);
  }
  offer->state = Offer::State::kHeap;
  offer->region = region;
  return ErrorCode::kOk;
}

bool MayCarry(const Outbound& outbound, const ServedRank& rank, const Offer& offer) {
  const uint64_t bytes = offer.size_bytes;
  return offer.state == Offer::State::kHeap && bytes <= shm::kRunBytes &&
         bytes <= outbound.max_attachment_bytes() &&
         rank.carried_bytes + bytes <= kMaxCarriedBytes &&
         (bytes <= kMaxStreamedBytes || offer.region->offered == 0);
}

}  // namespace ferry::daemon
