// The rank's connection to libferry, as all of the front end uses it: who may call it at a time,
// and how its errors become MPI's.
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

// Which threads may be in the library at a time.
class Threads {
 public:
  // With the connection: what MPI_Init asked for (MPI_THREAD_SINGLE and so on). Called once.
  static void Begin(int level);
  static void End();
  // For another user of the connection, with a level of its own: what it asks for counts from now
  // on. Call it as AllowThreads of the front end.
  static void Raise(int level);

  // From now on several threads may call, Ferry's own among them, whatever the thread level. Called
  // by a thread of the program's.
  static void Allow();
  // The same, until MPI_Finalize.
  static void AllowForGood();
  static bool AreAllowed() { return allowed_.load(std::memory_order_acquire); }

  // For Ferry's own thread: it is at rest, and stays out of the library until a thread of the
  // program's, which says so first, gives it work.
  static void SetHelperAtRest(bool at_rest) {
    helper_at_rest_.store(at_rest, std::memory_order_release);  // Pairs with BeginCall.
  }
  // To be called where calls of the program begin: where Ferry's own thread was the reason for
  // Allow and is at rest, the program's threads have the library for themselves again.
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

// The MPI error class for an error of a message, or of a call of `front_end`.
int ErrorClassOf(ErrorCode error);
Failure FailureOf(const Status& status);
// The same, with the sentence that `front_end` has for it.
Failure FailureOf(ErrorCode error);
// The same for matched collectives and queues. Here nobody asked for kCancelled: it says that a
// stream was destroyed, or a partner's was.
Failure FailureOfQueue(const Status& status);

}  // namespace ferry::mpi
