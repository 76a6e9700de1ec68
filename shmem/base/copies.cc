#include "shmem/base/copies.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "client/api/block_moves.h"
#include "coll/messages/front_messenger.h"
#include "shm/word_copy.h"
#include "shmem/base/fail.h"

namespace ferry::shmem {
namespace {

void Check(const char* call, size_t bytes, const Status& copied) {
  if (!copied.ok()) {
    GiveUp(call, copied.code(),
           "the device could not copy " + std::to_string(bytes) + " bytes: " + copied.ToString());
  }
}

void MoveBlocks(const char* call, const gpu::StridedCopy& move, bool by_stream) {
  Check(call, move.size_bytes(), client::MoveBlocks(*job.front_end->memory, move, by_stream));
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
    Check(call, bytes, job.front_end->memory->Copy(to, from, bytes));
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
              .packed = packed,
              .block_bytes = block_bytes,
              .block_count = count,
              .stride_bytes = stride_bytes,
              .is_pack = true},
             by_stream);
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
                  .block_bytes = bytes,
                  .block_count = count,
                  .stride_bytes = stride.dest_stride_bytes,
                  .is_pack = false},
                 to_by_stream);
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
  void* const bounce_buffer =
      for_streams && bytes != 0 ? job.front_end->memory->TakeBounceBuffer(bytes) : nullptr;
  return bounce_buffer != nullptr ? bounce_buffer : collective::AllocateAligned(bytes);
}

void GiveStaging(void* memory) {
  // Once the connection has ended a peer may still write to the memory (MessageRuns::Abandon), so
  // it is kept.
  if (job.front_end->poison() == ErrorCode::kOk &&
      !job.front_end->memory->GiveBounceBuffer(memory)) {
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
