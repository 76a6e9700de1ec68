// The memory that ferryd and one worker process share: the ranks to look after, and the copies to
// carry out.
//
// Everything here can be written by the job's user. The worker trusts ferryd; ferryd trusts nothing
// here: it keeps its own positions, reads each word once, and checks the value that it has read.
#pragma once

#include <cstdint>

#include "shm/layout/layout_check.h"
#include "shm/layout/session_layout.h"
#include "shm/layout/wake_layout.h"

namespace ferry::daemon {

// ferryd -> worker: one copy between staging memory and a rank's private or device memory.
struct CopyCommand {
  uint64_t id;              // the result has the same id
  uint64_t remote_address;  // in the rank's process, or in `region`
  uint64_t offset;          // in the staging memory
  uint64_t size_bytes;
  uint32_t direction;  // CopyTask::Direction
  uint32_t lane;       // local index of the rank
  uint32_t region;     // of device memory that the worker has imported; 0: private memory
  uint32_t pool;       // the number of the staging memory
  uint64_t reserved[2];
};
FERRY_ASSERT_LAYOUT(CopyCommand, 64);

// worker -> ferryd.
struct CopyResult {
  uint64_t id;
  int32_t error;  // ErrorCode
  uint32_t reserved;
};
FERRY_ASSERT_LAYOUT(CopyResult, 16);

struct alignas(64) WantedWord {
  uint32_t word;
  uint32_t reserved[15];
};
FERRY_ASSERT_LAYOUT(WantedWord, 64);

// Where a rank of the job is: the worker's copy of the job's plan.
struct RankPlace {
  uint32_t node;
  uint32_t lane;
};
FERRY_ASSERT_LAYOUT(RankPlace, 8);

// Followed by RankPlace[job_size], by rank, which are written before the worker starts; then by
// CopyCommand[capacity] and CopyResult[capacity]: both are rings, and as there are never more than
// `capacity` copies under way, neither can be full.
struct alignas(4096) WorkerControlLayout {
  // The worker writes.
  uint32_t sleeping;  // 1: the worker sleeps in poll, or is about to; ferryd sets it to 0 and wakes
                      // the worker
  uint32_t reserved0;
  uint64_t turns;         // grows while the worker runs
  uint64_t results_tail;  // results written since the start
  uint64_t reserved1[13];
  // ferryd writes.
  alignas(128) uint64_t commands_tail;  // commands written since the start
  uint64_t messages;                    // messages sent over the socket since the start
  uint64_t reserved2[14];
  WantedWord wanted[shm::kMaxLanes];  // by local index; see Attention
};
FERRY_ASSERT_LAYOUT(WorkerControlLayout, 73728);
FERRY_ASSERT_OFFSET(WorkerControlLayout, turns, 8);
FERRY_ASSERT_OFFSET(WorkerControlLayout, results_tail, 16);
FERRY_ASSERT_OFFSET(WorkerControlLayout, commands_tail, 128);
FERRY_ASSERT_OFFSET(WorkerControlLayout, messages, 136);
FERRY_ASSERT_OFFSET(WorkerControlLayout, wanted, 256);

// Where the parts behind WorkerControlLayout begin, and where they end. Cannot overflow.
struct ControlPlaces {
  uint64_t places;    // RankPlace[job_size]
  uint64_t commands;  // CopyCommand[capacity]
  uint64_t results;   // CopyResult[capacity]
  uint64_t end;
};
inline constexpr ControlPlaces PlacesOfControl(uint32_t job_size, uint32_t capacity) {
  ControlPlaces at{};
  at.places = sizeof(WorkerControlLayout);
  at.commands = shm::RoundUpToPage(at.places + uint64_t{job_size} * sizeof(RankPlace));
  at.results = at.commands + uint64_t{capacity} * sizeof(CopyCommand);
  at.end = shm::RoundUpToPage(at.results + uint64_t{capacity} * sizeof(CopyResult));
  return at;
}

}  // namespace ferry::daemon
