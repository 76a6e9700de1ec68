// The objects that the standard predefines, other than communicators.
#pragma once

namespace ferry::mpi {

// Puts them into their tables. Once, by MPI_Init.
void MakePredefined();
// Takes datatypes and operations out again, so that their handles stand for nothing. The objects
// stay: a program may still hold datatypes made of them. Once, by MPI_Finalize.
void ForgetPredefined();

}  // namespace ferry::mpi
