// The standard output of ferryctl. Main thread.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "tools/display/terminal.h"

namespace ferry::tools {

// Its width and colours, as they are now.
Terminal StandardOutput();

// At once, for who reads along.
void Print(const std::string& text);
// On one line if `indent` is negative. What is no UTF-8 is replaced: names may hold any bytes.
void PrintJson(const nlohmann::ordered_json& value, int indent = 2);

}  // namespace ferry::tools
