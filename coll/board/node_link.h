// How the members of a board wait for each other, and reach each other's memory.
//
// Implemented over libferry, and by threads in tests. Members are numbered as in the communicator.
// Calling thread: one at a time for each member.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "coll/messenger.h"
#include "common/error_code.h"
#include "gpu_backends/api/reduction.h"

namespace ferry::collective {

// The address of a member's memory, as the other members name it.
struct NodeAddress {
  uint32_t region = 0;
  uint32_t flags = 0;
  uint64_t address = 0;

  NodeAddress At(size_t offset) const { return {region, flags, address + offset}; }
};

struct MemberAddress {
  int member = 0;
  NodeAddress address;
};

class NodeLink {
 public:
  virtual ~NodeLink() = default;

  // Returns once `done(argument)` is true, which is asked whenever another member has called Wake
  // for this one; makes progress meanwhile, and may sleep. May return early. Blocks.
  virtual void WaitFor(bool (*done)(void*), void* argument) = 0;
  // Returns true if WaitFor pauses once instead, and lets the thread do other work. Only then the
  // board asks two more questions. MaySpin: true if the thread has no other work by now. IsAwake:
  // true if no thread sleeps that would go on with this collective, and each looks again before it
  // sleeps.
  virtual bool HasPauses() const { return false; }
  virtual bool MaySpin() const { return true; }
  virtual bool IsAwake() const { return false; }
  // Called before a WaitFor that `member` is to end; with -1, once the wait for it is over.
  virtual void NoteAwaited(int /*member*/) {}
  virtual void Wake(int member) = 0;
  // Returns kOk, or why nothing more will come from that member (or why this one cannot go on).
  virtual ErrorCode StateOf(int member) = 0;

  // Returns where `pointer` lies. `flags` is not 0 if CPUs cannot load from there.
  virtual NodeAddress Locate(const void* pointer, size_t size_bytes) = 0;
  // Copies between this member's memory and another's. Block while they copy.
  virtual ErrorCode Read(int member, const NodeAddress& from, void* to, size_t size_bytes) = 0;
  virtual ErrorCode Write(int member, const NodeAddress& to, const void* from,
                          size_t size_bytes) = 0;

  // Copies a block of each member, one behind the other, to a place of each member, by one small
  // kernel of this member's device; both lists are by member. Blocks. kUnsupported: the kernel does
  // not reach all of that memory, and nothing was done.
  virtual ErrorCode Spread(std::span<const NodeAddress> /*blocks*/,
                           std::span<const NodeAddress> /*places*/, size_t /*block_bytes*/) {
    return ErrorCode::kUnsupported;
  }

  // Reduces the vectors of all members, in their order, by one small kernel of this member's
  // device, and stores the result at each of the places. `vectors` is by member; vectors[self] is
  // this one's. Blocks. kUnsupported: as of Spread.
  virtual ErrorCode Reduce(std::span<const NodeAddress> /*vectors*/,
                           std::span<const MemberAddress> /*places*/, int /*self*/,
                           const gpu::Reduction& /*reduction*/) {
    return ErrorCode::kUnsupported;
  }

  // IsByStream: CPUs cannot load from this memory of the member. Copy copies within the member's
  // memory.
  virtual bool IsByStream(const void* pointer) = 0;
  virtual ErrorCode Copy(void* to, const void* from, size_t size_bytes) = 0;
  // Takes memory with which such copies are fast. Null: there is none left.
  virtual void* TakeStaging(size_t size_bytes) = 0;
  virtual void GiveStaging(void* memory) = 0;

  // Explains the call that has just failed with this error, on this thread.
  virtual FailureText TextOf(ErrorCode /*error*/) { return nullptr; }
};

}  // namespace ferry::collective
