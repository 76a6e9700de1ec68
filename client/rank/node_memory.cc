#include "client/rank/node_memory.h"

#include <algorithm>
#include <array>
#include <utility>

#include "client/core/failure_words.h"
#include "common/status.h"
#include "shm/word_copy.h"

namespace ferry::client {

NodeMemory::NodeMemory(uint32_t own_rank, const engine::PeerTable* peers, const Memory* memory,
                       PeerMemory* peer_memory)
    : own_rank_(own_rank),
      peers_(*peers),
      memory_(*memory),
      peer_memory_(*peer_memory),
      of_(std::make_unique<std::atomic<const Segments*>[]>(peers->rank_of_local.size())) {}

NodeMemory::~NodeMemory() = default;

NodeMemory::Reached NodeMemory::Refuse(ErrorCode error, std::string words) {
  return {.error = FailureWords::Tell(error, std::move(words))};
}

NodeMemory::Reached NodeMemory::FindSlowly(uint32_t rank, uint32_t segment, uint64_t offset,
                                           uint64_t size_bytes) {
  if (segment == 0) {  // private memory, which no place names
    return Refuse(ErrorCode::kInvalidBuffer);
  }
  if (rank == own_rank_) {
    return FindOwn(segment, offset, size_bytes);
  }
  StatusOr<PeerMemory::ForGood> mapped = peer_memory_.MapForGood(rank, {segment, 0, 0}, 0);
  if (!mapped.ok()) {
    return Refuse(mapped.status().code(), mapped.status().message());
  }
  const Segment found{segment, mapped->by_stream, mapped->region_bytes, mapped->memory};
  Add(rank, found);
  return found.At(offset, size_bytes);
}

// The region table is the list, and knows of what is freed.
NodeMemory::Reached NodeMemory::FindOwn(uint32_t segment, uint64_t offset,
                                        uint64_t size_bytes) const {
  const OwnRegion region = memory_.regions().ById(segment);
  if (!region || region.lent || region.hidden || offset > region.size_bytes ||
      size_bytes > region.size_bytes - offset) {
    return Refuse(ErrorCode::kInvalidBuffer);
  }
  return {ErrorCode::kOk, region.base + offset, region.by_stream};
}

void NodeMemory::Add(uint32_t rank, Segment segment) {
  const std::lock_guard lock(mutex_);
  std::atomic<const Segments*>& current = of_[LaneOf(rank)];
  const Segments* const known = current.load(std::memory_order_relaxed);
  Segments longer = known == nullptr ? Segments() : *known;
  const bool is_known = std::any_of(longer.begin(), longer.end(), [&](const Segment& other) {
    return other.id == segment.id;  // another thread was first
  });
  if (is_known) {
    return;
  }
  longer.push_back(std::move(segment));
  all_.push_back(std::make_unique<const Segments>(std::move(longer)));
  current.store(all_.back().get(), std::memory_order_release);  // Pairs with Find.
}

ErrorCode NodeMemory::Copy(void* to, const void* from, uint64_t size_bytes, bool by_stream) {
  if (!by_stream) [[likely]] {
    shm::CopyWords(to, from, size_bytes);
    return ErrorCode::kOk;
  }
  if (size_bytes == 0) {  // then either may be null
    return ErrorCode::kOk;
  }
  const Status copied = memory_.streams()->Copy(to, from, size_bytes);
  return copied.ok() ? ErrorCode::kOk : FailureWords::Tell(copied.code(), copied.message());
}

// Operands, and what is found, go by a piece of ordinary memory where only streams reach them.
ErrorCode NodeMemory::Accumulate(const Reached& there, const shm::Accumulation& what,
                                 const void* operands, void* found, uint64_t count) {
  const bool lends = what.takes_operands() && memory_.IsByStream(operands);
  const bool brings = found != nullptr && memory_.IsByStream(found);
  if (!lends && !brings) [[likely]] {
    what.Apply(there.address, operands, found, count);
    return ErrorCode::kOk;
  }
  constexpr uint64_t kPieceBytes = 4096;
  std::array<std::byte, kPieceBytes> piece;
  std::array<std::byte, kPieceBytes> piece_found;
  const uint64_t size = what.element_bytes();
  for (uint64_t done = 0; done < count;) {
    const uint64_t elements = std::min(count - done, kPieceBytes / size);
    const uint64_t bytes = elements * size;
    const std::byte* from =
        what.takes_operands() ? static_cast<const std::byte*>(operands) + done * size : nullptr;
    if (lends) {
      if (const ErrorCode error = Copy(piece.data(), from, bytes, true); error != ErrorCode::kOk) {
        return error;
      }
      from = piece.data();
    }
    std::byte* const to = found == nullptr ? nullptr : static_cast<std::byte*>(found) + done * size;
    what.Apply(there.address + done * size, from, brings ? piece_found.data() : to, elements);
    if (brings) {
      if (const ErrorCode error = Copy(to, piece_found.data(), bytes, true);
          error != ErrorCode::kOk) {
        return error;
      }
    }
    done += elements;
  }
  return ErrorCode::kOk;
}

}  // namespace ferry::client
