// What several bindings of calls on datatypes need beside call.h. Calling thread: the caller's.
#pragma once

#include <mpi.h>

#include <cstdint>

#include "client/mpi/api/call.h"
#include "client/mpi/datatype/datatype.h"

namespace ferry::mpi {

// A handle for a datatype that may have some: the one and only of a predefined one, otherwise a
// new one, which the program frees. Null: no memory.
MPI_Datatype HandleOf(Datatype& type);

// `error_class` for a negative number.
void NeedLength(Call& call, int64_t length, const char* argument = "count",
                int error_class = MPI_ERR_COUNT);

// The result in the type that the call has for it; MPI_UNDEFINED if it is too large for that.
template <typename Number>
void PutNumber(Number* to, int64_t value) {
  *to = static_cast<Number>(value);
  if (*to != value) {
    *to = MPI_UNDEFINED;
  }
}

}  // namespace ferry::mpi
