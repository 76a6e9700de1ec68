// This process as MPI sees it: between MPI_Init and MPI_Finalize, and what it is connected to.
//
// Calling thread: any, but for Initialize and Finalize, as the standard says of MPI_Init and
// MPI_Finalize (MPI 5.0, section 11.2).
#pragma once

#include <mpi.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>

#include "client/core/front_end.h"
#include "client/mpi/comm/comm.h"
#include "client/mpi/error/failure.h"

namespace ferry::mpi {

// The largest tag of a program (MPI_TAG_UB).
inline constexpr int kTagMax = 0x3fffffff;

enum class Phase { kBefore, kRunning, kAfter };

class Process {
 public:
  // Joins the job, has `agree` settle what all ranks must have alike, and makes the predefined
  // objects. Blocks. Collective. If `agree` fails, which it must on all ranks, the job is left.
  static Failure Initialize(int required, int* provided, Failure (*agree)());
  // Ends what was begun with the standard's rules, and leaves the job. Blocks. Collective.
  static Failure Finalize();
  // Ends the job with this exit code, after `sentence` (if any) on the standard error output.
  [[noreturn]] static void Abort(int exit_code, const std::string& sentence);

  static Phase phase();
  // The handler that objects begin with, and that counts for failed calls where no object's does:
  // as the launcher was told (option initial_errhandler; MPI 5.0, section 9.3).
  static MPI_Errhandler initial_error_handler();
  // The functions below are valid between Initialize and Finalize.
  static int thread_level();
  static bool IsMainThread();
  static Comm& world();
  static Comm& self();

  // From now on several threads may call, Ferry's own among them, whatever the thread level. Called
  // by a thread of the program's.
  static void AllowThreads();
  static bool AreThreadsAllowed() { return threads_allowed_.load(std::memory_order_acquire); }

  // For Ferry's own thread: it is at rest, and stays out of the library until a thread of the
  // program's, which says so first, gives it work.
  static void SetHelperAtRest(bool at_rest) {
    helper_at_rest_.store(at_rest, std::memory_order_release);  // Pairs with BeginCall.
  }
  // To be called where calls of the program begin: where Ferry's own thread was the reason for
  // AllowThreads and is at rest, the program's threads have the library for themselves again.
  static void BeginCall() {
    if (AreThreadsAllowed() && helper_at_rest_.load(std::memory_order_acquire)) [[unlikely]] {
      RestrictThreads();
    }
  }

  // To be called by MPI_Finalize while messages still pass, last registered first: what other parts
  // have to put in order.
  static void AtFinalize(std::function<Failure()> action);

 private:
  static void RestrictThreads();

  static inline std::atomic<bool> threads_allowed_{false};
  static inline std::atomic<bool> helper_at_rest_{false};
};

// The rank's connection. Null before Initialize and after Finalize.
extern client::FrontEnd* front_end;

// The MPI error class for an error of a message, or of a call of `front_end`.
int ErrorClassOf(ErrorCode error);
Failure FailureOf(const Status& status);
// The same, with the sentence that `front_end` has for it.
Failure FailureOf(ErrorCode error);
// The same for matched collectives and queues. Here nobody asked for kCancelled: it says that a
// stream was destroyed, or a partner's was.
Failure FailureOfQueue(const Status& status);

}  // namespace ferry::mpi
