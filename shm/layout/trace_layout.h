// The last events of a rank, for a timeline of its job (`ferryrun --trace`): a ring in the memory
// that a measured rank shares with its ferryd. Written by the rank (shm/trace_ring.h), copied by
// the daemon as it is, read by tools.
//
// New events take the places of the oldest. A slot says by its check word that it is whole: a copy
// that was made while the rank wrote it, a slot of a rank that was killed there, or one that two
// threads have written at once, has a check word that does not fit, and counts as lost.
#pragma once

#include <cstdint>

#include "shm/layout/layout_check.h"

namespace ferry::shm {

inline constexpr uint64_t kTraceMagic = 0x4352'5459'5252'4546;  // "FERRYTRC"
inline constexpr uint32_t kTraceVersion = 1;
// A ring of fewer slots shows nothing; one of more would take gigabytes.
inline constexpr uint32_t kTraceMinSlots = 16;
inline constexpr uint32_t kTraceMaxSlots = 1U << 26;

enum class TraceKind : uint8_t {
  kNone = 0,
  kCall = 1,       // a call that is over; `number`: of the collective, as CallRecordLayout::number
  kWait = 2,       // a call has begun to wait at `end_ns`; if it ends, its kCall follows
  kSend = 3,       // a message was started; `number` and `order` as the arrows need them
  kPost = 4,       // a receive was posted, the one that `order` numbers
  kReceive = 5,    // a message has come for the receive `order`
  kQueued = 6,     // an operation was put into a queue of a stream, at the position `number`
  kQueueWait = 7,  // the rank has waited for a queue
  kWork = 8,       // a stream that this process runs has carried out `order`, a TraceWork
};

// The work of streams. Numbers are never used anew.
enum class TraceWork : uint32_t {
  kNone = 0,
  kCopy = 1,
  kReduction = 2,
  kMove = 3,       // a message of matched ends
  kMoveWait = 4,   // for such a message
  kEventWait = 5,  // for an event of another stream
  kValueWait = 6,  // for a value in memory
  kHostCall = 7,   // a function of the host: a kernel of the program, where there is no device
};

// Bits of TraceSlot::flags.
inline constexpr uint8_t kTraceHasTag = 1;
inline constexpr uint8_t kTraceHasBytes = 2;
inline constexpr uint8_t kTraceHasNumber = 4;
inline constexpr uint8_t kTraceHasGroup = 8;
inline constexpr uint8_t kTraceFailed = 16;
inline constexpr uint8_t kTraceByLink = 32;  // of kSend: by a direct link

// One event. The call that it tells of lasted from `begin_ns` to `end_ns`.
struct alignas(64) TraceSlot {
  uint64_t head;      // the event's number among the rank's, from 1, shifted by 16; kind; flags
  uint64_t begin_ns;  // CLOCK_MONOTONIC
  uint64_t end_ns;
  uint32_t thread;  // its id in the kernel
  uint32_t order;  // of a receive: its number among the rank's receives, in the order in which they
                   // were posted; of a call: its CallName; of kWork: its TraceWork
  uint32_t group;  // of a message: its context; of a call: CallRecordLayout::group; of a queue, or
                   // of a stream: its number in the rank
  int32_t peer;    // a rank of the job; kCallNoRank
  int32_t tag;
  // Of a message: its number among those from its sender to its receiver with the same context and
  // tag, from 1, as both of them count (the lowest 32 bits); 0: not counted.
  uint32_t number;
  uint64_t bytes;
  uint64_t check;  // TraceCheck of the words before it
};
FERRY_ASSERT_LAYOUT(TraceSlot, 64);
FERRY_ASSERT_OFFSET(TraceSlot, begin_ns, 8);
FERRY_ASSERT_OFFSET(TraceSlot, end_ns, 16);
FERRY_ASSERT_OFFSET(TraceSlot, thread, 24);
FERRY_ASSERT_OFFSET(TraceSlot, order, 28);
FERRY_ASSERT_OFFSET(TraceSlot, group, 32);
FERRY_ASSERT_OFFSET(TraceSlot, peer, 36);
FERRY_ASSERT_OFFSET(TraceSlot, tag, 40);
FERRY_ASSERT_OFFSET(TraceSlot, number, 44);
FERRY_ASSERT_OFFSET(TraceSlot, bytes, 48);
FERRY_ASSERT_OFFSET(TraceSlot, check, 56);

struct alignas(64) TraceRingHeader {
  uint64_t magic;  // kTraceMagic; stored last
  uint32_t version;
  uint32_t slots;     // how many follow; a power of two
  uint64_t begin_ns;  // CLOCK_MONOTONIC: when the ring was made
  uint64_t reserved[5];
};
FERRY_ASSERT_LAYOUT(TraceRingHeader, 64);
FERRY_ASSERT_OFFSET(TraceRingHeader, version, 8);
FERRY_ASSERT_OFFSET(TraceRingHeader, slots, 12);
FERRY_ASSERT_OFFSET(TraceRingHeader, begin_ns, 16);

}  // namespace ferry::shm
