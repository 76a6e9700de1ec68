// A daemon's ring of events about one job (shm/layout/daemon_trace_layout.h): its writer, and the
// reader of a copy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shm/layout/daemon_trace_layout.h"
#include "shm/segment.h"

namespace ferry::shm {

// How people call it.
std::string_view DaemonWorkText(DaemonWork work);
std::string DaemonPlaceText(DaemonPlace place, uint16_t worker);

// ---- The writer ---------------------------------------------------------------------------------

// Calling thread of Add: the progress thread. Nothing blocks or enters the kernel, but for the
// first touch of a page.
class DaemonTraceWriter {
 public:
  // Returns how many bytes a ring takes that holds the most events in `bytes`; 0: there is no room
  // for a useful one.
  static uint64_t BytesWithin(uint64_t bytes);

  // Makes a ring in the mapping of a new segment of BytesWithin(some size) bytes, which are not 0.
  DaemonTraceWriter(Mapping memory, uint64_t now_ns);

  // The check word of the event is set here.
  void Add(const DaemonTraceSlot& event);

 private:
  const Mapping memory_;
  DaemonTraceHeader* const header_;
  DaemonTraceSlot* const slots_;
  const uint64_t mask_;
  uint64_t added_ = 0;
};

// ---- The reader ---------------------------------------------------------------------------------

// Bounds of a job's events: a tool takes nothing else over from what claims to be a daemon.
struct DaemonTraceLimits {
  uint32_t job_size = 0;
  uint64_t latest_ns = UINT64_MAX;  // CLOCK_MONOTONIC of the node after the copy was made
};

struct DaemonTraceEvents {
  std::vector<DaemonTraceSlot> events;  // by the times of their ends
  uint64_t lost = 0;                    // added, and not among `events`
  uint64_t refused = 0;                 // of them: whole, but such as no daemon adds
  // All events that have ended since then are here.
  uint64_t complete_since_ns = 0;
};

// Reads a copy of a ring, which does not change any more. Memory: that of the events. nullopt: it
// is none, or of another version.
std::optional<DaemonTraceEvents> ReadDaemonTrace(std::span<const std::byte> copy,
                                                 const DaemonTraceLimits& limits);

}  // namespace ferry::shm
