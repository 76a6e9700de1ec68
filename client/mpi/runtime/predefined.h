// The objects that the standard predefines, other than communicators.
#pragma once

namespace ferry::mpi {

// Puts them into their tables. Once, by MPI_Init.
void MakePredefined();

}  // namespace ferry::mpi
