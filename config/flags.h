// Options from command-line flags: --name=value or --name value, with - and _ alike in names.
//
// Any thread; nothing blocks. Errors: kConfiguration, naming the flag.
#pragma once

#include <span>

#include "common/status.h"
#include "config/options.h"

namespace ferry::config {

// Reads all `arguments` (without the program's name) into `options`; what is no flag is an error.
Status ApplyFlags(std::span<const char* const> arguments, Options* options);

}  // namespace ferry::config
