// Gathers the facts for the checks on this machine, and runs all checks. Main thread; blocks for as
// long as a daemon or a network provider takes to answer.
#pragma once

#include <string>
#include <vector>

#include "tools/doctor/checks.h"

namespace ferry::tools {

// Runs all checks. `flags`: options as on ferryd's command line.
std::vector<Finding> Examine(const std::vector<std::string>& flags);

// Returns true if no finding is a problem (warnings are none).
bool IsHealthy(const std::vector<Finding>& findings);

}  // namespace ferry::tools
