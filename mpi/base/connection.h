// The rank's connection to libferry, as all of the front end uses it, with the threads that may
// call it at a time, and the conversion of its errors to MPI's.
//
// Calling thread: any.
#pragma once

#include <atomic>

#include "client/api/front_end.h"
#include "mpi/base/failure.h"

namespace ferry::mpi {

// The largest tag of a program (MPI_TAG_UB).
inline constexpr int kTagMax = 0x3fffffff;

// Null before MPI_Init and after MPI_Finalize.
extern client::FrontEnd* front_end;

// The threads that may be in the library at a time.
class Threads {
 public:
  // Sets the level that MPI_Init asked for (MPI_THREAD_SINGLE and so on). Called once, with the
  // connection.
  static void Begin(int level);
  static void End();
  // Raises the level for another user of the connection. To be called at the same time as
  // AllowThreads of the front end.
  static void Raise(int level);

  // Lets several threads call from now on, Ferry's own among them, whatever the thread level.
  // Called by a thread of the program's.
  static void Allow();
  // Lets several threads call until MPI_Finalize.
  static void AllowForGood();
  static bool AreAllowed() { return allowed_.load(std::memory_order_acquire); }

  // Called by Ferry's own thread: while it is at rest it stays out of the library, until a thread
  // of the program's, which first calls this with false, gives it work.
  static void SetHelperAtRest(bool at_rest) {
    helper_at_rest_.store(at_rest, std::memory_order_release);  // Pairs with BeginCall.
  }
  // Gives the program's threads the library for themselves again, where Ferry's own thread was the
  // reason for Allow and is at rest. To be called where calls of the program begin.
  static void BeginCall() {
    if (AreAllowed() && helper_at_rest_.load(std::memory_order_acquire)) [[unlikely]] {
      Restrict();
    }
  }

 private:
  static void Restrict();

  static inline std::atomic<bool> allowed_{false};
  static inline std::atomic<bool> helper_at_rest_{false};
};

// Returns the MPI error class for an error of a message, or of a call of `front_end`.
int ErrorClassOf(ErrorCode error);
Failure FailureOf(const Status& status);
// Converts an error to a failure, with the text that `front_end` has for it.
Failure FailureOf(ErrorCode error);
// Converts an error of matched collectives and queues. There kCancelled is no request of the
// program's: it says that a stream was destroyed, or a partner's was.
Failure FailureOfQueue(const Status& status);

}  // namespace ferry::mpi
