// A rank's ring of events (shm/layout/trace_layout.h): its writer, and the reader of a copy.
//
// The check word is a multilinear hash of the slot (Carter and Wegman, "Universal classes of hash
// functions", 1979): words of two events in one slot pass for an event in one case of 2^64 or so.
// So the writer needs no order among its stores and no lock, however many threads write, and a
// reader may copy the ring while they do.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "shm/layout/call_layout.h"
#include "shm/layout/call_names.h"
#include "shm/layout/trace_layout.h"

namespace ferry::shm {

// ---- Events -------------------------------------------------------------------------------------

struct TraceEvent {
  TraceKind kind = TraceKind::kNone;
  uint8_t flags = 0;                // kTraceHas...: which of the members below mean something
  CallName name = CallName::kNone;  // of kCall, kWait
  uint64_t begin_ns = 0;
  uint64_t end_ns = 0;  // not before begin_ns
  uint32_t thread = 0;
  uint32_t order = 0;  // of kPost, kReceive, kWork
  uint32_t group = 0;
  int32_t peer = kCallNoRank;
  int32_t tag = 0;
  uint32_t number = 0;
  uint64_t bytes = 0;
};

// ---- The writer ---------------------------------------------------------------------------------

// Calling thread of Add: any of the rank. Nothing blocks or enters the kernel.
class TraceRingWriter {
 public:
  // Returns how many bytes a ring takes that holds the most events in `bytes`; 0: there is no room
  // for one.
  static uint64_t BytesWithin(uint64_t bytes);

  // Makes a ring in `part`, zeroed memory at a multiple of 64 that outlives it, in its first
  // BytesWithin(part.size()) bytes, which is not 0.
  TraceRingWriter(std::span<std::byte> part, uint64_t now_ns);
  TraceRingWriter(const TraceRingWriter&) = delete;
  TraceRingWriter& operator=(const TraceRingWriter&) = delete;

  // `shared`: other threads may add at the same time.
  void Add(const TraceEvent& event, bool shared);
  uint64_t added() const { return added_.load(std::memory_order_relaxed); }

 private:
  TraceSlot* const slots_;
  const uint64_t mask_;
  std::atomic<uint64_t> added_{0};
};

// ---- The reader ---------------------------------------------------------------------------------

// Bounds of a rank's events: a tool takes nothing else over from its ring.
struct TraceLimits {
  uint32_t job_size = 0;
  uint64_t earliest_ns = 0;         // CLOCK_MONOTONIC of the node before the rank began
  uint64_t latest_ns = UINT64_MAX;  // the same after the copy was made
};

struct TraceEvents {
  std::vector<TraceEvent> events;  // in the order in which they were added
  uint64_t added = 0;              // that the rank has added, as far as its slots show
  uint64_t lost = 0;               // added, and not among `events`
  uint64_t refused = 0;            // whole, but such as no rank adds
  uint64_t begin_ns = 0;           // when the ring was made
};

// Reads a copy of a ring, which does not change any more; the rank may have written anything.
// Memory: that of the events. nullopt: it is none, or of another version.
std::optional<TraceEvents> ReadTraceRing(std::span<const std::byte> copy,
                                         const TraceLimits& limits);

}  // namespace ferry::shm
