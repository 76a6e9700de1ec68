// Records the operations of the progress thread, while a trace is running.
//
// Off, tracing costs its users one look at TraceTap::ring, which lies in a cache line that they
// need anyway. On, a record is 64 bytes into a ring that was allocated at the start: nothing
// allocates, locks or formats; the oldest records are overwritten and counted. Other threads hand
// in the times of their work with the task (staging/copier.h), so that there is one writer.
//
// Calling thread: the progress thread, but for TraceRing and TraceDump, which belong to their
// holder: the ring is made, and read, elsewhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/status.h"
#include "internode/trace/trace_record.h"

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
struct TraceTap {
  TraceRing* ring = nullptr;  // null: tracing is off
  uint32_t job = 0;

  bool on() const { return ring != nullptr; }
  // The time for a span's beginning: exact if it will be recorded, else that of the turn.
  uint64_t Now(uint64_t turn_ns) const { return on() ? MonotonicNs() : turn_ns; }
  void Put(TraceRecord record) const {
    record.job = job;
    ring->Put(record);
  }
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
