// The messages by which a collective's schedule reaches the other ranks of its communicator. One
// object per communicator; its messages never match those of another.
//
// Implemented over libferry, and by a simulator in tests. Calling thread: one at a time. Nothing
// blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "common/error_code.h"
#include "gpu_backends/api/reduction.h"

namespace ferry::collective {

// A description of a failure beside its code. Null: there is none.
using FailureText = std::shared_ptr<const std::string>;

// Bits of a tag.
inline constexpr uint32_t kCollectiveTagBits = 30;

// Stands in place of a device's number: host memory.
inline constexpr int kHostMemory = -1;

class Messenger {
 public:
  // A message under way. 0: none.
  using Ticket = uint64_t;

  virtual ~Messenger() = default;

  // Starts a message. kOk: it is under way, or over if *ticket is 0. kWouldBlock: no room, try
  // again later. Anything else: it failed. `peer` is a rank of the communicator.
  virtual ErrorCode StartSend(int peer, uint32_t tag, const void* data, size_t size_bytes,
                              Ticket* ticket) = 0;
  // Starts a receive, with the results of StartSend. If it is over, *received_bytes is the size of
  // the message; a message that does not fit is consumed and returns kTruncated. `data` may be null
  // if `size_bytes` is 0.
  virtual ErrorCode StartReceive(int peer, uint32_t tag, void* data, size_t size_bytes,
                                 Ticket* ticket, size_t* received_bytes) = 0;
  // Returns kWouldBlock while the message is under way. Otherwise returns how it ended, after which
  // the ticket is void; *received_bytes is set for a receive.
  virtual ErrorCode Test(Ticket ticket, size_t* received_bytes) = 0;
  // Asks for the end of a message under way: it fails with kCancelled, unless it ends first. Does
  // nothing where messages end in any case.
  virtual void Cancel(Ticket ticket) { static_cast<void>(ticket); }

  // Copies between any two kinds of memory. The ranges do not overlap.
  virtual ErrorCode Copy(void* to, const void* from, size_t size_bytes) = 0;
  // Allocates memory, aligned to 64 bytes, that messages are best sent from: host memory, or, where
  // `device` is not kHostMemory, memory in which that device computes. Null: there is none left.
  virtual void* AllocateScratch(size_t size_bytes, int device) = 0;
  virtual void FreeScratch(void* scratch) = 0;

  // Returns the text of the call that has just failed with this error on this thread, or null.
  virtual FailureText TextOf(ErrorCode /*error*/) { return nullptr; }
};

// Reduces elements.
class Reducer {
 public:
  virtual ~Reducer() = default;
  // to = left (operation) right, element by element. `to` is left, right or apart from both. The
  // operation is associative; where it is not commutative, left stays left.
  virtual ErrorCode Reduce(const void* left, const void* right, void* to, size_t count) = 0;
  // Reduces as Reduce does, by one of several operations, for schedules that name them
  // (Step::operation).
  virtual ErrorCode ReduceBy(uint32_t /*operation*/, const void* left, const void* right, void* to,
                             size_t count) {
    return Reduce(left, right, to, count);
  }
};

// ---- One call -----------------------------------------------------------------------------------

struct RunFailure;

// The data of a reduction in memory that only streams reach, with a kernel of Ferry's that could
// reduce them there. Those of the call's Binding may be copies of them in host memory, which are
// made late.
class DeviceData {
 public:
  virtual ~DeviceData() = default;
  // This rank's vector; where it is in place, the output. And where the result belongs, if the rank
  // gets it; or null.
  const void* input = nullptr;
  void* output = nullptr;
  gpu::ReductionType type = gpu::ReductionType::kI32;
  gpu::ReductionOp op = gpu::ReductionOp::kSum;

  // Makes the data of the binding those of the call. To be called before they are used; all calls
  // but the first do nothing. Blocks while it copies.
  virtual ErrorCode Fetch() = 0;
};

// Where a call's data lie, and the reducer for them (null: nothing is reduced).
struct Binding {
  const void* input = nullptr;
  void* output = nullptr;
  Reducer* reducer = nullptr;
  int device = kHostMemory;  // that reduces, whose memory holds the data; or CPUs
  // A failure of this rank before the start, so that it only tells the others; or null.
  const RunFailure* before = nullptr;
  DeviceData* on_device = nullptr;  // null: `input` and `output` are all that there is
};

// The failure of a run.
struct RunFailure {
  // The difference between another rank's call and this one's.
  enum class Mismatch {
    kNone,
    kSize,        // the other rank's call failed, or has other counts
    kCollective,  // `other` is its Collective
    kRoot         // `other` is its root
  };

  ErrorCode code = ErrorCode::kOk;
  int peer = -1;  // the rank whose message or call failed; -1: none
  Mismatch mismatch = Mismatch::kNone;
  size_t expected_bytes = 0;
  size_t received_bytes = 0;
  int other = 0;
  FailureText text = nullptr;
};

}  // namespace ferry::collective
