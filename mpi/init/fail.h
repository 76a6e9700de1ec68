// How a call of MPI fails: its message is remembered for MPI_Error_string, and the communicator's
// error handler decides whether the call returns (MPI 5.0, section 9.3).
//
// Calling thread: any.
#pragma once

#include <mpi.h>

#include <string>

#include "mpi/base/failure.h"
#include "mpi/comm/comm.h"

// Returns the value of `expression` from the calling function, unless that is MPI_SUCCESS.
#define FERRY_RETURN_ERROR(expression)                                                   \
  do {                                                                                   \
    if (const int ferry_error = (expression); ferry_error != MPI_SUCCESS) [[unlikely]] { \
      return ferry_error;                                                                \
    }                                                                                    \
  } while (false)

namespace ferry::mpi {

// Fails the call, and returns the error class, which the call is to return. `comm` null: the call
// belongs to no communicator, so MPI_COMM_SELF's handler counts (MPI 5.0, section 9.3), and before
// MPI_Init the initial one (process.h).
int Fail(const char* call, Comm* comm, const Failure& failure);
int Fail(const char* call, Comm* comm, int error_class, std::string text);
// Fails the call if `failure` is one; else returns MPI_SUCCESS.
inline int Conclude(const char* call, Comm* comm, const Failure& failure) {
  return failure.ok() ? MPI_SUCCESS : Fail(call, comm, failure);
}
// Fails the call if `failure` is one; else returns MPI_SUCCESS. operation.comm() is called only for
// a failure.
template <typename Operation>
int Conclude(const char* call, const Operation& operation, const Failure& failure) {
  return failure.ok() ? MPI_SUCCESS : Fail(call, operation.comm(), failure);
}

// Fails the call by this error handler, which is called with `object`, a handle of its kind. Null:
// the initial handler.
int FailBy(const char* call, const Ref<ErrorHandler>& handler, void* object,
           const Failure& failure);

// Fails the call for a communicator's handle that stands for none, with the reason.
int FailComm(const char* call, MPI_Comm handle);
// Fails the call for any other handle that stands for nothing: `kind` is the handle's type, such as
// "MPI_Datatype".
int FailHandle(const char* call, Comm* comm, int error_class, const char* kind, const void* handle);
// Returns the message of this thread's last failing call: MPI_Error_string adds it to the text of
// the error class that the call returned. Empty: that call returned another class.
const std::string& LastMessage(int error_class);
void Remember(int error_class, std::string sentence);

// An address, or a handle, as messages print it.
std::string HexText(const void* address);
// The words for a handle that stands for nothing.
std::string NoSuchHandle(const char* kind, const void* handle);

// Fails the call while MPI is not running, when most calls are errors: it runs between MPI_Init and
// MPI_Finalize, and while a session is open. Else returns MPI_SUCCESS.
int CheckRunning(const char* call);
// Fails the call before MPI_Init and after MPI_Finalize, whatever sessions are open.
int CheckInWorld(const char* call);

}  // namespace ferry::mpi
