// Writes the timeline of a job, whose daemons are asked for it, to a file or elsewhere.
//
// One thread; it blocks for the daemons and the disk.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"
#include "tools/profile/trace_spool.h"

namespace ferry::tools {

// A daemon of the job.
struct TraceSource {
  AskProfile ask;  // empty: this process does not reach it
  std::string name;
  std::vector<ClockSample> clocks;  // asked before
};

struct TracedJob {
  std::string id;
  std::string name;  // as people call it
  std::string program;
  uint32_t size = 0;  // ranks
  uint64_t last_ns = UINT64_MAX;
};

// Asks the daemons, by node of the job, and writes the timeline. Returns a sentence about it for
// the user. kNotFound: no daemon knows the job, or none of its ranks has left events, and `write`
// was not called.
StatusOr<std::string> WriteTrace(const TracedJob& job, std::vector<TraceSource> sources,
                                 const std::function<Status(std::string_view)>& write);

// Reads "10s", "500ms", "2m" or "1h"; seconds without a unit. kInvalidArgument.
StatusOr<uint64_t> ReadDuration(const std::string& text);

}  // namespace ferry::tools
