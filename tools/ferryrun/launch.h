// One run of ferryrun: from arguments to an exit code. It puts the pieces in this folder together.
#pragma once

#include "tools/ferryrun/arguments.h"

namespace ferry::tools {

// Runs the job and says on standard error what goes wrong. Blocks until it has ended and nothing is
// left of it. Main thread, with no other thread yet.
int RunJob(const Arguments& arguments);

}  // namespace ferry::tools
