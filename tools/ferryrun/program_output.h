// Asks another program: runs it to its end and takes what it writes.
//
// Main thread. Blocks until the program has ended, at most for the time that is given.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/status.h"

namespace ferry::tools {

// Returns what `command` (its name first, which is looked for in PATH) writes to standard output.
// Its errors go where ferryrun's go. kNotFound, kPermissionDenied: it cannot be run. kTimeout: it
// has not ended by then, and is killed. kLimitExceeded: it writes more than `most_bytes`. kSystem:
// it has failed.
StatusOr<std::string> OutputOf(const std::vector<std::string>& command, size_t most_bytes,
                               uint64_t timeout_ms);

}  // namespace ferry::tools
