// How a program is started on another host. Pure functions; any thread.
#pragma once

#include <string>
#include <vector>

#include "common/status.h"
#include "config/options.h"

namespace ferry::tools {

// The command that runs `program` with `arguments` on `host`, its name first: options `launcher`
// and `rsh`. Quotes the remote command for a shell where necessary, since ssh and the like pass it
// to one. kConfiguration: launcher is none, or rsh is empty.
StatusOr<std::vector<std::string>> LauncherCommand(const config::Options& options,
                                                   const std::string& host,
                                                   const std::string& program,
                                                   const std::vector<std::string>& arguments);

}  // namespace ferry::tools
