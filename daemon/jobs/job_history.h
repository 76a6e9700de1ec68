// The things that have happened to a job on this node, beside its counters: the record of its end
// tells them (daemon/records).
//
// Thread: the control thread; nothing blocks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/clock.h"
#include "common/rank_exits.h"
#include "common/status.h"
#include "shm/histograms.h"

namespace ferry::daemon {

struct JobRecord;
struct Session;

// How long ranks have been attached, all together.
class RankTime {
 public:
  void Begin(uint64_t now_ns = MonotonicNs()) {
    ++attached_;
    sum_ns_ -= now_ns;  // wraps
  }
  void End(uint64_t now_ns = MonotonicNs()) {
    --attached_;
    sum_ns_ += now_ns;
  }
  // Up to that time, with the ranks that are attached still.
  uint64_t At(uint64_t now_ns) const { return sum_ns_ + attached_ * now_ns; }

 private:
  uint64_t attached_ = 0;
  uint64_t sum_ns_ = 0;
};

struct JobHistory {
  uint64_t began_ns = 0;           // since 1970
  uint64_t daemon_cpu_us = 0;      // that this process had used when it began
  uint32_t attached = 0;           // ranks that came
  uint32_t died = 0;               // of these, that ended otherwise than by leaving
  Status first_death;              // how the first of them ended
  std::optional<int> exit_code;    // that a rank gave when it aborted the job
  RankTime rank_time;              // of ranks here
  shm::Histograms histograms;      // of those that have ended
  std::optional<RankExits> exits;  // of all ranks here, as their launcher has told it

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
// Adds the histograms of a session that ends to those of its job, and to `all`; with the waits that
// its calls were in.
void NoteHistograms(JobRecord& job, const Session& session, shm::Histograms* all);

}  // namespace ferry::daemon
