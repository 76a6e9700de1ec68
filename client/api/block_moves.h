// Moves of many blocks that CPUs may not reach.
//
// Calling thread: any. MoveBlocks blocks until all blocks are moved.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/status.h"
#include "gpu_backends/api/strided_copy.h"
#include "shm/word_copy.h"

namespace ferry::client {

// Moves blocks into packed host memory, or out of it. `by_stream`: only streams reach the blocks;
// then one step of their device moves all of them, if the device has a kernel for that, else one
// step moves each block. `copies` has Copy and CopyStrided: a FrontEnd, or gpu::CopyStreams, whose
// errors it returns.
template <typename Copies>
Status MoveBlocks(Copies& copies, const gpu::StridedCopy& move, bool by_stream) {
  auto* block = static_cast<std::byte*>(move.blocks);
  auto* packed = static_cast<std::byte*>(move.packed);
  const auto copy = [&](uint64_t size_bytes) -> Status {
    void* const to = move.is_pack ? packed : block;
    const void* const from = move.is_pack ? block : packed;
    if (by_stream) {
      return copies.Copy(to, from, size_bytes);
    }
    shm::CopyWords(to, from, size_bytes);
    return {};
  };
  if (by_stream &&
      (move.block_count == 1 || move.stride_bytes == static_cast<int64_t>(move.block_bytes))) {
    return copy(move.size_bytes());
  }
  const uint64_t step = move.stride_bytes < 0 ? 0 - static_cast<uint64_t>(move.stride_bytes)
                                              : static_cast<uint64_t>(move.stride_bytes);
  // Blocks that overlap are written one after the other, since the last one counts.
  if (by_stream && (move.is_pack || step >= move.block_bytes)) {
    Status copied = copies.CopyStrided(move);
    if (copied.code() != ErrorCode::kUnsupported) {
      return copied;
    }
  }
  for (uint64_t left = move.block_count; left > 0; --left) {
    FERRY_RETURN_IF_ERROR(copy(move.block_bytes));
    block += move.stride_bytes;
    packed += move.block_bytes;
  }
  return {};
}

}  // namespace ferry::client
