// Options for the daemon and the tools, from all sources.
#pragma once

#include <map>
#include <span>
#include <string_view>

#include "common/status.h"
#include "config/options.h"

namespace ferry::config {

// The sources that set options; each overrules those before it.
enum class Origin { kFile, kEnvironment, kFlag };

// By the names of the options that a source sets, be it to their defaults: what has set them last.
using Origins = std::map<std::string_view, Origin>;

// Reads command-line flags, --name=value or --name value, with - and _ alike in names: all
// `arguments` (without the program's name) into `options`; an argument that is no flag is an error.
// Notes in `origins`, unless it is null, which options they set. Any thread; nothing blocks.
// Errors: kConfiguration, naming the flag.
Status ApplyFlags(std::span<const char* const> arguments, Options* options,
                  Origins* origins = nullptr);

// Defaults, then the TOML file that --config_file or FERRY_CONFIG_FILE names (none otherwise), then
// `environment` (execve's form, see ProcessEnvironment), then `flags` (without the program's name).
// Notes in `origins`, unless it is null, what has set each option. Any thread; blocks on reading
// the file. Errors: kConfiguration, saying where.
StatusOr<Options> LoadOptions(std::span<const char* const> flags, const char* const* environment,
                              Origins* origins = nullptr);

}  // namespace ferry::config
