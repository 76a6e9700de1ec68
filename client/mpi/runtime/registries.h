// Things that a program adds to this process' MPI and that belong to no object: keys of attributes,
// error classes and codes. Both may be used before MPI_Init and after MPI_Finalize.
//
// Calling thread: any.
#pragma once

#include "client/mpi/attribute/attribute.h"
#include "client/mpi/error/codes.h"

namespace ferry::mpi {

Keyvals& ProcessKeyvals();
ErrorCodes& ProcessErrorCodes();

// How callbacks of a kind of object are called.
Keyval::Caller CallerOf(AttributeKind kind);

}  // namespace ferry::mpi
