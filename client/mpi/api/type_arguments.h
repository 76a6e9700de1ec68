// Helpers of the calls on datatypes: they look up and give handles, and read arrays.
//
// Functions that return int return MPI_SUCCESS or what the call is to return.
// Calling thread: the caller's.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <string>

#include "client/mpi/datatype/constructors.h"
#include "client/mpi/datatype/datatype.h"
#include "client/mpi/runtime/fail.h"

namespace ferry::mpi {

int FindType(const char* call, MPI_Datatype handle, Datatype** type);
// A place for a result, or an array, that must not be null: MPI_ERR_ARG.
int CheckPointer(const char* call, const void* pointer, const char* argument);
template <typename... Rest>
int CheckPointer(const char* call, const void* pointer, const char* argument, Rest... rest) {
  const int error = CheckPointer(call, pointer, argument);
  return error == MPI_SUCCESS ? CheckPointer(call, rest...) : error;
}
// `error_class` for a negative number.
int CheckCount(const char* call, const char* argument, int64_t count,
               int error_class = MPI_ERR_COUNT);

// Gives a new datatype its first handle; or fails as its constructor did.
int PublishType(const char* call, MadeDatatype made, MPI_Datatype* handle);
// A handle for a datatype that may have some: the one and only of a predefined one, otherwise a
// new one, which the program frees. Null: no memory.
MPI_Datatype HandleOf(Datatype& type);

// An array of a call: as 64-bit numbers, after CheckPointer where it has any.
template <typename Number>
Counts CountsOf(const Number* array, int64_t count) {
  return count > 0 ? Counts(array, array + count) : Counts();
}

// The result in the type that the call has for it; MPI_UNDEFINED if it is too large for that.
template <typename Number>
void PutNumber(Number* to, int64_t value) {
  *to = static_cast<Number>(value);
  if (*to != value) {
    *to = MPI_UNDEFINED;
  }
}

}  // namespace ferry::mpi
