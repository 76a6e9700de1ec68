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

namespace ferry::collective {

// Where memory of a member lies, as the others name it.
struct NodeAddress {
  uint32_t region = 0;
  uint32_t flags = 0;
  uint64_t address = 0;

  NodeAddress At(size_t offset) const { return {region, flags, address + offset}; }
};

class NodeLink {
 public:
  virtual ~NodeLink() = default;

  // Returns once `done(argument)`, which is asked whenever another member has called Wake for this
  // one; makes progress meanwhile, and may sleep. May return early. Blocks.
  virtual void WaitFor(bool (*done)(void*), void* argument) = 0;
  // Whether WaitFor pauses once in place of that, and lets the thread do something else. There:
  // whether there is nothing else to do by now; and whether nobody sleeps who would go on with
  // this, and whoever does looks before sleeping.
  virtual bool HasPauses() const { return false; }
  virtual bool MaySpin() const { return true; }
  virtual bool IsAwake() const { return false; }
  virtual void Wake(int member) = 0;
  // kOk, or why nothing more will come from that member (or why this one cannot go on).
  virtual ErrorCode StateOf(int member) = 0;

  // Where `pointer` lies. `flags` is not 0 if CPUs cannot load from there.
  virtual NodeAddress Locate(const void* pointer, size_t size_bytes) = 0;
  // Copies between this member's memory and another's. Block while they copy.
  virtual ErrorCode Read(int member, const NodeAddress& from, void* to, size_t size_bytes) = 0;
  virtual ErrorCode Write(int member, const NodeAddress& to, const void* from,
                          size_t size_bytes) = 0;

  // Brings a block of each member, one behind the other, to a place of each member, by one small
  // kernel of this member's device; both lists are by member. Blocks. kUnsupported: that does not
  // reach all of it, and nothing was done.
  virtual ErrorCode Spread(std::span<const NodeAddress> /*blocks*/,
                           std::span<const NodeAddress> /*places*/, size_t /*block_bytes*/) {
    return ErrorCode::kUnsupported;
  }

  // Copies within this member's memory, where CPUs cannot load from all of it.
  virtual bool IsByStream(const void* pointer) = 0;
  virtual ErrorCode Copy(void* to, const void* from, size_t size_bytes) = 0;
  // Memory that such copies are fast with. Null: there is none left.
  virtual void* TakeStaging(size_t size_bytes) = 0;
  virtual void GiveStaging(void* memory) = 0;

  // Of the call that has just failed with this error, on this thread.
  virtual FailureText TextOf(ErrorCode /*error*/) { return nullptr; }
};

}  // namespace ferry::collective
