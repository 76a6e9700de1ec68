// Options from a TOML file: plain `name = value` lines at top level, no tables.
//
// Any thread; blocks on reading the file. Errors: kConfiguration as "file:line: ...". toml++ stays
// behind this header and its exceptions are compiled out.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"
#include "config/options.h"

namespace ferry::config {

// Reads the file at `path` into `options`, and adds those that it sets to `found` unless that is
// null. An empty `path` is an error.
Status ApplyToml(const std::string& path, Options* options,
                 std::vector<const Option*>* found = nullptr);

// Reads TOML text likewise; `path` is for messages.
Status ApplyTomlText(std::string_view text, const std::string& path, Options* options,
                     std::vector<const Option*>* found = nullptr);

}  // namespace ferry::config
