// A schedule as a program of the engine: its steps become operations, and who waits for whom
// becomes counters and thresholds.
//
// An operation waits for one counter and adds to one. Steps that wait for the same others share a
// counter, to which those others add. A step that different sets of others wait for adds to a
// counter of its own, from which relays (operations that move nothing) pass it on.
//
// Pure functions: any thread, nothing blocks.
#pragma once

#include <cstdint>
#include <vector>

#include "client/mpi/collective/schedule.h"
#include "engine/program/operation.h"

namespace ferry::mpi {

struct ScheduleProgram {
  // Operation i is step i; relays follow, as kNotify.
  std::vector<engine::Operation> operations;
  uint32_t counter_count = 0;  // each of which starts at what it is at
};

ScheduleProgram MakeProgram(const Schedule& schedule);

}  // namespace ferry::mpi
