// The standard output of ferryctl. Main thread.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "tools/display/terminal.h"

namespace ferry::tools {

// The width and colours of standard output, as they are now.
Terminal StandardOutput();

// Prints at once, so that a reader can follow.
void Print(const std::string& text);
// On one line if `indent` is negative. Replaces invalid UTF-8, since names may hold any bytes.
void PrintJson(const nlohmann::ordered_json& value, int indent = 2);

}  // namespace ferry::tools
