// Error handlers: what happens when a call fails (MPI 5.0, section 9.3).
//
// Calling thread: any.
#pragma once

#include <mpi.h>

#include "client/mpi/base/object.h"

namespace ferry::mpi {

class ErrorHandler : public Object {
 public:
  enum class Kind { kFatal, kAbort, kReturn, kUser };
  // Which objects it is for. Predefined ones are for all.
  enum class Owner { kAny, kComm, kFile, kSession, kWindow };

  explicit ErrorHandler(Kind kind) : Object(ForAnyThread()), kind(kind) {}
  // A program's own. `function` outlives the handler.
  explicit ErrorHandler(MPI_Comm_errhandler_function* function)
      : Object(ForAnyThread()), kind(Kind::kUser), owner(Owner::kComm), comm_function(function) {}
  explicit ErrorHandler(MPI_File_errhandler_function* function)
      : Object(ForAnyThread()), kind(Kind::kUser), owner(Owner::kFile), file_function(function) {}
  explicit ErrorHandler(MPI_Win_errhandler_function* function)
      : Object(ForAnyThread()), kind(Kind::kUser), owner(Owner::kWindow), win_function(function) {}
  // Of objects that Ferry does not have: never called.
  explicit ErrorHandler(Owner owner) : Object(ForAnyThread()), kind(Kind::kUser), owner(owner) {}

  bool IsFor(Owner object) const { return owner == Owner::kAny || owner == object; }

  const Kind kind;
  const Owner owner = Owner::kAny;
  MPI_Comm_errhandler_function* const comm_function = nullptr;
  MPI_File_errhandler_function* const file_function = nullptr;
  MPI_Win_errhandler_function* const win_function = nullptr;
};

}  // namespace ferry::mpi
