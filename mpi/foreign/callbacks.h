// Callbacks of other languages.
//
// A family's library for Fortran or C++ makes a keyval, an operation, an error handler or a
// generalised request by the call that C has, with functions of its own language for C's. Right
// after that, in the same thread, it calls a function of the family that says how these functions
// are called. Such a function of the family changes here what that thread has made last.
//
// Any thread; nothing here waits.
#pragma once

#include <atomic>

#include "mpi/foreign/convert.h"
#include "mpi/foreign/handled.h"

namespace ferry::foreign {

// ---- Attributes ---------------------------------------------------------------------------------

using Copy = int(TheirHandle, int, void*, void*, void*, int*);
using Delete = int(TheirHandle, int, void*, void*);

// The extra state that our callbacks are handed. Lives as long as the process: a keyval that was
// freed still serves the attributes that have it.
struct Keyval {
  Copy* copy;
  Delete* remove;
  void* extra_state;
};

// ---- Generalised requests -----------------------------------------------------------------------

struct Grequest {
  int (*query)(void*, Status*);
  int (*free)(void*);
  int (*cancel)(void*, int);
  void* extra_state;
};

// ---- Operations and error handlers --------------------------------------------------------------

// The function that calls one of the program. Null: that one is C's. An OperationCaller or a
// HandlerCaller.
using OtherCaller = std::atomic<void (*)()>;

using OperationCaller = void(void* in, void* inout, int length, TheirHandle datatype,
                             void (*function)());

// ---- The last of a thread -----------------------------------------------------------------------

struct LastMade {
  int keyval_number;
  Keyval* keyval;  // null: nothing yet; so below
  TheirHandle request_handle;
  Grequest* request;
  TheirHandle operation_handle;
  TheirHandle* operation_place;  // where the program has the handle
  void (*operation_function)();
  int operation_commutes;
  OtherCaller* operation;
  TheirHandle handler_handle;
  OtherCaller* handler;
};

LastMade& LastOfThisThread();

}  // namespace ferry::foreign
