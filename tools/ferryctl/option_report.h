// Reports the effective options, and where the value of each comes from.
#pragma once

#include <string>
#include <vector>

#include "common/status.h"
#include "config/options.h"

namespace ferry::tools {

struct OptionOrigin {
  const config::Option* option;
  std::string value;   // "(secret)" for a secret that is set
  std::string origin;  // "default", "file PATH", "variable FERRY_...", "flag --..."
};

// Reports the options of `flags` ("--name=value") over `environment` (execve's form) over the file
// that they name, as config::LoadOptions reads them. Any thread; blocks on reading the file.
// Errors: kConfiguration.
StatusOr<std::vector<OptionOrigin>> ReportOptions(const std::vector<std::string>& flags,
                                                  const char* const* environment);

}  // namespace ferry::tools
