// Copies from and to memory that CPUs may not reach (others are those of shm/word_copy.h): libferry
// copies device memory by streams of its device (client/api/front_end.h).
//
// Calling thread: any. Copies by stream block until they are done, and so come before later stores
// of this PE. A copy that fails ends the call as GiveUp does (fail.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "shmem/base/job.h"
#include "shmem/base/operations.h"

namespace ferry::shmem {

// The size of the host memory through which blocks pass, and of that from which zeros are copied.
inline constexpr size_t kPassBytes = size_t{256} << 10;

// Returns true for memory that may be reached by streams only. A fast check, which is true for some
// other memory, too.
inline bool MayBeByStream(const void* own) { return job.front_end->MayBeByStream(own); }
// Returns true if CPUs do not reach this memory of this PE, wherever it comes from: a space,
// ferry_alloc or MPI_Alloc_mem.
inline bool IsByStream(const void* own) {
  return MayBeByStream(own) && job.front_end->IsByStream(own);
}
// Ends the program if CPUs do not reach the memory. `argument`: its name in messages.
void CheckLoadable(const char* call, const char* argument, const void* own);

// Copies between any two kinds of memory, of this PE or mapped from a local one.
void CopyByStream(const char* call, void* to, const void* from, size_t bytes);
// Copies by CPU if CPUs reach both ends, else as CopyByStream. `is_by_stream` is true if one end is
// memory of a local PE that only streams reach, which this process cannot find out.
void CopyAnyhow(const char* call, void* to, const void* from, size_t bytes, bool is_by_stream);
// Copies blocks as PutStrided does. The flags tell which ends are by stream.
void CopyBlocksByStream(const char* call, std::byte* to, bool to_by_stream, const std::byte* from,
                        bool from_by_stream, const Stride& stride);
// Copies blocks that lie `stride_bytes` apart into host memory, one behind the other.
void PackBlocks(const char* call, void* packed, const std::byte* blocks, bool by_stream,
                ptrdiff_t stride_bytes, size_t block_bytes, size_t count);
// Makes memory zero.
void ClearByStream(const char* call, void* memory, size_t bytes);

// Takes host memory, aligned to 64 bytes; with `for_streams`, memory that streams copy fast. Null:
// there is none left.
void* TakeStaging(size_t bytes, bool for_streams);
void GiveStaging(void* memory);
struct GivesStaging {
  void operator()(std::byte* memory) const { GiveStaging(memory); }
};
using Staging = std::unique_ptr<std::byte, GivesStaging>;
// Takes staging memory that its owner gives back by itself. Ends the call if there is none left.
Staging MakeStaging(const char* call, size_t bytes, bool for_streams);

}  // namespace ferry::shmem
