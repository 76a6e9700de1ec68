// Puts, gets and atomics in the memory of remote PEs (region.h): libferry's one-sided operations.
//
// A context of OpenSHMEM gets one of libferry's at its first operation with a remote PE, so
// contexts cost nothing before it. What is begun by one of them ends by its Quiet.
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

// kBlocking: the source may be used again when it returns. Blocks for that, and while there is no
// room in the lane.
void PutRemote(const char* call, Context* context, const PeAddress& to, const void* source,
               size_t bytes, Completion completion, const client::Signal& signal = {});
// kBlocking blocks until the data are there.
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
// The same, which returns the error in place of ending the program.
ErrorCode TryFetchRemote(Context* context, const PeAddress& word, const RemoteAtomic& atomic,
                         uint64_t* found);
// The same without the old value, which nobody waits for.
void UpdateRemote(const char* call, Context* context, const PeAddress& word,
                  const RemoteAtomic& atomic);
// *found, of the word's width, is there at the next quiet.
void BeginFetchRemote(const char* call, Context* context, const PeAddress& word,
                      const RemoteAtomic& atomic, void* found);

// Of contexts that have had something to do with remote PEs (Context::remote).
void FenceRemote(Context* context);
// Block.
void QuietRemote(const char* call, Context* context);
void QuietRemoteWith(const char* call, Context* context, int world_pe);
// After the last operation by the context: completes what is under way, and gives libferry's back.
void EndRemote(const char* call, Context* context);

}  // namespace ferry::shmem
