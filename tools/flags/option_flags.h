// The options of config/ as flags of a tool's command line, beside the tool's own.
//
// Main thread only, before it starts others. CLI11 throws; each tool's main catches it.
#pragma once

#include <string>
#include <vector>

#include "common/status.h"
#include "config/loader.h"
#include "config/options.h"

namespace CLI {
class App;  // in full, its header takes longer to compile than what includes this one
}

namespace ferry::tools {

// Gives `app` a flag --name (also --na-me) for each option that may be one, not shown in its help.
// The parse adds each flag that it finds to `flags`, which must outlive it, as "--name=value".
void AddOptionFlags(CLI::App* app, std::vector<std::string>* flags);

// Says on standard error, at the first call, which FERRY_* variables mean nothing.
void WarnOfUnknownVariables();

// Loads the options from their defaults, the configuration file, this process's environment and
// `flags`, as config::LoadOptions does, and calls WarnOfUnknownVariables.
StatusOr<config::Options> LoadOptions(const std::vector<std::string>& flags,
                                      config::Origins* origins = nullptr);

}  // namespace ferry::tools
