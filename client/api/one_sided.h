// One-sided operations: puts, gets and atomic operations in memory of other ranks, in which those
// take no part. OpenSHMEM, MPI windows and partitioned messages are made of them.
//
// Memory is named by rank, segment and offset, as that rank's Locate says (Location::region and
// address): never by an address. A segment is memory that libferry has given out (AllocateMemory)
// or that a front end shares (ShareMemory). The owner's node checks that an operation stays inside
// the segment.
//
// In memory of the own node the calling thread copies the data itself, or its CPU does the atomic
// operation, and the operation is over when the call returns. Only accumulates of elements that no
// CPU changes at once go to ferryd. In memory of other nodes an operation goes through the daemons:
// it leaves in a lane, is carried out by the daemon there, and counted here. Operations of one rank
// with another are carried out in the order of the calls. All atomic operations on one word are
// atomic with each other, wherever they come from, since a CPU of the word's node makes them. The
// bytes of long puts and gets, and of those in memory that only streams reach, are fetched from
// where they lie; only Fence and Quiet order them.
//
// Errors: kPeerDied, kNodeUnreachable, kLinkDown, kNotFound (the rank has left), this rank's
// poison; kInvalidBuffer (there is no such memory, or it ends before that), kInvalidArgument (an
// atomic operation's offset is no multiple of its width), kUnsupported (only streams reach the
// memory; or it is exposed, and this rank has no direct link to its own now). A call that is over
// when it returns, or that cannot begin, returns its own error; Quiet reports all others, once.
//
// Calling thread: any that the thread level allows. Calls with other nodes block while there is no
// room in the lane.
#pragma once

#include <cstdint>
#include <span>

#include "common/error_code.h"
#include "gpu_backends/api/reduction.h"
#include "gpu_backends/api/strided_copy.h"
#include "shm/accumulate.h"
#include "shm/layout/descriptor.h"
#include "shm/layout/one_sided_layout.h"

namespace ferry::client {

struct RemoteAddress {
  uint32_t rank = 0;
  uint32_t segment = 0;  // SegmentOf
  uint64_t offset = 0;
};

// Returns the segment of a location that Locate has found. The segment says so if only streams
// reach it, since other nodes then move its bytes in another way.
using shm::kSegmentByStream;
using shm::kSegmentPrivate;
using shm::RegionOf;
inline uint32_t SegmentOf(const shm::Location& where) {
  return where.region | ((where.flags & shm::kLocationByStream) != 0 ? kSegmentByStream : 0);
}

// A word of 8 bytes in the target rank of a put, which changes once the put's data are there.
struct Signal {
  shm::SignalUpdate update = shm::SignalUpdate::kNone;
  uint32_t segment = 0;
  uint64_t offset = 0;
  uint64_t value = 0;
};

struct AtomicCall {
  RemoteAddress place;
  shm::OneSidedOperation operation = shm::OneSidedOperation::kFetch;
  uint32_t width = 8;  // bytes of the word: 1, 2, 4 or 8
  uint64_t operand = 0;
  uint64_t compare = 0;  // kCompareSwap
};

// `count` elements in a row, from `place` on, are combined one by one with as many operands.
struct AccumulateCall {
  RemoteAddress place;
  shm::Accumulation what;
  uint64_t count = 0;
};

// Groups operations, so that one Quiet waits for all of them. Null: the rank's default context.
class OneSidedContext;

enum class WhenDone : uint8_t { kAtReturn, kAtQuiet };

class OneSided {
 public:
  virtual OneSidedContext* MakeContext() = 0;
  // Call Quiet on the context first.
  virtual void FreeContext(OneSidedContext* context) = 0;

  // With kAtReturn the source may be changed once Put returns; with kAtQuiet only after Quiet. The
  // signal's update travels in the same message. A long put with kAtReturn blocks until the data
  // are at their destination.
  virtual ErrorCode Put(OneSidedContext* context, const RemoteAddress& to, const void* from,
                        uint64_t size_bytes, const Signal& signal = {},
                        WhenDone when = WhenDone::kAtReturn) = 0;
  // With kAtReturn it blocks until the data are there.
  virtual ErrorCode Get(OneSidedContext* context, void* to, const RemoteAddress& from,
                        uint64_t size_bytes, WhenDone when) = 0;
  // Moves blocks of a rank of this node into packed host memory of the caller's, or out of it: the
  // first at `there`, the rest as `move` says (`move.blocks` is ignored). Where only streams reach
  // the blocks, one step of their device moves them all. The move is over when it returns.
  virtual ErrorCode MoveBlocksInNode(const RemoteAddress& there, gpu::StridedCopy move) = 0;
  // Copies the blocks at `from`, of ranks of this node, one behind the other to each place of `to`,
  // by one small kernel. All of it is device memory, and the first destination belongs to this
  // rank. `from` and `to` have at most gpu::SpreadCopy::kMost entries. The copy is over when it
  // returns. kUnsupported: the device does not reach all of the memory, or has no such kernel;
  // nothing was done.
  virtual ErrorCode SpreadInNode(std::span<const RemoteAddress> from,
                                 std::span<const RemoteAddress> to, uint64_t block_bytes) = 0;
  // Reduces the vectors at `from`, of ranks of this node, from left to right, and stores the result
  // at each place of `to`, by one small kernel of the device of from[own], which is this rank's.
  // All of it is device memory; of each there are at most gpu::Reduction::kMost, and at least two
  // vectors. `reduction` says the operation, the type and the count; a result may lie where a
  // vector does. It is over when it returns. kUnsupported: as of SpreadInNode.
  virtual ErrorCode ReduceInNode(std::span<const RemoteAddress> from,
                                 std::span<const RemoteAddress> to, size_t own,
                                 gpu::Reduction reduction) = 0;
  // Carries out one atomic operation on a word. `found`, unless null, gets the word's old value, in
  // its lowest bytes if the word is shorter than 8; kAtReturn then blocks until the value is there.
  // If `found` is null, the call ends as a put does.
  virtual ErrorCode Atomic(OneSidedContext* context, const AtomicCall& call, uint64_t* found,
                           WhenDone when) = 0;

  // Combines element by element, each as one atomic operation; shm/accumulate.h says which other
  // operations that is atomic with. `operands` lie one behind the other, gaps of pairs included,
  // and may be changed once Accumulate returns; null if `what` takes none. `found`, unless null,
  // gets the old values of as many elements; then `when` means what it means for Get. If `found` is
  // null, the call ends as a put does. Calls from one rank keep their order at each element, if
  // that is of one kind. A call that has failed may have changed the elements before the one that
  // failed.
  virtual ErrorCode Accumulate(OneSidedContext* context, const AccumulateCall& call,
                               const void* operands, void* found, WhenDone when) = 0;

  // How ranks of one node access each other's memory, without messages. `rank` lives on this node.
  //
  // Locates memory of this rank, in the form that other ranks use. `flags` is not 0 if only streams
  // reach the memory, or if it is private memory (region 0) that no other process can read even
  // where the kernel lets this process read others, such as memory of a driver.
  virtual shm::Location LocateHere(const void* pointer, uint64_t size_bytes) const = 0;
  // Locates memory of this rank also for ranks of other nodes, which put there and get while this
  // rank computes. Where they may have direct links, a thread of this rank serves them from now on.
  virtual shm::Location Locate(const void* pointer, uint64_t size_bytes) const = 0;
  // Ends a Rest of that rank, which lives on this node: this rank's stores before this call have
  // changed its memory.
  virtual void TellOfChange(uint32_t rank) = 0;

  // Orders the context's operations: at each rank those begun after Fence are carried out after
  // those begun before it. Blocks until the context's long puts are over.
  virtual void Fence(OneSidedContext* context) = 0;
  // Blocks until all operations of the context are over, at all ranks; QuietWith: only those with
  // one rank. Returns the first error since the last Quiet, and in *failed_rank the rank that the
  // failed operation was with. For each rank only the first failure is reported, once, to the
  // context whose operation it was.
  virtual ErrorCode Quiet(OneSidedContext* context, uint32_t* failed_rank) = 0;
  virtual ErrorCode QuietWith(OneSidedContext* context, uint32_t rank) = 0;
  // Returns true if all operations of the context are over by now, or the rank is poisoned: Quiet
  // would return at once. Makes no progress, and costs next to nothing. Results are in place, and
  // failures reported, only after Quiet.
  virtual bool IsQuiet(OneSidedContext* context) = 0;

 protected:
  ~OneSided() = default;
};

}  // namespace ferry::client
