// The options of config/ as flags of a tool's command line, beside the tool's own.
//
// Main thread only, before it starts others. CLI11 throws; each tool's main catches it.
#pragma once

#include <string>
#include <vector>

#include "common/status.h"
#include "config/options.h"

namespace CLI {
class App;  // in full, its header takes longer to compile than what includes this one
}

namespace ferry::tools {

// Gives `app` a flag --name (also --na-me) for each option that may be one, not shown in its help.
// What is found is added to `flags` as "--name=value", which must outlive the parse.
void AddOptionFlags(CLI::App* app, std::vector<std::string>* flags);

// Says on standard error, at the first call, which FERRY_* variables mean nothing.
void WarnOfUnknownVariables();

// Defaults, configuration file, this process's environment, `flags`. WarnOfUnknownVariables.
StatusOr<config::Options> LoadOptions(const std::vector<std::string>& flags);

}  // namespace ferry::tools
