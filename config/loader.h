// Options for the daemon and the tools, from all sources.
#pragma once

#include <span>

#include "common/status.h"
#include "config/options.h"

namespace ferry::config {

// Defaults, then the TOML file that --config_file or FERRY_CONFIG_FILE names (none otherwise), then
// `environment` (execve's form, see ProcessEnvironment), then `flags` (without the program's name).
// Any thread; blocks on reading the file. Errors: kConfiguration, saying where.
StatusOr<Options> LoadOptions(std::span<const char* const> flags, const char* const* environment);

}  // namespace ferry::config
