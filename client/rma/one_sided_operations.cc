#include "client/rma/one_sided_operations.h"

#include <atomic>
#include <optional>

#include "client/api/block_moves.h"
#include "client/memory/failure_words.h"
#include "shm/atomic_operation.h"

namespace ferry::client {
namespace {

// Copying longer memory once more costs more than to have it copied block by block.
constexpr uint64_t kBounceBufferMaxBytes = 256 << 10;

bool IsAligned(uint64_t offset, uint32_t width) { return offset % width == 0; }

// Returns why a CPU cannot change the word there.
ErrorCode CpuError(const NodeMemory::Reached& word) {
  return word.error != ErrorCode::kOk ? word.error : FailureWords::Tell(ErrorCode::kUnsupported);
}

}  // namespace

OneSidedOperations::OneSidedOperations(const Parts& parts)
    : progress_(*parts.progress),
      memory_(*parts.memory),
      node_(parts.progress, parts.memory, parts.peer_memory),
      remote_({parts.progress, parts.memory, parts.private_reachable, kBounceBufferMaxBytes,
               parts.statistics, parts.wait, parts.carry_on_by_link}) {}

// ---- Contexts -----------------------------------------------------------------------------------

OneSidedContext* OneSidedOperations::MakeContext() {
  const std::lock_guard lock(mutex_);
  contexts_.push_back(std::make_unique<OneSidedContext>());
  return contexts_.back().get();
}

void OneSidedOperations::FreeContext(OneSidedContext* context) {
  remote_.Leave(*context);
  const std::lock_guard lock(mutex_);
  std::erase_if(contexts_, [context](const auto& other) { return other.get() == context; });
}

ErrorCode OneSidedOperations::LookAt(const void* buffer, uint64_t size_bytes) {
  const Status status = memory_.LookAt(buffer, size_bytes);
  return status.ok() ? ErrorCode::kOk : FailureWords::Tell(status.code(), status.message());
}

// Unmaps the memory of ranks that are gone when a call names one of them.
ErrorCode OneSidedOperations::StateOf(uint32_t rank) {
  const ErrorCode state = progress_.PeerState(rank);
  if (state != ErrorCode::kOk && IsOfNode(rank)) [[unlikely]] {
    node_.DropEnded();
  }
  return state;
}

// ---- Operations ---------------------------------------------------------------------------------

ErrorCode OneSidedOperations::Put(OneSidedContext* context, const RemoteAddress& to,
                                  const void* from, uint64_t size_bytes, const Signal& signal,
                                  WhenDone when) {
  const bool has_signal = signal.update != shm::SignalUpdate::kNone;
  if (has_signal && !IsAligned(signal.offset, sizeof(uint64_t))) {
    return FailureWords::Tell(ErrorCode::kInvalidArgument);
  }
  if (has_signal && (signal.segment & (kSegmentByStream | kSegmentPrivate)) != 0) {
    return FailureWords::Tell(ErrorCode::kUnsupported);
  }
  const ErrorCode state = StateOf(to.rank);
  if (state != ErrorCode::kOk || (size_bytes == 0 && !has_signal)) {
    return FailureWords::Tell(state);
  }
  if (const ErrorCode error = LookAt(from, size_bytes); error != ErrorCode::kOk) {
    return error;
  }
  return IsOfNode(to.rank)
             ? PutInNode(to, from, size_bytes, signal)
             : FailureWords::Tell(remote_.Put(Or(context), to, from, size_bytes, signal, when));
}

// Both places are looked up before anything is stored: a put with a signal that cannot be updated
// changes nothing.
ErrorCode OneSidedOperations::PutInNode(const RemoteAddress& to, const void* from,
                                        uint64_t size_bytes, const Signal& signal) {
  const NodeMemory::Use use(&node_);
  NodeMemory::Reached word;
  if (signal.update != shm::SignalUpdate::kNone) {
    word = node_.Find(to.rank, RegionOf(signal.segment), signal.offset, sizeof(uint64_t));
    if (word.error != ErrorCode::kOk || word.by_stream) {
      return CpuError(word);
    }
  }
  if (size_bytes != 0) {
    const NodeMemory::Reached there =
        node_.Find(to.rank, RegionOf(to.segment), to.offset, size_bytes);
    const ErrorCode error =
        there.error == ErrorCode::kOk ? node_.CopyTo(there, from, size_bytes) : there.error;
    if (error != ErrorCode::kOk) {
      return error;
    }
  }
  if (word.address != nullptr) {
    shm::UpdateSignal(*reinterpret_cast<uint64_t*>(word.address), signal.update, signal.value);
    progress_.TellOfChange(to.rank);  // it may rest until its signal comes
  }
  return ErrorCode::kOk;
}

ErrorCode OneSidedOperations::Get(OneSidedContext* context, void* to, const RemoteAddress& from,
                                  uint64_t size_bytes, WhenDone when) {
  const ErrorCode state = StateOf(from.rank);
  if (state != ErrorCode::kOk || size_bytes == 0) {
    return FailureWords::Tell(state);
  }
  if (const ErrorCode error = LookAt(to, size_bytes); error != ErrorCode::kOk) {
    return error;
  }
  if (!IsOfNode(from.rank)) {
    return FailureWords::Tell(remote_.Get(Or(context), to, from, size_bytes, when));
  }
  const NodeMemory::Use use(&node_);
  const NodeMemory::Reached there =
      node_.Find(from.rank, RegionOf(from.segment), from.offset, size_bytes);
  return there.error == ErrorCode::kOk ? node_.CopyFrom(to, there, size_bytes) : there.error;
}

ErrorCode OneSidedOperations::MoveBlocksInNode(const RemoteAddress& there, gpu::StridedCopy move) {
  const ErrorCode state = StateOf(there.rank);
  if (state != ErrorCode::kOk || move.block_count == 0 || move.block_bytes == 0) {
    return FailureWords::Tell(state);
  }
  const uint64_t step = move.stride_bytes < 0 ? 0 - static_cast<uint64_t>(move.stride_bytes)
                                              : static_cast<uint64_t>(move.stride_bytes);
  uint64_t between = 0;  // the begins of the first and the last block
  uint64_t extent = 0;
  if (__builtin_mul_overflow(step, move.block_count - 1, &between) ||
      __builtin_add_overflow(between, move.block_bytes, &extent)) {
    return FailureWords::Tell(ErrorCode::kInvalidBuffer);
  }
  // Below the segment's begin it is beyond the end of all.
  const uint64_t lowest = move.stride_bytes < 0 ? there.offset - between : there.offset;
  const NodeMemory::Use use(&node_);
  const NodeMemory::Reached all = node_.Find(there.rank, RegionOf(there.segment), lowest, extent);
  if (all.error != ErrorCode::kOk) {
    return all.error;
  }
  move.blocks = all.address + (there.offset - lowest);
  const Status moved =
      all.by_stream ? MoveBlocks(*memory_.streams(), move, true) : MoveBlocks(memory_, move, false);
  return moved.ok() ? ErrorCode::kOk : FailureWords::Tell(moved.code(), moved.message());
}

// Returns kUnsupported for memory that cannot be mapped here: the caller's other ways report what
// is wrong with it.
ErrorCode OneSidedOperations::SpreadInNode(std::span<const RemoteAddress> from,
                                           std::span<const RemoteAddress> to,
                                           uint64_t block_bytes) {
  gpu::SpreadCopy copy{.block_bytes = block_bytes};
  if (from.size() > gpu::SpreadCopy::kMost || to.size() > gpu::SpreadCopy::kMost ||
      memory_.streams() == nullptr) {
    return ErrorCode::kUnsupported;
  }
  const NodeMemory::Use use(&node_);
  for (const RemoteAddress& place : from) {
    const NodeMemory::Reached source =
        node_.Find(place.rank, RegionOf(place.segment), place.offset, block_bytes);
    if (source.error != ErrorCode::kOk || !source.by_stream) {
      return ErrorCode::kUnsupported;
    }
    copy.sources[copy.source_count++] = source.address;
  }
  for (const RemoteAddress& place : to) {
    const NodeMemory::Reached destination = node_.Find(
        place.rank, RegionOf(place.segment), place.offset, block_bytes * copy.source_count);
    if (destination.error != ErrorCode::kOk || !destination.by_stream) {
      return ErrorCode::kUnsupported;
    }
    copy.destinations[copy.destination_count++] = destination.address;
  }
  const Status copied = memory_.streams()->CopySpread(copy);
  return copied.ok() || copied.code() == ErrorCode::kUnsupported
             ? copied.code()
             : FailureWords::Tell(copied.code(), copied.message());
}

ErrorCode OneSidedOperations::ReduceInNode(std::span<const RemoteAddress> from,
                                           std::span<const RemoteAddress> to, size_t own,
                                           gpu::Reduction reduction) {
  if (from.size() < 2 || from.size() > gpu::Reduction::kMost || to.empty() ||
      to.size() > gpu::Reduction::kMost || own >= from.size() || memory_.streams() == nullptr) {
    return ErrorCode::kUnsupported;
  }
  const NodeMemory::Use use(&node_);
  const auto find = [&](const RemoteAddress& place) -> std::byte* {
    const NodeMemory::Reached there =
        node_.Find(place.rank, RegionOf(place.segment), place.offset, reduction.size_bytes());
    return there.error == ErrorCode::kOk && there.by_stream ? there.address : nullptr;
  };
  reduction.more_operand_count = static_cast<uint8_t>(from.size() - 2);
  for (size_t i = 0; i < from.size(); ++i) {
    reduction.operand(i) = find(from[i]);
    if (reduction.operand(i) == nullptr) {
      return ErrorCode::kUnsupported;
    }
  }
  reduction.more_result_count = static_cast<uint8_t>(to.size() - 1);
  for (size_t i = 0; i < to.size(); ++i) {
    reduction.result(i) = find(to[i]);
    if (reduction.result(i) == nullptr) {
      return ErrorCode::kUnsupported;
    }
  }
  const Status reduced = memory_.streams()->ReduceNear(reduction.operand(own), reduction);
  if (reduced.code() == ErrorCode::kInvalidArgument) {  // the vectors overlap
    return ErrorCode::kUnsupported;
  }
  return reduced.ok() || reduced.code() == ErrorCode::kUnsupported
             ? reduced.code()
             : FailureWords::Tell(reduced.code(), reduced.message());
}

ErrorCode OneSidedOperations::Atomic(OneSidedContext* context, const AtomicCall& call,
                                     uint64_t* found, WhenDone when) {
  if (!IsAligned(call.place.offset, call.width)) {
    return FailureWords::Tell(ErrorCode::kInvalidArgument);
  }
  const ErrorCode state = StateOf(call.place.rank);
  if (state != ErrorCode::kOk) {
    return FailureWords::Tell(state);
  }
  return IsOfNode(call.place.rank)
             ? AtomicInNode(call, found)
             : FailureWords::Tell(remote_.Atomic(Or(context), call, found, when));
}

ErrorCode OneSidedOperations::AtomicInNode(const AtomicCall& call, uint64_t* found) {
  const NodeMemory::Use use(&node_);
  const NodeMemory::Reached there =
      node_.Find(call.place.rank, RegionOf(call.place.segment), call.place.offset, call.width);
  if (there.error != ErrorCode::kOk || there.by_stream) {
    return CpuError(there);
  }
  const uint64_t before =
      shm::ApplyAtomicAt(there.address, call.width, call.operation, call.operand, call.compare);
  if (found != nullptr) {
    *found = before;
  }
  return ErrorCode::kOk;
}

ErrorCode OneSidedOperations::Accumulate(OneSidedContext* context, const AccumulateCall& call,
                                         const void* operands, void* found, WhenDone when) {
  const ErrorCode state = StateOf(call.place.rank);
  if (state != ErrorCode::kOk || call.count == 0) {
    return FailureWords::Tell(state);
  }
  if (call.count > UINT64_MAX / call.what.element_bytes()) {
    return FailureWords::Tell(ErrorCode::kInvalidBuffer);
  }
  const uint64_t size_bytes = call.count * call.what.element_bytes();
  ErrorCode error = call.what.takes_operands() ? LookAt(operands, size_bytes) : ErrorCode::kOk;
  if (error == ErrorCode::kOk && found != nullptr) {
    error = LookAt(found, size_bytes);
  }
  if (error != ErrorCode::kOk) {
    return error;
  }
  return IsOfNode(call.place.rank)
             ? AccumulateInNode(Or(context), call, operands, found, when)
             : FailureWords::Tell(remote_.Accumulate(Or(context), call, operands, found, when));
}

// Elements that no CPU changes at once are for ferryd.
ErrorCode OneSidedOperations::AccumulateInNode(OneSidedContext& context, const AccumulateCall& call,
                                               const void* operands, void* found, WhenDone when) {
  {
    const NodeMemory::Use use(&node_);
    const NodeMemory::Reached there =
        node_.Find(call.place.rank, RegionOf(call.place.segment), call.place.offset,
                   call.count * call.what.element_bytes());
    if (there.error != ErrorCode::kOk || there.by_stream) {
      return CpuError(there);
    }
    if (call.what.IsAtomicAt(reinterpret_cast<uint64_t>(there.address))) {
      return node_.Accumulate(there, call.what, operands, found, call.count);
    }
  }
  return FailureWords::Tell(remote_.Accumulate(context, call, operands, found, when));
}

// ---- Order --------------------------------------------------------------------------------------

// Short operations with another node are carried out in the order of the calls anyway. Inside the
// node puts are plain stores, which others may look at by plain loads: a fence orders those, not a
// word with release.
void OneSidedOperations::Fence(OneSidedContext* context) {
  std::atomic_thread_fence(std::memory_order_release);
  remote_.Fence(Or(context));
}

ErrorCode OneSidedOperations::Quiet(OneSidedContext* context, uint32_t* failed_rank) {
  std::atomic_thread_fence(std::memory_order_seq_cst);  // the store buffer is empty
  uint32_t rank = progress_.view().rank;
  const ErrorCode error = remote_.Quiet(Or(context), std::nullopt, &rank);
  if (failed_rank != nullptr && error != ErrorCode::kOk) {
    *failed_rank = rank;
  }
  return FailureWords::Tell(error);
}

ErrorCode OneSidedOperations::QuietWith(OneSidedContext* context, uint32_t rank) {
  std::atomic_thread_fence(std::memory_order_seq_cst);  // as in Quiet
  uint32_t failed_rank = rank;
  return FailureWords::Tell(remote_.Quiet(Or(context), rank, &failed_rank));
}

shm::Location OneSidedOperations::Locate(const void* pointer, uint64_t size_bytes) const {
  const shm::Location where = LocateHere(pointer, size_bytes);
  if (where.region != 0 && progress_.MayHaveLinks()) {
    progress_.ServeByLinks();
  }
  return where;
}

}  // namespace ferry::client
