// `ferryctl trace stop`: fetches a trace into a file of the caller's.
#pragma once

#include <cstdint>
#include <string>

#include "common/status.h"
#include "tools/admin/admin_client.h"

namespace ferry::tools {

struct TraceCounts {
  uint64_t records = 0;
  uint64_t dropped = 0;  // older events, for which the daemon had no room
};

// Ends the trace and writes it to `path` (empty: standard output). The file is opened before the
// trace is ended: a path that cannot be written costs no trace. Blocks until all is written.
// Errors: kNotFound (no trace is running; then the file is as it was), those of the call and of
// writing.
StatusOr<TraceCounts> FetchTrace(const AdminClient& client, const std::string& path);

// Tells the user what the file holds, and what to do with it.
std::string TraceText(const std::string& path, const TraceCounts& counts);

}  // namespace ferry::tools
