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
Status ListDaemons(const Arguments& arguments);
Status ShowStatus(const Arguments& arguments);
Status Sessions(const Arguments& arguments);
Status Counters(const Arguments& arguments);
Status Nics(const Arguments& arguments);
Status Gpus(const Arguments& arguments);
// Of a rank, of all ranks of a job, or of every rank that waits.
Status Why(const Arguments& arguments);
// Rates between a look and the next, until the count is reached or somebody ends it.
Status Top(const Arguments& arguments);
// For administrators.
Status Watch(const Arguments& arguments);

}  // namespace ferry::tools
