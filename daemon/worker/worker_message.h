// The messages between ferryd and a worker process over their seqpacket socket: set-up only.
//
// All messages have one form; each uses the fields that its kind names.
#pragma once

#include <cstdint>

#include "common/version.h"
#include "proto/attach_protocol.h"

namespace ferry::daemon {

inline constexpr uint64_t kWorkerMagic = 0x5245'4b52'4f57'4646ULL;
inline constexpr int kWorkerSocket = 3;  // the worker's end
// The exit status of a worker that could not be confined, be it before it became the program or by
// itself.
inline constexpr int kExitNoIsolation = 123;

enum class WorkerMessageKind : uint32_t {
  // From ferryd.
  kStart = 1,       // job_id, job_size, node, local_size, capacity, chunk_bytes + [control memfd,
                    // bell eventfd]
  kSession = 2,     // rank, lane, pid, size_bytes, inbox_bytes + [session memfd, inbox memfd]
  kEndSession = 3,  // rank
  kRegion = 4,      // rank, region, size_bytes + [memfd]
  kEndRegion = 5,   // rank, region
  kStaging = 6,     // pool, size_bytes, chunk_bytes (of a block) + [memfd]
  kWake = 7,        // nothing: ends a sleep
  kDevice = 8,      // rank, region, size_bytes, allocation_id, device, handle + [descriptor, if the
                    // vendor's handle has one]: device memory to be imported; kEndRegion ends it
  kLent = 9,        // as kRegion, for a region that is only read
  // From the worker.
  kReady = 16,    // layout_version; the worker's first message
  kReach = 17,    // rank, code: kOk if its private memory can be read
  kTrouble = 18,  // rank, code: its segments or regions cannot be used
  kImport = 19,   // rank, region, code, text: how kDevice has ended
};

struct WorkerMessage {
  uint64_t magic;
  uint32_t kind;
  uint32_t layout_version;
  uint32_t rank;
  uint32_t lane;
  uint32_t region;
  int32_t pid;
  uint64_t size_bytes;
  uint64_t inbox_bytes;
  int32_t code;
  uint32_t capacity;
  uint32_t chunk_bytes;
  uint32_t job_size;
  uint32_t local_size;
  uint32_t node;
  char job_id[64];
  uint64_t allocation_id;
  uint32_t device;
  uint32_t pool;
  uint8_t handle[attach::kHandleBytes];
  char text[192];
};
static_assert(sizeof(WorkerMessage) <= attach::kMaxPacketBytes);

inline WorkerMessage MakeWorkerMessage(WorkerMessageKind kind) {
  WorkerMessage message{};
  message.magic = kWorkerMagic;
  message.kind = static_cast<uint32_t>(kind);
  message.layout_version = kLayoutVersion;
  return message;
}

}  // namespace ferry::daemon
