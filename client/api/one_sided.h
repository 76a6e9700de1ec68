// One-sided operations: puts, gets and atomic operations in memory of other ranks, in which those
// take no part. OpenSHMEM, MPI windows and partitioned messages stand on them.
//
// Memory is named by rank, segment and offset, as that rank's Locate says (Location::region and
// address): never by an address. A segment is memory that libferry has given out (AllocateMemory)
// or that a front end shares (ShareMemory). Whether the operation stays inside it is checked where
// the memory is.
//
// In memory of the own node an operation is the caller's own copy, or its CPU's atomic operation,
// and over when the call returns; but for accumulates whose elements no CPU changes at once, which
// go to ferryd. In memory of other nodes it goes through the daemons: it leaves
// in a lane, is carried out by the daemon there, and counted here. Operations of one rank with
// another are carried out in the order of the calls; so all atomic operations on one word agree,
// wherever they come from: a CPU of its node makes them. The bytes of long puts and gets, and of
// those in memory that only streams reach, are fetched from where they lie; only Fence and Quiet
// order them.
//
// Errors: kPeerDied, kNodeUnreachable, kLinkDown, kNotFound (the rank has left), this rank's
// poison; kInvalidBuffer (there is no such memory, or it ends before that), kInvalidArgument (an
// atomic operation's offset is no multiple of its width), kUnsupported (only streams reach the
// memory; or it is exposed, and this rank has no direct link to its own now). A call that is over
// when it returns, and one that cannot begin, returns its own; all others are told by Quiet, once.
//
// Calling thread: any that the thread level allows. Calls with other nodes block while there is no
// room in the lane.
#pragma once

#include <cstdint>
#include <span>

#include "common/error_code.h"
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

// The segment of what Locate has found. Those that only streams reach are told apart: other nodes
// move their bytes in another way.
using shm::kSegmentByStream;
using shm::kSegmentPrivate;
using shm::RegionOf;
inline uint32_t SegmentOf(const shm::Location& where) {
  return where.region | ((where.flags & shm::kLocationByStream) != 0 ? kSegmentByStream : 0);
}

// A word of 8 bytes, of the rank that a put goes to, that is changed once the put's data are there.
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

// What was begun by it ends together. Null: the rank's default context.
class OneSidedContext;

enum class WhenDone : uint8_t { kAtReturn, kAtQuiet };

class OneSided {
 public:
  virtual OneSidedContext* MakeContext() = 0;
  // After Quiet.
  virtual void FreeContext(OneSidedContext* context) = 0;

  // The source may be changed once it returns; with kAtQuiet only after that. The signal's update
  // comes in the same message. A long one with kAtReturn blocks until the data are there.
  virtual ErrorCode Put(OneSidedContext* context, const RemoteAddress& to, const void* from,
                        uint64_t size_bytes, const Signal& signal = {},
                        WhenDone when = WhenDone::kAtReturn) = 0;
  // kAtReturn: blocks until the data are there.
  virtual ErrorCode Get(OneSidedContext* context, void* to, const RemoteAddress& from,
                        uint64_t size_bytes, WhenDone when) = 0;
  // Moves blocks of a rank of this node into packed host memory of the caller's, or out of it: the
  // first at `there`, the rest as `move` says (`blocks` is not looked at). Where only streams reach
  // them it is one step of their device. Over when it returns.
  virtual ErrorCode MoveBlocksInNode(const RemoteAddress& there, gpu::StridedCopy move) = 0;
  // Brings blocks of ranks of this node, one behind the other, to each of the other places, by one
  // small kernel: all is device memory, and the first destination this rank's own. There are at
  // most gpu::SpreadCopy::kMost of each. Over when it returns. kUnsupported: the device does not
  // reach all of it, or has no such kernel; nothing was done.
  virtual ErrorCode SpreadInNode(std::span<const RemoteAddress> from,
                                 std::span<const RemoteAddress> to, uint64_t block_bytes) = 0;
  // `found`: what was there before, of fewer than 8 bytes in the lowest; null: it is of no
  // interest, and the call is over as a put is. Else kAtReturn blocks until it is there.
  virtual ErrorCode Atomic(OneSidedContext* context, const AtomicCall& call, uint64_t* found,
                           WhenDone when) = 0;

  // Element by element, each as one atomic operation: with what it is atomic, shm/accumulate.h
  // says. `operands` lie one behind the other, gaps of pairs included, and may be changed once it
  // returns; null if `what` takes none. `found`, unless null, gets as many elements, as they were
  // before; then `when` is as that of a get, else the call is over as a put is. Calls from one rank
  // keep their order at each element, if that is of one kind. One that has failed may have changed
  // elements before the place where it did.
  virtual ErrorCode Accumulate(OneSidedContext* context, const AccumulateCall& call,
                               const void* operands, void* found, WhenDone when) = 0;

  // How ranks of one node work in each other's memory, without messages. `rank` lives on this node.
  //
  // Where memory of this rank lies, in the form that other ranks use. `flags` is not 0 if only
  // streams reach it, nor for private memory (region 0) that no other process reaches, be it that
  // the kernel lets this one reach others: a driver's own, say.
  virtual shm::Location LocateHere(const void* pointer, uint64_t size_bytes) const = 0;
  // The same for ranks of other nodes, too, who put there, and get, while this rank computes: where
  // they may have direct links, a thread of this rank serves them from now on.
  virtual shm::Location Locate(const void* pointer, uint64_t size_bytes) const = 0;
  // Ends a Rest of that rank's, of this node: its memory was changed, by stores of this one's
  // before this call.
  virtual void TellOfChange(uint32_t rank) = 0;

  // What comes after it is carried out, at each rank, after what came before it. Blocks until the
  // context's long puts are over.
  virtual void Fence(OneSidedContext* context) = 0;
  // Blocks until all that was begun by the context is over, everywhere; or only with one rank.
  // Returns the first error of what has failed since the last Quiet, and the rank it was with. Of
  // each rank the first failure is told, once, and to the context whose operation it was.
  virtual ErrorCode Quiet(OneSidedContext* context, uint32_t* failed_rank) = 0;
  virtual ErrorCode QuietWith(OneSidedContext* context, uint32_t rank) = 0;
  // Whether all that was begun by the context is over by now, or the rank poisoned: Quiet would
  // return at once. Makes no progress, and costs next to nothing. What was found is there, and what
  // has failed is told, only after Quiet.
  virtual bool IsQuiet(OneSidedContext* context) = 0;

 protected:
  ~OneSided() = default;
};

}  // namespace ferry::client
