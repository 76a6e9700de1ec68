// Where the hosts of a job come from: the command line, or the batch system's job around ferryrun
// (allocation.h).
#pragma once

#include <functional>
#include <string>

#include "common/status.h"
#include "tools/ferryrun/arguments.h"

namespace ferry::tools {

struct HostSource {
  std::function<bool(const std::string&)> is_this_host;  // by a name of the job's hosts
  std::string launcher = {};  // by which the others are reached; empty: as option `launcher` says
  std::string remark =
      {};  // why that is not the batch system's way; empty: it is, or is not wanted
};

// Gives `arguments` the hosts and ranks of the allocation around this process, if they name no
// hosts. Says whose they are, if the user wants to know. `is_launcher_named`: the user has said how
// other hosts are reached. Main thread; blocks as FindAllocation does, and may for name service.
// kInvalidArgument, or the error of a file.
StatusOr<HostSource> TakeHosts(bool is_launcher_named, Arguments* arguments);

}  // namespace ferry::tools
