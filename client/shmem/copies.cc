#include "client/shmem/copies.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "client/collective/messages/front_messenger.h"
#include "client/shmem/fail.h"
#include "shm/word_copy.h"

namespace ferry::shmem {
namespace {

void Check(const char* call, size_t bytes, const Status& copied) {
  if (!copied.ok()) {
    GiveUp(call, copied.code(),
           "the device could not copy " + std::to_string(bytes) + " bytes: " + copied.ToString());
  }
}

// Between blocks and packed host memory.
struct BlockMove {
  std::byte* blocks;
  std::byte* packed;
  bool by_stream;
  ptrdiff_t stride_bytes;
  size_t block_bytes;
  bool is_pack;
};

// copy(to, from, bytes), for each of the blocks.
template <typename Copy>
void CopyOneByOne(const BlockMove& move, size_t count, Copy&& copy) {
  std::byte* block = move.blocks;
  std::byte* packed = move.packed;
  for (size_t i = 0; i < count; ++i) {
    copy(move.is_pack ? packed : block, move.is_pack ? block : packed, move.block_bytes);
    block += move.stride_bytes;
    packed += move.block_bytes;
  }
}

void MoveBlocks(const char* call, const BlockMove& move, size_t count) {
  if (!move.by_stream) {
    return CopyOneByOne(move, count, shm::CopyWords);
  }
  if (static_cast<size_t>(move.stride_bytes) == move.block_bytes || count == 1) {
    return CopyByStream(call, move.is_pack ? move.packed : move.blocks,
                        move.is_pack ? move.blocks : move.packed, move.block_bytes * count);
  }
  const Status copied = job.front_end->CopyStrided({.blocks = move.blocks,
                                                    .packed = move.packed,
                                                    .block_bytes = move.block_bytes,
                                                    .block_count = count,
                                                    .stride_bytes = move.stride_bytes,
                                                    .is_pack = move.is_pack});
  if (copied.code() == ErrorCode::kUnsupported) {
    return CopyOneByOne(move, count, [call](void* to, const void* from, size_t bytes) {
      CopyByStream(call, to, from, bytes);
    });
  }
  Check(call, move.block_bytes * count, copied);
}

}  // namespace

void CheckLoadable(const char* call, const char* argument, const void* own) {
  if (own != nullptr && IsByStream(own)) {
    Fail(call, AddressText(own) + " (" + argument +
                   ") lies in device memory, which no CPU reaches: use host memory");
  }
}

void CopyByStream(const char* call, void* to, const void* from, size_t bytes) {
  if (bytes != 0 && to != from) {
    Check(call, bytes, job.front_end->Copy(to, from, bytes));
  }
}

void CopyAnyhow(const char* call, void* to, const void* from, size_t bytes, bool is_by_stream) {
  if (is_by_stream || IsByStream(to) || IsByStream(from)) {
    CopyByStream(call, to, from, bytes);
  } else {
    shm::CopyWords(to, from, bytes);
  }
}

void PackBlocks(const char* call, void* packed, const std::byte* blocks, bool by_stream,
                ptrdiff_t stride_bytes, size_t block_bytes, size_t count) {
  MoveBlocks(call,
             {.blocks = const_cast<std::byte*>(blocks),
              .packed = static_cast<std::byte*>(packed),
              .by_stream = by_stream,
              .stride_bytes = stride_bytes,
              .block_bytes = block_bytes,
              .is_pack = true},
             count);
}

// Long blocks one by one; others by way of host memory, many at a time.
void CopyBlocksByStream(const char* call, std::byte* to, bool to_by_stream, const std::byte* from,
                        bool from_by_stream, const Stride& stride) {
  const size_t bytes = stride.block_bytes;
  if (bytes == 0) {
    return;
  }
  const size_t most = std::max<size_t>(kPassBytes / bytes, 1);
  std::vector<std::byte> pass(most == 1 ? 0 : bytes * std::min(most, stride.blocks));
  for (size_t i = 0; i < stride.blocks; i += most) {
    const size_t count = std::min(most, stride.blocks - i);
    if (count == 1) {
      CopyByStream(call, to, from, bytes);
    } else {
      PackBlocks(call, pass.data(), from, from_by_stream, stride.source_stride_bytes, bytes, count);
      MoveBlocks(call,
                 {.blocks = to,
                  .packed = pass.data(),
                  .by_stream = to_by_stream,
                  .stride_bytes = stride.dest_stride_bytes,
                  .block_bytes = bytes,
                  .is_pack = false},
                 count);
    }
    to += stride.dest_stride_bytes * static_cast<ptrdiff_t>(count);
    from += stride.source_stride_bytes * static_cast<ptrdiff_t>(count);
  }
}

void ClearByStream(const char* call, void* memory, size_t bytes) {
  const std::vector<std::byte> zeros(std::min(bytes, kPassBytes));
  for (size_t done = 0; done < bytes; done += zeros.size()) {
    CopyByStream(call, static_cast<std::byte*>(memory) + done, zeros.data(),
                 std::min(zeros.size(), bytes - done));
  }
}

void* TakeStaging(size_t bytes, bool for_streams) {
  void* const shadow = for_streams && bytes != 0 ? job.front_end->TakeShadow(bytes) : nullptr;
  return shadow != nullptr ? shadow : collective::AllocateAligned(bytes);
}

void GiveStaging(void* memory) {
  // Once the connection has ended somebody may still write to it (MessageRuns::Abandon).
  if (job.front_end->poison() == ErrorCode::kOk && !job.front_end->GiveShadow(memory)) {
    std::free(memory);
  }
}

Staging MakeStaging(const char* call, size_t bytes, bool for_streams) {
  Staging made(static_cast<std::byte*>(TakeStaging(bytes, for_streams)));
  if (made == nullptr) {
    GiveUp(call, ErrorCode::kOutOfMemory,
           "no host memory for a copy of " + std::to_string(bytes) + " bytes: use fewer at a time");
  }
  return made;
}

}  // namespace ferry::shmem
