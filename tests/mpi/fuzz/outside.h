// Calls before MPI_Init and after MPI_Finalize.
#pragma once

#include <vector>

#include "tests/mpi/fuzz/signatures.h"

namespace ferry::mpi {

// Makes each call in its own process. Those that the standard allows at any time must return, or
// fail for their arguments; the others must end the process with a sentence that names the call and
// says `reason`. Prints the calls that do not; returns their number.
int MakeCallsOutside(const std::vector<CallSignature>& signatures, const char* reason);

}  // namespace ferry::mpi
