#include "engine/transfer.h"

#include <algorithm>

#include "shm/atomic.h"

namespace ferry::engine {

using shm::TransferLayout;
using shm::TransferState;

namespace {

constexpr uint32_t kMinChunkBytes = 4096;

// The words of a matched transfer, read once: the other side of the job can write to them.
struct Plan {
  shm::Location source;
  shm::Location destination;
  uint32_t source_rank;
  uint32_t destination_rank;
  uint64_t size_bytes;
  uint32_t chunk_bytes;
  uint32_t chunks;
};

Plan ReadPlan(const TransferLayout& slot) {
  Plan plan{slot.source,
            slot.destination,
            slot.source_rank,
            slot.destination_rank,
            slot.size_bytes,
            std::max(slot.chunk_bytes, kMinChunkBytes),
            0};
  const uint64_t chunks = (plan.size_bytes + plan.chunk_bytes - 1) / plan.chunk_bytes;
  plan.chunks = static_cast<uint32_t>(std::clamp<uint64_t>(chunks, 1, ~uint32_t{0}));
  return plan;
}

// Takes the next chunk of this generation. False: none is left.
bool Claim(TransferLayout& slot, uint32_t generation, uint32_t chunks, uint32_t* chunk) {
  uint64_t claim = shm::LoadRelaxed(slot.claim);
  do {
    *chunk = static_cast<uint32_t>(claim);
    if (static_cast<uint32_t>(claim >> 32) != generation || *chunk >= chunks) {
      return false;
    }
  } while (!shm::CompareExchange(slot.claim, claim, claim + 1, std::memory_order_acq_rel));
  return true;
}

ErrorCode CopyPart(const Plan& plan, uint32_t chunk, const Reach& destination, const Reach& source,
                   MemoryAccess& memory) {
  const uint64_t offset = uint64_t{chunk} * plan.chunk_bytes;
  const uint64_t size_bytes = std::min<uint64_t>(plan.chunk_bytes, plan.size_bytes - offset);
  const auto at = [offset](Reach reach) {
    if (reach.mapped != nullptr) {
      reach.mapped += offset;
    }
    reach.address += offset;
    return reach;
  };
  return memory.Copy(at(destination), at(source), size_bytes);
}

}  // namespace

ChunkResult CopyChunk(TransferLayout& slot, uint32_t generation, MemoryAccess& memory) {
  // Pairs with RankEngine::PublishTransfer: source and destination are there.
  if (shm::LoadAcquire(slot.state) != static_cast<uint32_t>(TransferState::kMatched) ||
      slot.generation != generation) {
    return ChunkResult::kNothing;
  }
  const Plan plan = ReadPlan(slot);
  if (static_cast<uint32_t>(shm::LoadRelaxed(slot.claim)) >= plan.chunks) {
    return ChunkResult::kNothing;
  }
  const Reach source = memory.Resolve(plan.source_rank, plan.source, plan.size_bytes);
  const Reach destination =
      memory.Resolve(plan.destination_rank, plan.destination, plan.size_bytes);
  uint32_t chunk = 0;
  if (!source.ok() || !destination.ok() || !Claim(slot, generation, plan.chunks, &chunk)) {
    return ChunkResult::kNothing;
  }
  const ErrorCode error =
      plan.size_bytes == 0 ? ErrorCode::kOk : CopyPart(plan, chunk, destination, source, memory);
  if (error != ErrorCode::kOk) {
    shm::StoreRelaxed(slot.error, static_cast<int32_t>(error));
  }
  // Release: our bytes; acquire: those of the others. Pairs with itself.
  const uint32_t done = shm::FetchAdd(slot.done_chunks, 1, std::memory_order_acq_rel) + 1;
  if (done != plan.chunks) {
    return ChunkResult::kCopied;
  }
  // Pairs with Look: publishes all bytes.
  shm::StoreRelease(slot.state, static_cast<uint32_t>(TransferState::kDone));
  return ChunkResult::kFinished;
}

TransferProgress Look(const TransferLayout& slot, uint32_t generation) {
  // Pairs with CopyChunk's kDone.
  const auto state = static_cast<TransferState>(shm::LoadAcquire(slot.state));
  if (slot.generation != generation ||
      (state != TransferState::kDone && state != TransferState::kReleased)) {
    return {};
  }
  return {true, static_cast<ErrorCode>(shm::LoadRelaxed(slot.error))};
}

void Release(TransferLayout& slot, uint32_t generation) {
  if (slot.generation == generation) {
    // Pairs with IsReusable: we have read all we need.
    shm::StoreRelease(slot.state, static_cast<uint32_t>(TransferState::kReleased));
  }
}

bool IsReusable(const TransferLayout& slot) {
  // Pairs with Release.
  const auto state = static_cast<TransferState>(shm::LoadAcquire(slot.state));
  return state == TransferState::kIdle || state == TransferState::kReleased;
}

}  // namespace ferry::engine
