// libfabric's providers on this machine. Any thread; may block while they look for their devices.
#pragma once

#include <string>
#include <vector>

#include "tools/doctor/checks.h"

namespace ferry::tools {

std::vector<Provider> ListProviders();
std::string LibfabricVersion();  // "1.17", or "(not installed)"

}  // namespace ferry::tools
