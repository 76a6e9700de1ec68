// The ring by which the threads of a GPU hand requests to the daemon (the "reverse-offload ring" of
// Intel SHMEM, section III-D), and the words by which a rank and its daemon agree on it.
//
// A ring is a MpscRingLayout in a region of the rank, its slots, and RingCompletions. A slot's
// payload is a RingRequest; gpu_backends/device has the same structs for device code. The answer to
// a request goes wherever the request says, so answers come in any order and slots never wait for
// them. All of it is the rank's memory: the daemon trusts nothing there (docs/device_ring.md).
#pragma once

#include <cstdint>

#include "shm/layout/layout_check.h"
#include "shm/layout/mpsc_ring_layout.h"

namespace ferry::shm {

inline constexpr uint32_t kMaxRings = 16;  // of one rank
inline constexpr uint32_t kMaxRingSlots = 1 << 16;

enum class RingKind : uint32_t {
  kNone = 0,         // zeroed memory is no request
  kNop = 1,          // answers `value`
  kCounterAdd = 2,   // adds `value` to the CounterLayout there, and answers the sum
  kCounterWait = 3,  // answers once the CounterLayout there is `value` or more
  kStart = 4,        // starts the matched request whose PairLayout is there; answers the number
                     // of the start once its message is complete
  // Operations in the memory of a rank of the job (RingOperation).
  kPut = 5,       // answers once the source may be changed; it is over once the bytes are there
  kGet = 6,       // answers once the bytes are here, or with them
  kPutValue = 7,  // the bytes are in the request
  kAtomic = 8,    // answers the old value
  kFence = 9,     // at each rank, later operations come after earlier ones
  kSignal = 10,   // says what word the next request, a kPut with kRingSignalled, changes at its end
};

inline constexpr bool IsOperation(RingKind kind) {
  return kind >= RingKind::kPut && kind <= RingKind::kAtomic;
}

struct RingRequest {
  uint32_t kind;               // RingKind
  uint32_t completion_region;  // 0: no completion is wanted
  uint64_t completion;         // in that region: offset of a RingCompletion, a multiple of 8
  uint32_t region;             // the region that it acts on
  uint32_t flags;              // 0
  uint64_t offset;             // in `region`
  uint64_t value;
  uint64_t reserved[2];
};
FERRY_ASSERT_LAYOUT(RingRequest, 56);
FERRY_ASSERT_OFFSET(RingRequest, kind, 0);
FERRY_ASSERT_OFFSET(RingRequest, completion_region, 4);
FERRY_ASSERT_OFFSET(RingRequest, completion, 8);
FERRY_ASSERT_OFFSET(RingRequest, region, 16);
FERRY_ASSERT_OFFSET(RingRequest, flags, 20);
FERRY_ASSERT_OFFSET(RingRequest, offset, 24);
FERRY_ASSERT_OFFSET(RingRequest, value, 32);
static_assert(sizeof(RingRequest) == kMpscPayloadBytes);

// RingOperation::flags: the operation takes effect, at its rank, after all earlier ones of the ring
// there.
inline constexpr uint16_t kRingInOrder = 1;
// RingOperation::flags of a kPut that is not empty: the request before it is its kSignal. It
// answers once it is over.
inline constexpr uint16_t kRingSignalled = 2;

// A RingRequest that is an operation in the memory of a rank of the job, such as the ring's own
// rank may carry out with ferry/one_sided.h. All words of a kFence but the kind are 0. A kSignal
// has no answer; its `there`, `rank` and `segment` name the word.
struct RingOperation {
  uint32_t kind;
  uint32_t completion_region;
  uint64_t completion;
  uint32_t region;    // kPut, kGet: of this rank; a kGet's 0: the answer's value gets the bytes
  uint8_t operation;  // kAtomic: OneSidedOperation; kSignal: SignalUpdate
  uint8_t width;      // kAtomic: bytes of the word, 4 or 8; kPutValue: of the value, up to 16
  uint16_t flags;     // kRingInOrder, kRingSignalled
  uint64_t operand;   // kPut, kGet: offset in `region`; kPutValue: the first bytes; kSignal: value
  uint64_t there;     // offset in the segment
  uint32_t rank;      // whose memory
  uint32_t segment;   // as client/api/one_sided.h has it
  uint64_t compare;   // kPut, kGet: how many bytes; kPutValue: the rest of them; kCompareSwap
};
FERRY_ASSERT_LAYOUT(RingOperation, 56);
FERRY_ASSERT_OFFSET(RingOperation, region, 16);
FERRY_ASSERT_OFFSET(RingOperation, operation, 20);
FERRY_ASSERT_OFFSET(RingOperation, width, 21);
FERRY_ASSERT_OFFSET(RingOperation, flags, 22);
FERRY_ASSERT_OFFSET(RingOperation, operand, 24);
FERRY_ASSERT_OFFSET(RingOperation, there, 32);
FERRY_ASSERT_OFFSET(RingOperation, rank, 40);
FERRY_ASSERT_OFFSET(RingOperation, segment, 44);
FERRY_ASSERT_OFFSET(RingOperation, compare, 48);

// `done` names the request that it answers, so that a late answer is not taken for that of the next
// one: its ticket + 1 (48 bits) above the ErrorCode (16 bits). Stored last, with release.
inline constexpr uint32_t kRingStatusBits = 16;

struct RingCompletion {
  uint64_t value;
  uint64_t done;
};
FERRY_ASSERT_LAYOUT(RingCompletion, 16);
FERRY_ASSERT_OFFSET(RingCompletion, value, 0);
FERRY_ASSERT_OFFSET(RingCompletion, done, 8);

// One place for a ring in a session. The rank and the daemon each write their own line.
struct alignas(128) RingWords {
  // Written by the rank. `life` grows by one for each change and is stored last; odd: there is a
  // ring, which the other words describe.
  uint32_t life;
  uint32_t region;
  uint64_t offset;  // of the MpscRingLayout in it
  uint32_t capacity;
  uint32_t reserved0;
  uint64_t reserved1[13];
  // Written by the daemon, which has acted on the life `life_seen`. That is stored after `error`:
  // for an odd life, 0 if the daemon serves the ring, or why it does not; an even life shows that
  // the daemon touches the ring no more.
  uint32_t life_seen;
  int32_t error;          // ErrorCode
  uint64_t requests;      // taken since the ring was made
  uint64_t errors;        // of those, refused or failed
  uint64_t first_ticket;  // the first of the latter
  uint32_t first_kind;
  int32_t first_error;
  uint64_t reserved2[11];
};
FERRY_ASSERT_LAYOUT(RingWords, 256);
FERRY_ASSERT_OFFSET(RingWords, life, 0);
FERRY_ASSERT_OFFSET(RingWords, region, 4);
FERRY_ASSERT_OFFSET(RingWords, offset, 8);
FERRY_ASSERT_OFFSET(RingWords, capacity, 16);
FERRY_ASSERT_OFFSET(RingWords, life_seen, 128);
FERRY_ASSERT_OFFSET(RingWords, error, 132);
FERRY_ASSERT_OFFSET(RingWords, requests, 136);
FERRY_ASSERT_OFFSET(RingWords, errors, 144);
FERRY_ASSERT_OFFSET(RingWords, first_ticket, 152);
FERRY_ASSERT_OFFSET(RingWords, first_kind, 160);
FERRY_ASSERT_OFFSET(RingWords, first_error, 164);

}  // namespace ferry::shm
