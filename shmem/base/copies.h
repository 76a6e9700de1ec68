// Copies from and to memory that CPUs may not reach (others are those of shm/word_copy.h): device
// memory moves by streams of its device, which libferry has (client/api/front_end.h).
//
// Calling thread: any. Those by stream block until the copy is done: so it is complete when they
// return, and comes before what this PE stores next. A copy that fails ends the call as GiveUp does
// (fail.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "shmem/base/job.h"
#include "shmem/base/operations.h"

namespace ferry::shmem {

// Blocks go through so much host memory at a time, and zeros come from so much.
inline constexpr size_t kPassBytes = size_t{256} << 10;

// A look that costs next to nothing; true for some other memory, too.
inline bool MayBeByStream(const void* own) { return job.front_end->MayBeByStream(own); }
// Whether CPUs do not reach this memory of the own PE, wherever it comes from: a space, ferry_alloc
// or MPI_Alloc_mem.
inline bool IsByStream(const void* own) {
  return MayBeByStream(own) && job.front_end->IsByStream(own);
}
// Ends the program if they do not. `argument`: its name in messages.
void CheckLoadable(const char* call, const char* argument, const void* own);

// Between any two kinds of memory, of this PE or mapped from a local one.
void CopyByStream(const char* call, void* to, const void* from, size_t bytes);
// The same, where both may turn out to be memory that CPUs reach: then they copy. Of local PEs'
// memory `is_by_stream` tells, which this process cannot find out.
void CopyAnyhow(const char* call, void* to, const void* from, size_t bytes, bool is_by_stream);
// Blocks (as of PutStrided). The flags tell which ends are by stream.
void CopyBlocksByStream(const char* call, std::byte* to, bool to_by_stream, const std::byte* from,
                        bool from_by_stream, const Stride& stride);
// Blocks that lie `stride_bytes` apart into host memory, one behind the other.
void PackBlocks(const char* call, void* packed, const std::byte* blocks, bool by_stream,
                ptrdiff_t stride_bytes, size_t block_bytes, size_t count);
// Makes memory zero.
void ClearByStream(const char* call, void* memory, size_t bytes);

// Host memory, aligned to 64 bytes; `for_streams`: such as their copies are fast with. Null: there
// is none left.
void* TakeStaging(size_t bytes, bool for_streams);
void GiveStaging(void* memory);
struct GivesStaging {
  void operator()(std::byte* memory) const { GiveStaging(memory); }
};
using Staging = std::unique_ptr<std::byte, GivesStaging>;
// Ends the call if there is none left.
Staging MakeStaging(const char* call, size_t bytes, bool for_streams);

}  // namespace ferry::shmem
