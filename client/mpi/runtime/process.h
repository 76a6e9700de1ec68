// This process as MPI sees it: between MPI_Init and MPI_Finalize, and what it is connected to.
//
// Calling thread: any, but for Initialize and Finalize, as the standard says of MPI_Init and
// MPI_Finalize (MPI 5.0, section 11.2).
#pragma once

#include <mpi.h>

#include <functional>
#include <string>

#include "client/mpi/base/connection.h"
#include "client/mpi/base/failure.h"
#include "client/mpi/base/object.h"
#include "client/mpi/comm/comm.h"
#include "client/mpi/info/info.h"
#include "client/mpi/info/memory_kinds.h"

namespace ferry::mpi {

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
  static bool IsMainThread();
  static Comm& world();
  static Comm& self();

  // To be called by MPI_Finalize while messages still pass, last registered first: what other parts
  // have to put in order.
  static void AtFinalize(std::function<Failure()> action);
};

// ---- How it was started, for MPI_INFO_ENV and MPI_Info_create_env (MPI 5.0, section 11.2.1) -----

// All but the command and its arguments; what only MPI_Init settles is left out before it. Calling
// thread: any.
StartFacts FactsOfStart();
// The kinds of memory that this process' MPI serves, over its GPU backend. After MPI_Init.
const MemoryKinds& ServedMemoryKinds();
// Makes the contents of MPI_INFO_ENV. After MPI_Init.
Ref<Info> MakeEnvironment();

}  // namespace ferry::mpi
