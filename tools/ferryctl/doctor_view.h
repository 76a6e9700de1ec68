// The output of `ferryctl doctor`. Pure; any thread.
#pragma once

#include <vector>

#include "tools/display/view.h"
#include "tools/doctor/finding.h"

namespace ferry::tools {

// A line per finding, and under it what to do.
View DoctorView(const std::vector<Finding>& findings, const Terminal& terminal = {});

}  // namespace ferry::tools
