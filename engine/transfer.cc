#include "engine/transfer.h"

#include <algorithm>

#include "shm/atomic.h"

namespace ferry::engine {

using shm::TransferLayout;
using shm::TransferState;

namespace {

constexpr uint32_t kMinChunkBytes = 4096;
constexpr uint32_t kMaxChunkBytes = 16 << 20;  // so that no claim keeps a thread busy for long
constexpr uint64_t kMaxChunks = 0xffff;        // of a message; a longer one has larger chunks

// Beyond the last of any message. Before it is matched the claim says what has become of the RTS:
// these words never come again, so that a compare-and-swap decides between the two sides.
constexpr uint32_t kNoChunk = ~uint32_t{0};  // the claims are closed; or the RTS was withdrawn
constexpr uint32_t kUntaken = kNoChunk - 1;
constexpr uint32_t kMoved = kNoChunk - 2;  // announced, but to read is a copy of the source
constexpr uint32_t kTaken = kNoChunk - 3;
constexpr uint32_t kTakenMoved = kNoChunk - 4;

// Beside shm::kOutOfReachOf...: the source to read is `moved_source`.
constexpr uint64_t kSourceRelocated = 4;

constexpr uint64_t ClaimWord(uint32_t generation, uint32_t chunks) {
  return uint64_t{generation} << 32 | chunks;
}

// The words of a matched transfer, read once: the other side of the job can write to them. Acquire:
// see WriteRts.
struct Plan {
  shm::Location source;
  shm::Location destination;
  uint32_t source_rank;
  uint32_t destination_rank;
  uint64_t size_bytes;
  uint64_t chunk_bytes;
  uint32_t chunks;
};

shm::Location ReadLocation(const shm::Location& where) {
  return {shm::LoadAcquire(where.region), 0, shm::LoadAcquire(where.address)};
}

void WriteLocation(shm::Location& where, const shm::Location& value) {
  shm::StoreRelease(where.region, value.region);
  shm::StoreRelease(where.address, value.address);
}

uint32_t ChunkBytesOf(const TransferLayout& slot) {
  return std::clamp(shm::LoadAcquire(slot.chunk_bytes), kMinChunkBytes, kMaxChunkBytes);
}

uint64_t RoundedUp(uint64_t dividend, uint64_t divisor) {
  return dividend / divisor + (dividend % divisor != 0 ? 1 : 0);
}

Plan ReadPlan(const TransferLayout& slot) {
  // Pairs with RelocateSource. A process that reads the source itself meanwhile does no harm.
  const bool is_relocated = (shm::LoadAcquire(slot.out_of_reach) & kSourceRelocated) != 0;
  Plan plan{ReadLocation(is_relocated ? slot.moved_source : slot.source),
            ReadLocation(slot.destination),
            shm::LoadAcquire(slot.source_rank),
            shm::LoadAcquire(slot.destination_rank),
            shm::LoadAcquire(slot.size_bytes),
            ChunkBytesOf(slot),
            0};
  plan.chunk_bytes = std::max(plan.chunk_bytes, RoundedUp(plan.size_bytes, kMaxChunks));
  const uint64_t chunks = RoundedUp(plan.size_bytes, plan.chunk_bytes);
  plan.chunks = static_cast<uint32_t>(std::max<uint64_t>(chunks, 1));
  return plan;
}

// Claims are closed before anything else changes. A claimant that was stopped since an earlier life
// of the slot may read words of both lives; but if it reads one of the new life (release, acquire)
// it finds the claims closed, so its claim fails.
void WriteRts(TransferLayout& slot, uint32_t generation, const TransferRts& rts) {
  shm::Exchange(slot.claim, ClaimWord(generation, kNoChunk), std::memory_order_acq_rel);
  shm::StoreRelease(slot.generation, generation);
  WriteLocation(slot.source, rts.source);
  shm::StoreRelease(slot.size_bytes, rts.size_bytes);
  // A stream needs a while to begin a copy, but no help.
  const bool by_stream = (rts.source.flags & shm::kLocationByStream) != 0;
  shm::StoreRelease(slot.chunk_bytes, by_stream ? kMaxChunkBytes : rts.chunk_bytes);
  shm::StoreRelease(slot.source_rank, rts.source_rank);
  shm::StoreRelease(slot.destination_rank, rts.destination_rank);
  shm::StoreRelaxed(slot.done_chunks, 0);
  shm::StoreRelaxed(slot.error, 0);
  shm::StoreRelaxed(slot.out_of_reach, uint64_t{generation} << 32);
}

// Takes the next chunk of this generation. False: none is left. The receiver takes them from the
// first on, and the sender from the last: so each core mostly copies the same part of a buffer that
// is used again and again, and has it in its cache.
bool Claim(TransferLayout& slot, uint32_t generation, uint32_t chunks, bool from_first,
           uint32_t* chunk) {
  uint64_t claim = shm::LoadRelaxed(slot.claim);
  do {
    if (claim >> 32 != generation || shm::ClaimedChunks(claim) >= chunks) {
      return false;
    }
  } while (!shm::CompareExchange(slot.claim, claim,
                                 claim + (from_first ? 1 : shm::kClaimFromTheLast),
                                 std::memory_order_acq_rel));
  *chunk = static_cast<uint32_t>(from_first ? claim & 0xffff : chunks - 1 - (claim >> 16 & 0xffff));
  return true;
}

// After an error the other chunks need no copy: takes all that are left; returns how many.
uint32_t ClaimRest(TransferLayout& slot, uint32_t generation, uint32_t chunks) {
  uint64_t claim = shm::LoadRelaxed(slot.claim);
  uint32_t next = 0;
  do {
    next = shm::ClaimedChunks(claim);
    if (claim >> 32 != generation || next >= chunks) {
      return 0;
    }
  } while (!shm::CompareExchange(slot.claim, claim, ClaimWord(generation, kNoChunk),
                                 std::memory_order_acq_rel));
  return chunks - next;
}

// Returns true if the slot agrees with all that the caller knows.
bool Agrees(const OwnEnd& own, const Plan& plan) {
  const shm::Location& where = own.is_source ? plan.source : plan.destination;
  const uint32_t rank = own.is_source ? plan.source_rank : plan.destination_rank;
  const uint32_t peer = own.is_source ? plan.destination_rank : plan.source_rank;
  return where.region == own.where.region && where.address == own.where.address &&
         rank == own.rank && peer == own.peer && plan.size_bytes <= own.size_bytes;
}

// Replaces the slot's words by those that the caller knows itself. False: the two contradict.
bool ApplyOwnEnd(const OwnEnd& own, Plan* plan) {
  (own.is_source ? plan->source : plan->destination) = own.where;
  (own.is_source ? plan->source_rank : plan->destination_rank) = own.rank;
  const uint32_t peer = own.is_source ? plan->destination_rank : plan->source_rank;
  return plan->size_bytes <= own.size_bytes && peer == own.peer;
}

constexpr uint64_t kOutOfReachOfBoth = shm::kOutOfReachOfSource | shm::kOutOfReachOfDestination;

// The ends that have found that they cannot move this generation.
uint64_t OutOfReachOf(const TransferLayout& slot, uint32_t generation) {
  const uint64_t ends = shm::LoadAcquire(slot.out_of_reach);
  return ends >> 32 == generation ? ends & kOutOfReachOfBoth : 0;
}

// Notes that the caller's end cannot. Returns true if the other cannot either.
bool FindOutOfReach(TransferLayout& slot, uint32_t generation, uint64_t end) {
  uint64_t ends = shm::LoadRelaxed(slot.out_of_reach);
  do {
    if (ends >> 32 != generation) {
      return false;
    }
  } while (!shm::CompareExchange(slot.out_of_reach, ends, ends | end, std::memory_order_acq_rel));
  return ((ends | end) & kOutOfReachOfBoth) == kOutOfReachOfBoth;
}

Reach At(Reach reach, uint64_t offset) {
  if (reach.mapped != nullptr) {
    reach.mapped += offset;
  }
  reach.address += offset;
  return reach;
}

// Returns true if the slot announces so much in this generation; then the RTS is taken.
bool TakeForMatch(TransferLayout& slot, uint32_t generation, uint64_t size_bytes) {
  // Pairs with AnnounceTransfer: the source is there.
  return shm::LoadAcquire(slot.state) == static_cast<uint32_t>(TransferState::kAnnounced) &&
         shm::LoadAcquire(slot.generation) == generation &&
         size_bytes <= shm::LoadAcquire(slot.size_bytes) &&  // the announcement may say otherwise
         TakeRts(slot, generation);
}

}  // namespace

void AnnounceTransfer(TransferLayout& slot, uint32_t generation, const TransferRts& rts) {
  WriteRts(slot, generation, rts);
  shm::StoreRelease(slot.claim, ClaimWord(generation, kUntaken));
  // Pairs with MatchTransfer: publishes the source.
  shm::StoreRelease(slot.state, static_cast<uint32_t>(TransferState::kAnnounced));
}

bool WithdrawRts(TransferLayout& slot, uint32_t generation) {
  uint64_t untaken = ClaimWord(generation, kUntaken);
  if (!shm::CompareExchange(slot.claim, untaken, ClaimWord(generation, kNoChunk),
                            std::memory_order_acq_rel)) {
    return false;
  }
  shm::StoreRelease(slot.state, static_cast<uint32_t>(TransferState::kIdle));
  return true;
}

// The copy is known before it is announced: release here, acquire in TakeRts.
bool MoveAnnounced(TransferLayout& slot, uint32_t generation, const shm::Location& copy) {
  if (!IsAnnounced(slot, generation)) {
    return false;
  }
  WriteLocation(slot.moved_source, copy);
  uint64_t untaken = ClaimWord(generation, kUntaken);
  return shm::CompareExchange(slot.claim, untaken, ClaimWord(generation, kMoved),
                              std::memory_order_acq_rel);
}

bool IsAnnounced(const TransferLayout& slot, uint32_t generation) {
  return shm::LoadAcquire(slot.claim) == ClaimWord(generation, kUntaken);
}

bool IsRtsThere(const TransferLayout& slot, uint32_t generation) {
  const uint64_t claim = shm::LoadAcquire(slot.claim);
  return claim >> 32 == generation && static_cast<uint32_t>(claim) != kNoChunk;
}

bool TakeRts(TransferLayout& slot, uint32_t generation) {
  uint64_t claim = ClaimWord(generation, kUntaken);
  if (shm::CompareExchange(slot.claim, claim, ClaimWord(generation, kTaken),
                           std::memory_order_acq_rel)) {
    return true;
  }
  if (claim == ClaimWord(generation, kMoved) &&
      shm::CompareExchange(slot.claim, claim, ClaimWord(generation, kTakenMoved),
                           std::memory_order_acq_rel)) {
    return true;
  }
  return claim >> 32 == generation && static_cast<uint32_t>(claim) != kNoChunk;
}

shm::Location SourceOf(const TransferLayout& slot) {
  // Pairs with MoveAnnounced.
  const bool has_moved = static_cast<uint32_t>(shm::LoadAcquire(slot.claim)) == kTakenMoved;
  return ReadLocation(has_moved ? slot.moved_source : slot.source);
}

bool MatchWhole(TransferLayout& slot, uint32_t generation, uint64_t size_bytes) {
  if (size_bytes > ChunkBytesOf(slot) || !TakeForMatch(slot, generation, size_bytes)) {
    return false;
  }
  shm::StoreRelease(slot.size_bytes, size_bytes);
  shm::StoreRelease(slot.claim, ClaimWord(generation, 1));
  shm::StoreRelease(slot.state, static_cast<uint32_t>(TransferState::kMatched));
  return true;
}

bool MatchTransfer(TransferLayout& slot, uint32_t generation, const shm::Location& destination,
                   uint64_t size_bytes) {
  if (!TakeForMatch(slot, generation, size_bytes)) {
    return false;
  }
  WriteLocation(slot.source, SourceOf(slot));
  WriteLocation(slot.destination, destination);
  shm::StoreRelease(slot.size_bytes, size_bytes);
  if ((destination.flags & shm::kLocationByStream) != 0) {
    shm::StoreRelease(slot.chunk_bytes, kMaxChunkBytes);
  }
  shm::StoreRelease(slot.claim, ClaimWord(generation, 0));
  // Pairs with CopyChunk: publishes the destination.
  shm::StoreRelease(slot.state, static_cast<uint32_t>(TransferState::kMatched));
  return true;
}

void DescribeTransfer(TransferLayout& slot, uint32_t generation, const TransferRts& rts,
                      const shm::Location& destination) {
  WriteRts(slot, generation, rts);
  WriteLocation(slot.destination, destination);
  shm::StoreRelease(slot.state, static_cast<uint32_t>(TransferState::kMatched));
}

ChunkResult ClaimChunk(TransferLayout& slot, uint32_t generation, MemoryAccess& memory,
                       const OwnEnd* own, ClaimedChunk* claimed) {
  // Pairs with MatchTransfer: source and destination are there.
  if (shm::LoadAcquire(slot.state) != static_cast<uint32_t>(TransferState::kMatched) ||
      shm::LoadAcquire(slot.claim) >> 32 != generation) {
    return ChunkResult::kNothing;
  }
  Plan plan = ReadPlan(slot);
  if (own != nullptr && !own->certain && !Agrees(*own, plan)) {
    return ChunkResult::kNothing;
  }
  ErrorCode error =
      own == nullptr || ApplyOwnEnd(*own, &plan) ? ErrorCode::kOk : ErrorCode::kInvalidBuffer;
  if (shm::ClaimedChunks(shm::LoadRelaxed(slot.claim)) >= plan.chunks) {
    return ChunkResult::kNothing;
  }
  // Only an end itself can say that it will never reach the other: a helper may reach it.
  const uint64_t own_end = own == nullptr || !own->certain ? 0
                           : own->is_source                ? shm::kOutOfReachOfSource
                                                           : shm::kOutOfReachOfDestination;
  Reach source;
  Reach destination;
  if (const uint64_t out_of_reach = OutOfReachOf(slot, generation);
      out_of_reach == kOutOfReachOfBoth && own != nullptr) {
    error = ErrorCode::kUnsupported;
  } else if ((out_of_reach & own_end) != 0) {
    return ChunkResult::kNothing;  // has asked before, which may have been costly
  }
  if (plan.size_bytes != 0 && error == ErrorCode::kOk) {  // without bytes there may be no buffers
    source = memory.Resolve(plan.source_rank, plan.source, plan.size_bytes);
    destination = memory.Resolve(plan.destination_rank, plan.destination, plan.size_bytes);
    error = source.error != ErrorCode::kOk ? source.error : destination.error;
    if (error == ErrorCode::kOk && (!source.ok() || !destination.ok())) {
      if (!(source.never || destination.never) || own_end == 0) {
        return ChunkResult::kNothing;
      }
      if (!FindOutOfReach(slot, generation, own_end)) {
        return ChunkResult::kLeft;
      }
      error = ErrorCode::kUnsupported;
    }
  }
  uint32_t chunk = 0;
  const bool is_receiver = own != nullptr && !own->is_source;
  if (!Claim(slot, generation, plan.chunks, is_receiver, &chunk)) {
    return ChunkResult::kNothing;
  }
  claimed->error = error;
  claimed->chunks = plan.chunks;
  claimed->size_bytes = 0;
  if (plan.size_bytes != 0 && error == ErrorCode::kOk) {
    const uint64_t offset = uint64_t{chunk} * plan.chunk_bytes;
    claimed->size_bytes = std::min<uint64_t>(plan.chunk_bytes, plan.size_bytes - offset);
    claimed->source = At(source, offset);
    claimed->destination = At(destination, offset);
  }
  return ChunkResult::kCopied;
}

ChunkResult EndChunk(TransferLayout& slot, uint32_t generation, uint32_t chunks, ErrorCode error) {
  uint32_t ended = 1;
  if (error != ErrorCode::kOk) {
    shm::StoreRelaxed(slot.error, static_cast<int32_t>(error));
    ended += ClaimRest(slot, generation, chunks);
  }
  // Release: our bytes; acquire: those of the others. Pairs with itself.
  const uint32_t done = shm::FetchAdd(slot.done_chunks, ended, std::memory_order_acq_rel) + ended;
  if (done != chunks) {
    return ChunkResult::kCopied;
  }
  // Pairs with Look: publishes all bytes.
  shm::StoreRelease(slot.state, static_cast<uint32_t>(TransferState::kDone));
  return ChunkResult::kFinished;
}

ChunkResult CopyChunk(TransferLayout& slot, uint32_t generation, MemoryAccess& memory,
                      const OwnEnd* own) {
  ClaimedChunk claimed;
  const ChunkResult result = ClaimChunk(slot, generation, memory, own, &claimed);
  if (result != ChunkResult::kCopied) {
    return result;
  }
  if (claimed.size_bytes != 0) {
    claimed.error = memory.Copy(claimed.destination, claimed.source, claimed.size_bytes);
  }
  return EndChunk(slot, generation, claimed.chunks, claimed.error);
}

bool IsLeftToSource(const TransferLayout& slot, uint32_t generation) {
  return (OutOfReachOf(slot, generation) & shm::kOutOfReachOfDestination) != 0;
}

bool RelocateSource(TransferLayout& slot, uint32_t generation, const shm::Location& copy) {
  uint64_t ends = shm::LoadAcquire(slot.out_of_reach);
  if ((ends & kSourceRelocated) != 0) {
    return false;  // others may be reading it
  }
  WriteLocation(slot.moved_source, copy);
  do {
    if (ends >> 32 != generation || (ends & shm::kOutOfReachOfDestination) == 0) {
      return false;
    }
  } while (!shm::CompareExchange(slot.out_of_reach, ends,
                                 uint64_t{generation} << 32 | kSourceRelocated,
                                 std::memory_order_acq_rel));
  return true;
}

TransferProgress Look(const TransferLayout& slot, uint32_t generation) {
  if (shm::LoadAcquire(slot.generation) != generation) {
    return {true, ErrorCode::kOk};  // IsReusable let the owner go on
  }
  // Pairs with CopyChunk's kDone.
  const auto state = static_cast<TransferState>(shm::LoadAcquire(slot.state));
  if (state != TransferState::kDone && state != TransferState::kReleased) {
    return {};
  }
  return {true, static_cast<ErrorCode>(shm::LoadRelaxed(slot.error))};
}

void Release(TransferLayout& slot, uint32_t generation) {
  if (shm::LoadAcquire(slot.generation) == generation) {
    // Pairs with IsReusable: we have read all we need.
    shm::StoreRelease(slot.state, static_cast<uint32_t>(TransferState::kReleased));
  }
}

bool IsReusable(const TransferLayout& slot) {
  // Pairs with Release.
  const auto state = static_cast<TransferState>(shm::LoadAcquire(slot.state));
  return state == TransferState::kIdle || state == TransferState::kReleased ||
         (state == TransferState::kDone && shm::LoadRelaxed(slot.error) == 0);
}

}  // namespace ferry::engine
