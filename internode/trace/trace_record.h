// The record that a trace keeps of one operation: fixed size, no text.
//
// A record is written when its operation has ended, so that each has a beginning and an end however
// many older ones were dropped meanwhile.
#pragma once

#include <cstdint>
#include <type_traits>

#include "common/error_code.h"
#include "shm/layout/daemon_trace_layout.h"

namespace ferry::progress {

using TraceKind = shm::DaemonWork;
using TracePlace = shm::DaemonPlace;

inline constexpr uint16_t kNoBlock = shm::kNoDaemonBlock;

struct TraceRecord {
  uint64_t begin_ns = 0;  // CLOCK_MONOTONIC
  uint64_t end_ns = 0;
  uint64_t message = 0;  // the sender's request and its generation; 0: none
  uint64_t offset = 0;   // in the message
  uint64_t bytes = 0;
  uint32_t job = 0;  // TraceDump::jobs
  uint32_t rank = 0;
  uint32_t peer = 0;  // rank
  uint32_t peer_node = 0;
  int16_t error = 0;          // ErrorCode; kWouldBlock: it was still under way when the trace ended
  uint16_t worker = 0;        // which copy worker, or which stream: see StreamNumber
  uint16_t block = kNoBlock;  // of the job's staging memory
  TraceKind kind = TraceKind::kEagerSend;
  TracePlace place = TracePlace::kProgressThread;
};
static_assert(sizeof(TraceRecord) == 64 && std::is_trivially_copyable_v<TraceRecord>);

// The streams that copy out of a device and into it.
constexpr uint16_t StreamNumber(uint32_t device, bool to_device) {
  return static_cast<uint16_t>(2 * device + (to_device ? 1 : 0));
}

// How both ends name a message.
constexpr uint64_t TraceMessage(uint32_t request, uint32_t generation) {
  return uint64_t{generation} << 32 | request;
}

constexpr int16_t TraceError(ErrorCode error) { return static_cast<int16_t>(error); }

// How much a daemon has under way at a moment.
struct TraceCounters {
  uint64_t operations = 0;     // of the network, not complete
  uint64_t staging_busy = 0;   // blocks
  uint64_t staging_waits = 0;  // transfers that wait for a block
  bool operator==(const TraceCounters&) const = default;
};

constexpr TraceRecord CountersRecord(const TraceCounters& counters, uint64_t now_ns) {
  TraceRecord record;
  record.kind = TraceKind::kCounters;
  record.begin_ns = record.end_ns = now_ns;
  record.message = counters.operations;
  record.offset = counters.staging_busy;
  record.bytes = counters.staging_waits;
  return record;
}
constexpr TraceCounters CountersOf(const TraceRecord& record) {
  return {record.message, record.offset, record.bytes};
}

}  // namespace ferry::progress
