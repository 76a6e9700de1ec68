// The things that have happened to a job on this node, beside its counters: the record of its end tells them
// (daemon/records).
//
// Thread: the control thread; nothing blocks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/status.h"

namespace ferry::daemon {

struct JobRecord;

struct JobHistory {
  uint64_t began_ns = 0;         // since 1970
  uint64_t daemon_cpu_us = 0;    // that this process had used when it began
  uint32_t attached = 0;         // ranks that came
  uint32_t died = 0;             // of these, that ended otherwise than by leaving
  Status first_death;            // how the first of them ended
  std::optional<int> exit_code;  // that a rank gave when it aborted the job

  // That of a job that begins now.
  static JobHistory Begin();
};

// The processor time that this process has used, in microseconds.
uint64_t CpuTimeUs();
// The time of day, in nanoseconds since 1970.
uint64_t RealtimeNs();

// Notes, also in the log, that a rank of this node has ended otherwise than by leaving: Rank::end
// says how.
void NoteDeath(JobRecord& job, uint32_t rank);

}  // namespace ferry::daemon
