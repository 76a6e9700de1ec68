// The commands of ferryctl that look at daemons. An ordinary user sees of a daemon of all users
// what is his own.
//
// Main thread. Each blocks for as long as daemons take to answer, Top and Watch until their end.
// Errors: those of choice.h, and what the daemon says.
#pragma once

#include "common/status.h"
#include "tools/ferryctl/arguments.h"

namespace ferry::tools {

// The daemons of this user and their jobs. None is no error.
Status ListDaemons(const CtlArguments& arguments);
Status ShowStatus(const CtlArguments& arguments);
Status Sessions(const CtlArguments& arguments);
Status Counters(const CtlArguments& arguments);
Status Nics(const CtlArguments& arguments);
Status Gpus(const CtlArguments& arguments);
// Of a rank, of all ranks of a job, or of every rank that waits.
Status Why(const CtlArguments& arguments);
// Rates between a look and the next, until the count is reached or somebody ends it.
Status Top(const CtlArguments& arguments);
// For administrators.
Status Watch(const CtlArguments& arguments);

}  // namespace ferry::tools
