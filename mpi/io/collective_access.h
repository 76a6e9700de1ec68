// Collective reads and writes (MPI 5.0, sections 14.4.2 to 14.4.5): all ranks of a file call
// together, and the call fails on all of them if it does on one.
//
// Calling thread: that of the call, one at a time for one file. Blocks until all ranks have come.
// `call`: the function of MPI, for messages.
#pragma once

#include <cstdint>

#include "mpi/base/failure.h"
#include "mpi/io/access.h"
#include "mpi/io/file.h"

namespace ferry::mpi {

// One rank's part of a collective access. A rank that was refused (its arguments are wrong) takes
// part all the same, and moves nothing.
struct CollectivePart {
  Access access;
  Failure refused;
};

// Moves the parts of all ranks. *moved: the bytes of this rank's own part, as Carry says.
Failure CarryTogether(const char* call, File& file, const CollectivePart& part, int64_t* moved);

// As CarryTogether, at the shared pointer and in the order of ranks; sets the parts' positions.
Failure CarryInOrder(const char* call, File& file, CollectivePart* part, int64_t* moved);

}  // namespace ferry::mpi
