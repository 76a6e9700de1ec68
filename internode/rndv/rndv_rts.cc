#include "internode/rndv/rndv_rts.h"

namespace ferry::progress {
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
  ClaimableRegion& memory = region->memory;
  if (memory.by_stream && !memory.is_staged) {
    return ErrorCode::kUnsupported;  // its rank was told to stage by itself
  }
  if (offer->size_bytes != 0 || memory.by_stream) {
    const ErrorCode code = memory.by_stream
                               ? registrations.HoldDevice(memory, where.address, offer->size_bytes,
                                                          UseFor::kPeer, now_ns, claim)
                               : registrations.Hold(memory, where.address, offer->size_bytes,
                                                    UseFor::kPeer, now_ns, claim);
    if (memory.by_stream && code != ErrorCode::kOk && code != ErrorCode::kWouldBlock) {
      offer->state = Offer::State::kDevice;
      offer->region = region;
      offer->address = where.address;
      return ErrorCode::kOk;
    }
    if (code != ErrorCode::kOk) {
      return code;
    }
    wire->key = claim->key();
    wire->address = claim->RemoteAddress(memory.begin() + where.address);
  }
  offer->state = Offer::State::kHeap;
  offer->region = region;
  return ErrorCode::kOk;
}

ErrorCode OfferMemory(const PrivateMemory& private_memory, Registrations& registrations,
                      ServedRank& rank, shm::Location* where, uint64_t now_ns, Claim* claim,
                      Offer* offer, WireRts* wire) {
  const ErrorCode code = private_memory.Locate(rank, offer->size_bytes, NamedBy::kRank, where);
  if (code != ErrorCode::kOk) {
    return code;
  }
  if (where->region == 0) {
    return OfferPrivate(private_memory, rank, where->address, now_ns, claim, offer, wire);
  }
  return OfferRegion(registrations, rank, *where, now_ns, claim, offer, wire);
}

ErrorCode OfferPrivate(const PrivateMemory& private_memory, const ServedRank& rank,
                       uint64_t address, uint64_t now_ns, Claim* claim, Offer* offer,
                       WireRts* wire) {
  offer->address = address;
  offer->state = Offer::State::kPrivate;
  if (private_memory.MayKeep(offer->size_bytes)) {
    const ErrorCode code =
        private_memory.Keep(rank, address, offer->size_bytes, UseFor::kPeer, now_ns, claim);
    if (code == ErrorCode::kWouldBlock) {
      return code;
    }
    if (code == ErrorCode::kOk) {
      offer->state = Offer::State::kHeap;
      wire->key = claim->key();
      wire->address = claim->RemoteAddress(reinterpret_cast<const std::byte*>(address));
    }
    return ErrorCode::kOk;
  }
  std::byte* const base = private_memory.Reach(rank, address, offer->size_bytes,
                                               transport::Access::kRemoteRead, &offer->reached);
  if (base != nullptr) {
    offer->state = Offer::State::kHeap;
    wire->key = offer->reached.region().key;
    wire->address = offer->reached.region().remote_base;
  }
  return ErrorCode::kOk;
}

transport::Attachment DataOf(const Offer& offer, const shm::Location& where, const Claim& claim) {
  if (offer.region == nullptr) {
    return {reinterpret_cast<const std::byte*>(where.address), offer.size_bytes,
            offer.reached.is_pinned() ? offer.reached.region().handle : claim.handle()};
  }
  return {offer.region->memory.base + where.address, offer.size_bytes, claim.handle()};
}

bool MayCarry(const Outbound& outbound, const ServedRank& rank, const Offer& offer) {
  const uint64_t bytes = offer.size_bytes;
  const bool is_device = offer.region != nullptr && offer.region->memory.by_stream;
  return offer.state == Offer::State::kHeap && !is_device && bytes <= shm::kRunBytes &&
         bytes <= outbound.max_attachment_bytes() &&
         rank.carried_bytes + bytes <= kMaxCarriedBytes &&
         (bytes <= kMaxStreamedBytes || offer.region == nullptr || offer.region->offered == 0);
}

}  // namespace ferry::progress
