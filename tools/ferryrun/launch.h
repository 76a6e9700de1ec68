// One run of ferryrun: from arguments to an exit code. The pieces are in this folder; here they
// meet.
#pragma once

#include "tools/ferryrun/arguments.h"

namespace ferry::tools {

// Runs the job and says on standard error what goes wrong. Blocks until it has ended and nothing of
// it is left. Main thread, with no other thread yet.
int RunJob(const Arguments& arguments);

}  // namespace ferry::tools
