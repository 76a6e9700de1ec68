// Operations and programs: what every transfer of Ferry is made of.
//
// An operation moves something once its trigger, a counter, has reached a threshold, and adds to
// counters when it is done. A program is a graph of operations, tied together by counters, that is
// installed once and started many times: each start moves its thresholds on by a fixed stride, so
// starting costs one increment. After the deferred operations of Portals 4 and libfabric
// (fi_trigger), and the schedules of MPI partitioned collectives (I, R, reduction, O, A).
//
// A counter has one class of writer (CPU, NIC or one GPU stream): what must combine is combined by
// operations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "shm/layout/counter_layout.h"

namespace ferry::engine {

enum class OperationKind : uint8_t { kPut, kGet, kAtomic, kCopy, kReduce, kNotify };

// Where an operation runs, best first (docs/architecture.md).
enum class Placement : uint8_t { kStream = 0, kRank = 1, kNic = 2, kDaemon = 3 };
inline constexpr size_t kPlacements = 4;

inline constexpr uint32_t kNoCounter = UINT32_MAX;

struct Trigger {
  uint32_t counter = kNoCounter;  // which of the program's; none: the program's start
  uint64_t threshold = 1;         // how far it must grow for each start
};

struct Operation {
  OperationKind kind = OperationKind::kCopy;
  Placement placement = Placement::kDaemon;  // where it had best run; elsewhere if there is no room
  Trigger trigger;
  uint32_t local_done = kNoCounter;  // which of the program's counters grows by one at its end
  uint64_t remote_done = 0;  // the executor's name for a counter at the peer that does, too; or 0
  uint64_t timeout_ns = 0;   // from the trigger seen reached; 0: none
  uint64_t body = 0;         // the executor's own: which bytes, which peer
};

struct ProgramCounter {
  shm::CounterLayout* word = nullptr;  // outlives the program
  // How far it grows for each start, where others than the program's own operations add to it (a
  // peer, a stream, partitions that become ready). 0: by what those operations add.
  uint64_t per_start = 0;
};

struct ProgramSpec {
  // Starts the program as often as it grows: a doorbell that a stream may write. Null: the engine
  // keeps one of its own.
  shm::CounterLayout* start = nullptr;
  std::vector<ProgramCounter> counters;
  std::vector<Operation> operations;
};

}  // namespace ferry::engine
