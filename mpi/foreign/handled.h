// How MPI calls error handlers that are not C's.
#pragma once

namespace ferry::foreign {

// Of what an error handler is.
enum class Handled : int { kCommunicator = 0, kFile = 1, kWindow = 2, kSession = 3 };

// Calls `function`, which is the program's and of another language, with `*handle`, a handle of
// this kind. The thread is that of the call that failed.
using HandlerCaller = void(Handled kind, void* handle, int* code, void (*function)());

}  // namespace ferry::foreign
