// The results of `ferryctl tune`, for ferryd, for people and for programs. Pure; any thread.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "tools/tune/tune.h"

namespace ferry::tools {

// A configuration file for ferryd: the measurements as comments, then the options.
std::string TuneFragment(const TuneResult& result);
// SVG: the curves, and what pipelines make of them.
std::string TunePlot(const TuneResult& result);
// The text for the terminal.
std::string TuneText(const TuneResult& result);
nlohmann::ordered_json TuneJson(const TuneResult& result);

}  // namespace ferry::tools
