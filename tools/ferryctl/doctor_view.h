// What `ferryctl doctor` shows. Pure; any thread.
#pragma once

#include <vector>

#include "tools/doctor/finding.h"
#include "tools/ferryctl/view.h"

namespace ferry::tools {

// A line per finding, and under it what to do.
View DoctorView(const std::vector<Finding>& findings, const Terminal& terminal = {});

}  // namespace ferry::tools
