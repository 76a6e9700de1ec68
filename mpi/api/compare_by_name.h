// Compares calls that make communicators, windows and files out of a communicator with what its
// other ranks call (option mpi_check), collectives too: those exchange messages of their own, so
// that ranks in different ones would wait for each other for ever.
//
// Calling thread: the program's.
#pragma once

#include "mpi/api/call.h"
#include "mpi/comm/comm.h"

namespace ferry::mpi {

// To be called once the arguments of the call have been looked at, and whether they are
// right or not: if they are wrong the other ranks learn of it, and nothing blocks. Refuses the call
// on all ranks if another one has called something else, or could not go on. Blocks until all have
// come. `comm`: null where the call names none; then nothing is compared.
void CompareByName(Call& call, Comm* comm);

}  // namespace ferry::mpi
