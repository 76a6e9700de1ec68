// Options for the daemon and the tools, from all sources.
#pragma once

#include <span>

#include "common/status.h"
#include "config/options.h"

namespace ferry::config {

// Reads command-line flags, --name=value or --name value, with - and _ alike in names: all
// `arguments` (without the program's name) into `options`; an argument that is no flag is an error.
// Any thread; nothing blocks. Errors: kConfiguration, naming the flag.
Status ApplyFlags(std::span<const char* const> arguments, Options* options);

// Defaults, then the TOML file that --config_file or FERRY_CONFIG_FILE names (none otherwise), then
// `environment` (execve's form, see ProcessEnvironment), then `flags` (without the program's name).
// Any thread; blocks on reading the file. Errors: kConfiguration, saying where.
StatusOr<Options> LoadOptions(std::span<const char* const> flags, const char* const* environment);

}  // namespace ferry::config
