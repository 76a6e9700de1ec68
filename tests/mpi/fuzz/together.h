// Blocking collectives of several ranks, of which one makes a mistake.
#pragma once

#include <vector>

#include "tests/mpi/fuzz/signatures.h"

namespace ferry::mpi {

// Whether the other ranks find out one rank's mistake in this call: blocking collectives without
// arrays of counts (docs/mpi.md, where all ranks share a node).
bool IsFoundOut(const CallSignature& signature);

// Makes `calls` collectives on MPI_COMM_WORLD, whose ranks share a node: in each, one rank passes
// any value for one argument, and the others pass right ones. All return, no object is left over,
// and the next collective has the right result. Collective, with the same seed on all ranks.
// Returns how many calls went wrong; reports them on standard error.
int MakeCallsTogether(unsigned seed, int calls, const std::vector<CallSignature>& signatures);

}  // namespace ferry::mpi
