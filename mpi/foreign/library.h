// libmpi_abi, which the functions here call.
//
// It is opened when this library is loaded, and none but this library sees its names: of
// two functions with one name a program finds the first, which must be this library's, and a name
// that only libmpi_abi has must not stand for a function with other arguments.
#pragma once

namespace ferry::foreign {

// Ends the process if it is a rank of another MPI library already: one process would be part of two
// jobs. Says so if another is only loaded. Before MPI_Init.
void LookForOthers();

// Ends the process if libmpi_abi keeps other words in a status than convert.h says. After MPI_Init.
void CheckLayout();

// For what is not there: says so, lets the error handler run, and returns their MPI_ERR_OTHER or
// what `our_class` is for them.
int Refuse(const char* call, int our_class, const char* text);

// Copies a status between two languages, which have one layout for it; refuses `call` where one of
// the two is no status.
int CopyStatus(const char* call, const void* from, void* to);

// Returns true if MPI serves memory of this kind ("cuda"), as it says of MPI_COMM_SELF; false
// before MPI_Init and after MPI_Finalize.
bool HasMemoryKind(const char* kind);

}  // namespace ferry::foreign
