// Error handlers, which are called when a call fails (MPI 5.0, section 9.3).
//
// Calling thread: any.
#pragma once

#include <mpi.h>

#include <mutex>
#include <utility>

#include "mpi/base/object.h"

namespace ferry::mpi {

class ErrorHandler : public Object {
 public:
  enum class Kind { kFatal, kAbort, kReturn, kUser };
  // The kind of object that a handler is for. Predefined handlers are for all.
  enum class Owner { kAny, kComm, kFile, kSession, kWindow };

  explicit ErrorHandler(Kind kind) : Object(ForAnyThread()), kind(kind) {}
  // A program's own. `function` outlives the handler.
  explicit ErrorHandler(MPI_Comm_errhandler_function* function)
      : Object(ForAnyThread()), kind(Kind::kUser), owner(Owner::kComm), comm_function(function) {}
  explicit ErrorHandler(MPI_File_errhandler_function* function)
      : Object(ForAnyThread()), kind(Kind::kUser), owner(Owner::kFile), file_function(function) {}
  explicit ErrorHandler(MPI_Win_errhandler_function* function)
      : Object(ForAnyThread()), kind(Kind::kUser), owner(Owner::kWindow), win_function(function) {}
  explicit ErrorHandler(MPI_Session_errhandler_function* function)
      : Object(ForAnyThread()),
        kind(Kind::kUser),
        owner(Owner::kSession),
        session_function(function) {}

  bool IsFor(Owner object) const { return owner == Owner::kAny || owner == object; }

  // Calls a program's own handler for an object, which may be null, of its kind.
  void Tell(void* object, int code) const {
    auto* const comm = static_cast<MPI_Comm>(object);
    auto* const file = static_cast<MPI_File>(object);
    auto* const session = static_cast<MPI_Session>(object);
    auto* const win = static_cast<MPI_Win>(object);
    TellBy(comm_function, comm, code);
    TellBy(file_function, file, code);
    TellBy(session_function, session, code);
    TellBy(win_function, win, code);
  }

  const Kind kind;
  const Owner owner = Owner::kAny;
  MPI_Comm_errhandler_function* const comm_function = nullptr;
  MPI_File_errhandler_function* const file_function = nullptr;
  MPI_Win_errhandler_function* const win_function = nullptr;
  MPI_Session_errhandler_function* const session_function = nullptr;

 private:
  template <typename Function, typename Handle>
  static void TellBy(Function* function, Handle handle, int code) {
    if (function != nullptr) {
      function(&handle, &code);
    }
  }
};

// A base class of objects with an error handler. Any thread may change the handler.
class HasErrorHandler {
 public:
  explicit HasErrorHandler(Ref<ErrorHandler> handler) : handler_(std::move(handler)) {}

  Ref<ErrorHandler> error_handler() const {
    std::lock_guard lock(mutex_);
    return handler_;
  }
  void SetErrorHandler(Ref<ErrorHandler> handler) {
    std::lock_guard lock(mutex_);
    handler_ = std::move(handler);
  }

 private:
  mutable std::mutex mutex_;
  Ref<ErrorHandler> handler_;
};

}  // namespace ferry::mpi
