#include "internode/rndv/rndv_rts.h"

namespace ferry::progress {
namespace {

// The most bytes that unanswered RTSs of one rank carry: as many as one lane has cells for.
constexpr uint64_t kMaxCarriedBytes = uint64_t{shm::kLaneCells} * shm::kCellBytes;
// Longer data goes along only by itself: in a stream RMA, which spares copies, is faster.
constexpr uint64_t kMaxStreamedBytes = 32 << 10;

}  // namespace

ErrorCode AnnounceRegion(Registrations& registrations, ServedRank& rank, const shm::Location& where,
                         uint64_t now_ns, Claim* claim, SentRts* rts, WireRts* wire) {
  ServedRegion* const region = rank.FindRegion(where, rts->size_bytes);
  if (region == nullptr) {
    return ErrorCode::kInvalidBuffer;
  }
  ClaimableRegion& memory = region->memory;
  if (memory.by_stream && !memory.is_staged) {
    return ErrorCode::kUnsupported;  // its rank was told to stage by itself
  }
  if (rts->size_bytes != 0 || memory.by_stream) {
    const ErrorCode code = memory.by_stream
                               ? registrations.HoldDevice(memory, where.address, rts->size_bytes,
                                                          UseFor::kPeer, now_ns, claim)
                               : registrations.Hold(memory, where.address, rts->size_bytes,
                                                    UseFor::kPeer, now_ns, claim);
    if (memory.by_stream && code != ErrorCode::kOk && code != ErrorCode::kWouldBlock) {
      rts->state = SentRts::State::kDevice;
      rts->region = region;
      rts->address = where.address;
      return ErrorCode::kOk;
    }
    if (code != ErrorCode::kOk) {
      return code;
    }
    wire->key = claim->key();
    wire->address = claim->RemoteAddress(memory.begin() + where.address);
  }
  rts->state = SentRts::State::kHeap;
  rts->region = region;
  return ErrorCode::kOk;
}

ErrorCode AnnounceMemory(const PrivateMemory& private_memory, Registrations& registrations,
                         ServedRank& rank, shm::Location* where, uint64_t now_ns, Claim* claim,
                         SentRts* rts, WireRts* wire) {
  const ErrorCode code = private_memory.Locate(rank, rts->size_bytes, NamedBy::kRank, where);
  if (code != ErrorCode::kOk) {
    return code;
  }
  if (where->region == 0) {
    return AnnouncePrivate(private_memory, rank, where->address, now_ns, claim, rts, wire);
  }
  return AnnounceRegion(registrations, rank, *where, now_ns, claim, rts, wire);
}

ErrorCode AnnouncePrivate(const PrivateMemory& private_memory, const ServedRank& rank,
                          uint64_t address, uint64_t now_ns, Claim* claim, SentRts* rts,
                          WireRts* wire) {
  rts->address = address;
  rts->state = SentRts::State::kPrivate;
  if (private_memory.MayKeep(rts->size_bytes)) {
    const ErrorCode code =
        private_memory.Keep(rank, address, rts->size_bytes, UseFor::kPeer, now_ns, claim);
    if (code == ErrorCode::kWouldBlock) {
      return code;
    }
    if (code == ErrorCode::kOk) {
      rts->state = SentRts::State::kHeap;
      wire->key = claim->key();
      wire->address = claim->RemoteAddress(reinterpret_cast<const std::byte*>(address));
    }
    return ErrorCode::kOk;
  }
  std::byte* const base = private_memory.Reach(rank, address, rts->size_bytes,
                                               transport::Access::kRemoteRead, &rts->reached);
  if (base != nullptr) {
    rts->state = SentRts::State::kHeap;
    wire->key = rts->reached.region().key;
    wire->address = rts->reached.region().remote_base;
  }
  return ErrorCode::kOk;
}

transport::Attachment DataOf(const SentRts& rts, const shm::Location& where, const Claim& claim) {
  if (rts.region == nullptr) {
    return {reinterpret_cast<const std::byte*>(where.address), rts.size_bytes,
            rts.reached.is_pinned() ? rts.reached.region().handle : claim.handle()};
  }
  return {rts.region->memory.base + where.address, rts.size_bytes, claim.handle()};
}

bool MayCarry(const Outbound& outbound, const ServedRank& rank, const SentRts& rts) {
  const uint64_t bytes = rts.size_bytes;
  const bool is_device = rts.region != nullptr && rts.region->memory.by_stream;
  return rts.state == SentRts::State::kHeap && !is_device && bytes <= shm::kRunBytes &&
         bytes <= outbound.max_attachment_bytes() &&
         rank.carried_bytes + bytes <= kMaxCarriedBytes &&
         (bytes <= kMaxStreamedBytes || rts.region == nullptr || rts.region->announced == 0);
}

}  // namespace ferry::progress
