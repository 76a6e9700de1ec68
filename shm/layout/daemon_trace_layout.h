// The last events of a daemon's work for one job, for a timeline of that job (`ferryrun --trace`):
// a ring in a memfd that the daemon keeps beside what the job's ranks leave, and hands out with it
// (JobProfile of proto/control.proto). Written by the daemon's progress thread, copied as it is,
// read by tools (shm/daemon_trace.h). No rank has it.
//
// New events take the places of the oldest. A slot says by its check word that it is whole: one
// that was copied while the daemon wrote it has a check word that does not fit, and counts as lost.
#pragma once

#include <cstdint>

#include "shm/layout/layout_check.h"

namespace ferry::shm {

inline constexpr uint64_t kDaemonTraceMagic = 0x4352'5444'5252'4546;  // "FERRDTRC" in memory order
inline constexpr uint32_t kDaemonTraceVersion = 1;
// A ring of fewer slots shows nothing; one of more would take gigabytes.
inline constexpr uint32_t kDaemonTraceMinSlots = 16;
inline constexpr uint32_t kDaemonTraceMaxSlots = 1U << 26;

// Numbers are never used anew.
enum class DaemonWork : uint8_t {
  // A moment.
  kEagerSend = 0,  // a message went out with all of its bytes
  kDelivery = 1,   // a message or an RTS from another node was passed to its rank
  kCounters = 2,   // how much the daemon has under way; in no job's ring, since it is of all jobs
  // A span.
  kRts = 3,         // sender: from the request to send to the receiver's answer
  kRndvGet = 4,     // receiver: from the rank's wish to its end
  kRead = 5,        // receiver: one RDMA read
  kCopyIn = 6,      // sender: one block, out of private or device memory into staging
  kCopyOut = 7,     // receiver: one block, out of staging into private or device memory
  kStagedSend = 8,  // sender: the staging of one message
  kLent = 9,        // sender: one block, from its announcement until the peer gives it back
  kPut = 10,        // sender: a message that it writes itself, from the rank's wish to its end
  kWrite = 11,      // sender: one RDMA write
};
inline constexpr DaemonWork kLastDaemonWork = DaemonWork::kWrite;

enum class DaemonPlace : uint8_t {
  kProgressThread = 0,
  kCopyWorker = 1,
  kFerryWorker = 2,
  kNic = 3,
  kStream = 4,  // of a GPU
};
inline constexpr DaemonPlace kLastDaemonPlace = DaemonPlace::kStream;

inline constexpr uint16_t kNoDaemonBlock = UINT16_MAX;
// Requests from here on, in the lower half of `message`, are of one-sided operations.
inline constexpr uint32_t kFirstOneSidedMessage = 1U << 31;

struct alignas(64) DaemonTraceSlot {
  uint64_t begin_ns;  // CLOCK_MONOTONIC of the daemon's node
  uint64_t end_ns;
  uint64_t message;  // the sender's request, and above it its generation; 0: none
  uint64_t offset;   // in the message
  uint64_t bytes;
  uint32_t rank;  // of the daemon's node
  uint32_t peer;  // rank
  uint32_t peer_node;
  int16_t error;  // ErrorCode
  uint16_t
      worker;      // which copy worker; of a stream: 2 * device, and 1 more for those to the device
  uint16_t block;  // of the job's staging memory; kNoDaemonBlock
  uint8_t work;    // DaemonWork
  uint8_t place;   // DaemonPlace
  uint32_t check;  // of the words before it
};
FERRY_ASSERT_LAYOUT(DaemonTraceSlot, 64);
FERRY_ASSERT_OFFSET(DaemonTraceSlot, end_ns, 8);
FERRY_ASSERT_OFFSET(DaemonTraceSlot, message, 16);
FERRY_ASSERT_OFFSET(DaemonTraceSlot, offset, 24);
FERRY_ASSERT_OFFSET(DaemonTraceSlot, bytes, 32);
FERRY_ASSERT_OFFSET(DaemonTraceSlot, rank, 40);
FERRY_ASSERT_OFFSET(DaemonTraceSlot, peer, 44);
FERRY_ASSERT_OFFSET(DaemonTraceSlot, peer_node, 48);
FERRY_ASSERT_OFFSET(DaemonTraceSlot, error, 52);
FERRY_ASSERT_OFFSET(DaemonTraceSlot, worker, 54);
FERRY_ASSERT_OFFSET(DaemonTraceSlot, block, 56);
FERRY_ASSERT_OFFSET(DaemonTraceSlot, work, 58);
FERRY_ASSERT_OFFSET(DaemonTraceSlot, place, 59);
FERRY_ASSERT_OFFSET(DaemonTraceSlot, check, 60);

struct alignas(64) DaemonTraceHeader {
  uint64_t magic;  // kDaemonTraceMagic; stored last
  uint32_t version;
  uint32_t slots;     // how many follow; a power of two
  uint64_t begin_ns;  // CLOCK_MONOTONIC: when the ring was made
  uint64_t added;     // events so far
  uint64_t reserved[4];
};
FERRY_ASSERT_LAYOUT(DaemonTraceHeader, 64);
FERRY_ASSERT_OFFSET(DaemonTraceHeader, version, 8);
FERRY_ASSERT_OFFSET(DaemonTraceHeader, slots, 12);
FERRY_ASSERT_OFFSET(DaemonTraceHeader, begin_ns, 16);
FERRY_ASSERT_OFFSET(DaemonTraceHeader, added, 24);

}  // namespace ferry::shm
