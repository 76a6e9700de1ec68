// The commands of ferryctl that look at daemons. In a daemon that serves all users an ordinary user
// sees only his own jobs.
//
// Main thread. Each blocks for as long as daemons take to answer, Top and Watch until their end.
// Errors: those of choice.h, and the daemon's.
#pragma once

#include "common/status.h"
#include "tools/ferryctl/arguments.h"

namespace ferry::tools {

// Lists the daemons of this user and their jobs. It is no error if there are none.
Status ListDaemons(const CtlArguments& arguments);
Status ShowStatus(const CtlArguments& arguments);
Status Sessions(const CtlArguments& arguments);
Status Counters(const CtlArguments& arguments);
Status Nics(const CtlArguments& arguments);
Status Gpus(const CtlArguments& arguments);
// Explains a rank, all ranks of a job, or every rank that waits.
Status Why(const CtlArguments& arguments);
// Shows rates between one look and the next, until the count is reached or somebody ends it.
Status Top(const CtlArguments& arguments);
// For administrators.
Status Watch(const CtlArguments& arguments);

}  // namespace ferry::tools
