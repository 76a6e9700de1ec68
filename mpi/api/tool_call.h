// One call of the tool information interface (MPI 5.0, chapter 15), for the function that
// implements it.
//
// These calls may come at any time, also before MPI_Init and after MPI_Finalize. They return the
// codes MPI_T_ERR_* and call no error handler; MPI_Error_string has the message of this thread's
// last failure. Calls of several threads take turns.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <mutex>
#include <string>

#include "mpi/api/then.h"
#include "mpi/base/failure.h"

namespace ferry::mpi {

class ToolCall : public HasThen<ToolCall> {
 public:
  // MPI_T_ERR_NOT_INITIALIZED outside of MPI_T_init_thread and MPI_T_finalize.
  explicit ToolCall(const char* name);

  bool ok() const { return result_ == MPI_SUCCESS; }
  int result() const { return result_; }

  // Fails the call. The first failure counts.
  void Refuse(int code, std::string text);
  void Refuse(const Failure& failure);
  // Refuses a null pointer with MPI_T_ERR_INVALID.
  void Need(const void* pointer, const char* argument);
  // Refuses the call with MPI_T_ERR_INVALID_INDEX unless 0 <= index < size. `what` names the
  // counted things: "control variables".
  void NeedIndex(int index, size_t size, const char* what);

  // How often MPI_T_init_thread was called without its MPI_T_finalize. Used under the lock of a
  // call.
  static int& uses();

 protected:
  struct AtAnyTime {};
  ToolCall(const char* name, AtAnyTime);

 private:
  const char* const name_;
  const std::unique_lock<std::mutex> lock_;
  int result_ = MPI_SUCCESS;
};

// MPI_T_init_thread alone.
class ToolBeginning : public ToolCall {
 public:
  explicit ToolBeginning(const char* name) : ToolCall(name, AtAnyTime()) {}
};

// ---- Results, each of which a tool may leave out ------------------------------------------------

template <typename T>
void PutResult(T* to, T value) {
  if (to != nullptr) {
    *to = value;
  }
}

// Stores a text with its final zero, cut to the *length bytes of room; *length becomes the bytes
// written. Where none can be written, *length becomes the length that the whole text needs (MPI
// 5.0, section 15.3.3).
void PutText(const std::string& text, char* to, int* length);

// Free the handles and sessions that tools have not freed, at the last MPI_T_finalize.
void FreeControlHandles();
void FreePerformanceSessions();
void FreeEventRegistrations();

}  // namespace ferry::mpi
