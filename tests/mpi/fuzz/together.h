// Blocking collectives of several ranks, of which one makes a mistake.
#pragma once

#include <vector>

#include "tests/mpi/fuzz/signatures.h"

namespace ferry::mpi {

// Whether what one rank does wrong in this call is found out by the others: blocking collectives
// without arrays of counts (docs/mpi.md, where all ranks share a node).
bool IsFoundOut(const CallSignature& signature);

// `calls` collectives on MPI_COMM_WORLD, whose ranks share a node: in each, one rank passes any
// value for one argument, and the others what is right. All return, no object is left over, and the
// next collective gives what it should. Collective, with the same seed on all ranks. Returns how
// many calls went wrong; says so on standard error.
int MakeCallsTogether(unsigned seed, int calls, const std::vector<CallSignature>& signatures);

}  // namespace ferry::mpi
