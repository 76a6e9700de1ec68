// The implementations that the functions of <shmem.h> call: few, by width and by kind.
//
// Each function of the API names itself (`call`, as "shmem_long_put") for messages. Misuse that can
// be seen ends the program with a sentence, so only functions for which the standard has an error
// return one. Calling thread: as the thread level allows; functions that block say so.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "shm/layout/one_sided_layout.h"

namespace ferry::shmem {

// ---- Values of the API's constants, alike in <shmem.h> ------------------------------------------
enum ThreadLevel : int { kSingle, kFunneled, kSerialized, kMultiple };  // SHMEM_THREAD_*
enum Comparison : int { kEq = 1, kNe, kGt, kGe, kLt, kLe };             // SHMEM_CMP_*
enum SignalOp : int { kSignalSet = 1, kSignalAdd };                     // SHMEM_SIGNAL_*
enum ContextOption : long { kSerializedContext = 1, kPrivateContext = 2, kNostore = 4 };
enum TeamConfigMask : long { kNumContexts = 1 };                   // SHMEM_TEAM_NUM_CONTEXTS
enum MallocHint : long { kAtomicsRemote = 1, kSignalRemote = 2 };  // SHMEM_MALLOC_*

// shmem_ctx_t and shmem_team_t point to these; SHMEM_CTX_INVALID and SHMEM_TEAM_INVALID are null.
// The three below have the same address from the beginning to the end of the process.
struct Context;
struct Team;
namespace internal {
extern Context* const default_context;
}  // namespace internal
// Inline: a call would cost as much as the rest of a put of a word.
inline Context* DefaultContext() { return internal::default_context; }
Team* WorldTeam();
Team* SharedTeam();

// ---- Puts and gets (9.5, 9.6) -------------------------------------------------------------------
// `pe` counts in the context's team.
enum class Completion : uint8_t { kBlocking, kNonblocking };
void Put(const char* call, Context* context, void* dest, const void* source, size_t bytes, int pe,
         Completion completion);
void Get(const char* call, Context* context, void* dest, const void* source, size_t bytes, int pe,
         Completion completion);
// `blocks` blocks of `block_bytes`, whose beginnings lie `dest_stride` and `source_stride` bytes
// apart.
struct Stride {
  ptrdiff_t dest_stride_bytes;
  ptrdiff_t source_stride_bytes;
  size_t block_bytes;
  size_t blocks;
};
void PutStrided(const char* call, Context* context, void* dest, const void* source,
                const Stride& stride, int pe);
void GetStrided(const char* call, Context* context, void* dest, const void* source,
                const Stride& stride, int pe);

// ---- Signals (9.8) ------------------------------------------------------------------------------
void PutSignal(const char* call, Context* context, void* dest, const void* source, size_t bytes,
               uint64_t* signal_address, uint64_t signal, int signal_op, int pe,
               Completion completion);
uint64_t SignalFetch(const char* call, const uint64_t* signal_address);
void SignalSet(const char* call, Context* context, uint64_t* signal_address, uint64_t signal,
               int pe);
void SignalAdd(const char* call, Context* context, uint64_t* signal_address, uint64_t signal,
               int pe);
uint64_t SignalWaitUntil(const char* call, uint64_t* signal_address, int comparison,
                         uint64_t value);

// ---- Atomics (9.7) ------------------------------------------------------------------------------
// T: int32_t, uint32_t, int64_t, uint64_t; float and double for fetch, set, swap.
using Atomic = shm::OneSidedOperation;  // kFetch to kXor
// Returns the old value.
template <typename T>
T AtomicFetch(const char* call, Context* context, Atomic op, T* dest, T value, T condition, int pe);
// Begins an operation that is over, with *found set, at the next quiet; a null `found` leaves the
// old value out.
template <typename T>
void AtomicBegin(const char* call, Context* context, Atomic op, T* dest, T value, T condition,
                 int pe, T* found);

// ---- Waiting (9.9) ------------------------------------------------------------------------------
// T: int16_t ... uint64_t. Functions whose name says wait block.
enum class WaitFor : uint8_t { kAll, kAny, kSome };
// Compare with one value for all variables, or with one for each (`values_are_many`). `status`
// masks, `indices` gets those of kSome; both may be null. Returns the index (kAny), the count
// (kSome), or for kAll 1 (0: not all, in tests).
template <typename T>
struct WaitCall {
  const T* variables;
  size_t count;
  const int* status;
  size_t* indices;
  int comparison;
  const T* values;
  bool values_are_many;
};
template <typename T>
size_t WaitUntil(const char* call, WaitFor what, const WaitCall<T>& wait);
template <typename T>
size_t Test(const char* call, WaitFor what, const WaitCall<T>& wait);

// ---- Ordering (9.11) ----------------------------------------------------------------------------
void Fence(const char* call, Context* context);
void Quiet(const char* call, Context* context);
void PeQuiet(const char* call, Context* context, const int* target_pes, size_t npes);

// ---- Devices (shmemx.h, ferry/device/shmem.h) ---------------------------------------------------
int DeviceCount(const char* call);
// Returns the table's address, for kernels. Null on all PEs of the team, with a line that says why,
// if one of them cannot have a table.
void* DevicePrepare(const char* call, Team* team, int device);
void DeviceRelease(const char* call, void* table);

// ---- Locks (9.12) -------------------------------------------------------------------------------
void SetLock(const char* call, long* lock);
void ClearLock(const char* call, long* lock);
int TestLock(const char* call, long* lock);

// ---- Collectives (9.10) -------------------------------------------------------------------------
// Collectives block, and return 0, or not 0, as the standard says.
//
// The PEs of a collective: an active set of the deprecated calls, else the team.
struct Group {
  Team* team;
  int pe_start;
  int pe_stride;
  int pe_count;  // 0: the team
};
int Sync(const char* call, const Group& group);
int Barrier(const char* call, const Group& group);  // with quiet of the default context
// `writes_root`: team form; the root's dest is written.
int Broadcast(const char* call, const Group& group, void* dest, const void* source, size_t bytes,
              int root, bool writes_root);
int Collect(const char* call, const Group& group, void* dest, const void* source, size_t bytes);
int Fcollect(const char* call, const Group& group, void* dest, const void* source, size_t bytes);
int Alltoall(const char* call, const Group& group, void* dest, const void* source, size_t bytes);
// Strides in elements.
int Alltoalls(const char* call, const Group& group, void* dest, const void* source,
              ptrdiff_t dest_stride, ptrdiff_t source_stride, size_t elements,
              size_t element_bytes);
enum class ReduceOp : uint8_t { kAnd, kOr, kXor, kMax, kMin, kSum, kProd };
enum class ReduceType : uint8_t {
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kUint8,
  kUint16,
  kUint32,
  kUint64,
  kFloat,
  kDouble,
  kLongDouble,
  kComplexFloat,
  kComplexDouble
};
int Reduce(const char* call, const Group& group, void* dest, const void* source, size_t count,
           ReduceType type, ReduceOp op);
// OpenSHMEM 1.6: sums of the PEs up to this one, itself counted (inclusive) or not.
int Scan(const char* call, const Group& group, void* dest, const void* source, size_t count,
         ReduceType type, bool inclusive);

// ---- On queues (ferry_shmem/queues.h) -----------------------------------------------------------
// Enqueues a call of the above: a thread of libferry's makes it when the queue's stream gets there.
// Returns 0, or an error of ferry.h where the stream takes no work any more. `queue`: ferry_queue.
//
// Nearly a thousand functions pass a closure each. It is kept as bytes, which costs the compiler
// less than half as much as so many kinds of std::function.
struct QueuedCall {
  void (*make)(const void* closure);
  alignas(16) std::array<std::byte, 128> closure;
};
int EnqueueCall(const char* call, uint64_t queue, const QueuedCall& queued);
template <typename Make>
int OnQueue(const char* call, uint64_t queue, const Make& make) {
  QueuedCall queued;
  static_assert(std::is_trivially_copyable_v<Make> && sizeof(Make) <= sizeof(queued.closure) &&
                alignof(Make) <= 16);
  queued.make = [](const void* closure) { (*static_cast<const Make*>(closure))(); };
  std::memcpy(queued.closure.data(), &make, sizeof(Make));
  return EnqueueCall(call, queue, queued);
}

// ---- Life, queries, memory: the API's own arguments ---------------------------------------------
int InitThread(const char* call, int requested, int* provided);
// Do what InitThread does in two steps, between which the program names memory for a heap
// (HeapCreate).
int HeapPreinit(const char* call, int requested, int* provided);
void HeapPostinit(const char* call);
void Finalize(const char* call);
[[noreturn]] void GlobalExit(const char* call, int status);
int MyPe(const char* call);
int PeCount(const char* call);
int QueryThread(const char* call);
int QueryInitialized();
int PeAccessible(const char* call, int pe);
int AddrAccessible(const char* call, const void* address, int pe);
void* Pointer(const char* call, const void* dest, int pe);
void* TeamPointer(const char* call, Team* team, const void* dest, int pe);
void* Malloc(const char* call, size_t bytes, size_t alignment, bool zero, long hints);
void* Realloc(const char* call, void* pointer, size_t bytes);
void Free(const char* call, void* pointer);
struct HeapInfo {
  size_t reserved_bytes;      // the most that the heap may grow to
  size_t size_bytes;          // of it, backed by memory so far
  size_t used_bytes;          // given out
  size_t largest_free_bytes;  // the most that one shmem_malloc could still get
};
void GetHeapInfo(const char* call, HeapInfo* info);

// ---- Spaces: symmetric heaps in memory of devices (shmemx.h) ------------------------------------
// shmemx_space_t points to one. Free, Realloc and all operations take their addresses.
struct Space;

// Names memory of the program's own, all of which is symmetric once OpenSHMEM has begun. `kind`:
// the kind of memory that the program says it is; the memory itself is examined, too.
enum ExternalHeap : int {  // SHMEMX_EXTERNAL_HEAP_*
  kExternalHeapZe,
  kExternalHeapCuda,
  kExternalHeapHip,
  kExternalHeapHost
};
void HeapCreate(const char* call, void* base, size_t bytes, int kind);
// Makes a space. Null on all PEs, with a line that says why, if one of them cannot have its part.
Space* SpaceCreate(const char* call, int device, size_t bytes);
void SpaceDestroy(const char* call, Space* space);
void* SpaceMalloc(const char* call, Space* space, size_t bytes, size_t alignment, bool zero);
struct SpaceInfo {
  int device;      // of this PE
  bool cpu_reach;  // loads and stores of CPUs reach it, on all PEs
  HeapInfo heap;
};
void GetSpaceInfo(const char* call, Space* space, SpaceInfo* info);

// ---- Teams and contexts (9.4, 9.5) --------------------------------------------------------------
struct TeamConfig {
  int num_contexts;
};
int TeamMyPe(const char* call, Team* team);
int TeamPeCount(const char* call, Team* team);
int TeamGetConfig(const char* call, Team* team, long mask, TeamConfig* config);
int TeamTranslatePe(const char* call, Team* from, int pe, Team* to);
int TeamSplitStrided(const char* call, Team* parent, int start, int stride, int size,
                     const TeamConfig* config, long mask, Team** made);
int TeamSplit2d(const char* call, Team* parent, int x_range, const TeamConfig* x_config,
                long x_mask, Team** x_team, const TeamConfig* y_config, long y_mask, Team** y_team);
void TeamDestroy(const char* call, Team* team);
int ContextCreate(const char* call, Team* team, long options, Context** made);
void ContextDestroy(const char* call, Context* context);
int ContextGetTeam(const char* call, Context* context, Team** team);
void ContextSessionStart(const char* call, Context* context, long options);
void ContextSessionStop(const char* call, Context* context);

}  // namespace ferry::shmem
