// Records the operations of the progress thread: those of all jobs, while a trace is running
// (`ferryctl trace start`), and those of a job of which there is to be a timeline in a ring of that
// job's own (`ferryrun --trace`).
//
// Off, tracing costs its users one look at TraceTap::on, which lies in a cache line that they need
// anyway. On, a record is 64 bytes into a ring that was allocated at the start: nothing allocates,
// locks or formats; the oldest records are overwritten and counted. Other threads hand in the times
// of their work with the task (staging/copier.h), so that there is one writer.
//
// Calling thread: the progress thread, but for TraceRing and TraceDump, which belong to their
// holder: the ring is made, and read, elsewhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/status.h"
#include "internode/trace/trace_record.h"
#include "shm/daemon_trace.h"

namespace ferry::progress {

class TraceRing {
 public:
  // For `capacity` records, 1 or more. Touches the memory.
  explicit TraceRing(uint64_t capacity) : records_(capacity) {}

  void Put(const TraceRecord& record) {
    records_[next_] = record;
    next_ = next_ + 1 == records_.size() ? 0 : next_ + 1;
    ++written_;
  }
  uint64_t kept() const { return written_ - dropped(); }
  uint64_t dropped() const { return written_ > records_.size() ? written_ - records_.size() : 0; }
  // Takes all records out, in the order in which they were put in.
  std::vector<TraceRecord> Take();

 private:
  std::vector<TraceRecord> records_;
  size_t next_ = 0;
  uint64_t written_ = 0;
};

// Where the operations of one job are recorded.
class TraceTap {
 public:
  TraceTap() = default;
  // `job`: its number in the trace of the daemon.
  TraceTap(TraceRing* ring, uint32_t job) : ring_(ring), job_(job), is_on_(ring != nullptr) {}

  bool on() const { return is_on_; }
  // The time for a span's beginning: exact if it will be recorded, else that of the turn.
  uint64_t Now(uint64_t turn_ns) const { return on() ? MonotonicNs() : turn_ns; }
  // Only when on. An operation that is recorded as still under way, since the trace of the daemon
  // ends, is no event of the job's own yet: it is to end, and to be recorded then.
  void Put(TraceRecord record) const;
  uint32_t job() const { return job_; }

  // Records where `other` does, as far as the trace of the daemon is concerned.
  void Follow(const TraceTap& other);
  // Records into that ring as well, for as long as the job is here.
  void Keep(std::shared_ptr<shm::DaemonTraceWriter> own);

 private:
  TraceRing* ring_ = nullptr;                    // null: no trace of the daemon is running
  std::shared_ptr<shm::DaemonTraceWriter> own_;  // null: the job has none of its own
  uint32_t job_ = 0;
  bool is_on_ = false;  // either is there
};

struct TraceDump {
  TraceRing ring;
  std::vector<std::string> jobs;  // by TraceRecord::job
  uint64_t begin_ns = 0;          // of the trace
  uint64_t end_ns = 0;
};

class Tracer {
 public:
  // Begins a trace. kAlreadyExists: one is running.
  Status Start(TraceRing ring, uint64_t now_ns);
  // Ends the trace. Every tap that was handed out must be gone. kNotFound: no trace is running.
  StatusOr<TraceDump> Stop(uint64_t now_ns);
  // Returns the tap of a job, at any time; it records nothing while tracing is off.
  TraceTap TapFor(const std::string& job_id);

  bool on() const { return on_; }
  // Records the counters if they have changed. Only when on.
  void Count(const TraceCounters& counters);

 private:
  bool on_ = false;
  TraceRing ring_{1};
  TraceCounters counted_;
  std::vector<std::string> jobs_;
  uint64_t begin_ns_ = 0;
};

}  // namespace ferry::progress
