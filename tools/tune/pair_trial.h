// A tiny job, for `ferryctl doctor`: two ranks that send each other messages for a moment, by the
// daemon that a job of this user would use, or a private one.
//
// Main thread. Blocks for a fraction of a second as a rule, and at most for half a minute.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/status.h"
#include "tools/tune/meter_text.h"

namespace ferry::tools {

// `options`: "--name=value", as for ferryd. Nothing, if ferryrun, ferry-meter or libmpi_abi is not
// beside this program. kSystem: the job failed, and has said why on standard error.
std::optional<StatusOr<PairTimes>> TryPair(const std::vector<std::string>& options);

}  // namespace ferry::tools
