// Puts, gets and atomics in the memory of remote PEs (region.h): libferry's one-sided operations.
//
// A context of OpenSHMEM gets one of libferry's at its first operation with a remote PE, so
// contexts cost nothing before it. Operations that a context has begun end by its Quiet.
//
// Calling thread: as of operations.h. An operation that fails ends the program with a sentence that
// names the call and the PE.
#pragma once

#include <cstddef>
#include <cstdint>

#include "client/api/one_sided.h"
#include "common/error_code.h"
#include "shmem/base/operations.h"
#include "shmem/rma/reach.h"
#include "shmem/rma/team.h"

namespace ferry::shmem {

// Puts `bytes` at `to`. kBlocking: blocks until the source may be used again. Blocks in any case
// while there is no room in the lane.
void PutRemote(const char* call, Context* context, const PeAddress& to, const void* source,
               size_t bytes, Completion completion, const client::Signal& signal = {});
// Gets `bytes` from `from`. kBlocking: blocks until the data are in `dest`.
void GetRemote(const char* call, Context* context, void* dest, const PeAddress& from, size_t bytes,
               Completion completion);
void PutStridedRemote(const char* call, Context* context, const PeAddress& to, const void* source,
                      const Stride& stride);
void GetStridedRemote(const char* call, Context* context, void* dest, const PeAddress& from,
                      const Stride& stride);

// An atomic operation on a word of 4 or 8 bytes; of 4, values are in the lower half. Blocks;
// returns the old value.
struct RemoteAtomic {
  Atomic op = Atomic::kFetch;
  uint32_t width = 8;
  uint64_t value = 0;
  uint64_t condition = 0;
};
uint64_t FetchRemote(const char* call, Context* context, const PeAddress& word,
                     const RemoteAtomic& atomic);
// Carries out an atomic operation as FetchRemote does, but returns its error in place of ending the
// program.
ErrorCode TryFetchRemote(Context* context, const PeAddress& word, const RemoteAtomic& atomic,
                         uint64_t* found);
// Begins an atomic operation whose old value the caller does not want. Does not wait for its end.
void UpdateRemote(const char* call, Context* context, const PeAddress& word,
                  const RemoteAtomic& atomic);
// Begins an atomic operation. *found, of the word's width, holds the old value after the next
// quiet.
void BeginFetchRemote(const char* call, Context* context, const PeAddress& word,
                      const RemoteAtomic& atomic, void* found);

// Orders the puts of a context that has had something to do with remote PEs (Context::remote).
void FenceRemote(Context* context);
// Complete the operations of such a context, or those of it with one PE. They block.
void QuietRemote(const char* call, Context* context);
void QuietRemoteWith(const char* call, Context* context, int world_pe);
// Completes the context's operations, and frees libferry's context. Call it after the context's
// last operation.
void EndRemote(const char* call, Context* context);

}  // namespace ferry::shmem
