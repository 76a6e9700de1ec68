// The timeline of a job: what its ranks have kept of their last events, as a picture for
// ui.perfetto.dev. Each rank is a process of the picture, with a track for each of its threads and
// queues; arrows lead from sends to the receives of their messages. Each daemon that has done
// something for the job is a process, too, and arrows lead through what it did
// (timeline_daemons.h).
//
// A message has no number that travels with it. Both of its ends count the messages between them
// of one context and tag: these are received in the order in which they were sent
// (MPI 5.0, section 3.5), by receives in the order in which those were posted.
//
// Calling thread: any. Blocks as `load` and `write` do.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "shm/daemon_trace.h"
#include "shm/trace_ring.h"
#include "tools/profile/node_clock.h"
#include "tools/profile/trace_json.h"

namespace ferry::tools {

struct TimelineNode {
  std::string name;
  NodeClock clock;
};

struct TimelineRank {
  uint32_t rank = 0;
  uint32_t node = 0;        // index into Timeline::nodes
  uint64_t seen_ns = 0;     // by the node's clock: when its events were copied, or it ended
  bool is_running = false;  // it goes on beyond seen_ns
  bool has_died = false;    // it ended without a goodbye
  shm::TraceEvents trace;
};

// The work of a daemon for the job.
struct TimelineDaemon {
  uint32_t node = 0;     // index into Timeline::nodes
  uint64_t seen_ns = 0;  // by the node's clock: when its events were copied
  shm::DaemonTraceEvents trace;
};

struct Timeline {
  std::string job;  // how people call it
  std::string program;
  uint32_t size = 0;   // ranks of the job
  uint32_t ranks = 0;  // that have events
  std::vector<TimelineNode> nodes;
  uint64_t last_ns = UINT64_MAX;  // only what was not over so long before the last event
  // Reads the events of rank number `i` of `ranks`: twice each, one rank after the other. Only one
  // is in memory at a time; of each message, 24 B at either end, and where there are daemons 128 B
  // more. False: they cannot be had.
  std::function<bool(uint32_t i, TimelineRank* rank)> load;
  // Reads the events of daemon number `i` of `daemons`, as above: three times each.
  uint32_t daemons = 0;
  uint64_t daemons_missing = 0;
  std::function<bool(uint32_t i, TimelineDaemon* daemon)> load_daemon;
};

struct TimelineFacts {
  uint64_t events = 0;  // of the picture's text
  uint64_t arrows = 0;
  uint64_t lost = 0;            // events that newer ones have replaced, of all ranks
  uint64_t unmatched = 0;       // messages of which one end alone is in the picture
  uint64_t backward = 0;        // messages left out since the clocks differ by more than they took
  uint64_t clock_error_ns = 0;  // the largest of a node; UINT64_MAX: some node's is not known
  uint64_t missing = 0;         // ranks that could not be loaded
  uint64_t daemons = 0;         // that are shown
  uint64_t daemons_missing = 0;
  uint64_t daemon_events_lost = 0;
  uint64_t daemon_events_crowded = 0;  // left out, since too many overlap
  uint64_t through_daemons = 0;        // arrows that lead through events of daemons
  uint64_t length_ns = 0;
};

// False: `write` has returned false.
bool WriteTimeline(const Timeline& timeline, const TraceJson::Write& write, TimelineFacts* facts);

}  // namespace ferry::tools
