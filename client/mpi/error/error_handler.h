// Error handlers: what happens when a call fails (MPI 5.0, section 9.3).
#pragma once

#include <mpi.h>

#include "client/mpi/handle/object.h"

namespace ferry::mpi {

class ErrorHandler : public Object {
 public:
  enum class Kind { kFatal, kAbort, kReturn, kUser };

  explicit ErrorHandler(Kind kind) : kind(kind) {}
  // A program's own. `function` outlives the handler.
  explicit ErrorHandler(MPI_Comm_errhandler_function* function)
      : kind(Kind::kUser), comm_function(function) {}

  const Kind kind;
  MPI_Comm_errhandler_function* const comm_function = nullptr;
};

}  // namespace ferry::mpi
