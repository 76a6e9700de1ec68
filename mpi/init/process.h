// The state of MPI in this process: if it runs, and if the process is in its job.
//
// MPI runs between MPI_Init and MPI_Finalize (the world model; MPI 5.0, section 11.2), and while a
// session is open (section 11.3). The process joins its job with the first of these, and stays in
// it until
//   - MPI_Finalize, if no session was ever open;
//   - the end of the process otherwise: parts of the program may open as many sessions as they like
//     later, and no process can join a job twice.
//
// Calling thread: any, but for Initialize and Finalize, as the standard says of MPI_Init and
// MPI_Finalize.
#pragma once

#include <mpi.h>

#include <functional>
#include <string>

#include "mpi/base/connection.h"
#include "mpi/base/failure.h"
#include "mpi/base/object.h"
#include "mpi/base/session.h"
#include "mpi/comm/comm.h"
#include "mpi/info/info.h"
#include "mpi/info/memory_kinds.h"

namespace ferry::mpi {

enum class Phase { kBefore, kRunning, kAfter };

class Process {
 public:
  // Called when the process joins the job. `agree` settles the values that all ranks must have
  // alike, and is collective over the job; if it fails, which it must on all ranks, the process
  // leaves the job. `prepare` comes after it, once the predefined objects exist.
  struct Joining {
    Failure (*agree)();
    void (*prepare)();
  };

  // MPI_Init_thread. Blocks. Collective.
  static Failure Initialize(int required, int* provided, const Joining& joining);
  // MPI_Finalize. Ends all operations and objects by the standard's rules. Blocks. Collective.
  static Failure Finalize();
  // Begin and end a session. The first one in a process joins the job, and blocks until all of its
  // ranks have joined; others do not block.
  static Failure OpenSession(int thread_level, const Joining& joining);
  static void CloseSession();
  // Ends the job with this exit code, after `sentence` (if any) on the standard error output.
  [[noreturn]] static void Abort(int exit_code, const std::string& sentence);

  // The phase of the world model.
  static Phase phase();
  static bool IsRunning();
  // Returns true while this process is in the job, so that messages pass.
  static bool HasJoined();
  static bool HasUsedSessions();
  // The error handler that objects begin with, and by which calls that belong to no object fail:
  // option initial_errhandler of the launcher (MPI 5.0, section 9.3).
  static MPI_Errhandler initial_error_handler();
  // Makes the predefined error handlers, which a program may pass to its first call. Any number of
  // times.
  static void MakeErrorHandlers();
  // Valid between Initialize and Finalize.
  static bool IsMainThread();
  static int thread_level();
  // Valid while MPI runs. With sessions only, programs cannot name these two.
  static Comm& world();
  static Comm& self();

  // Register actions that need messages, which run in the reverse order: those of AtFinalize at
  // MPI_Finalize, those of AtLeave after them, before the process leaves the job.
  static void AtFinalize(std::function<Failure()> action);
  static void AtLeave(std::function<Failure()> action);
};

// ---- How it was started, for MPI_INFO_ENV and MPI_Info_create_env (MPI 5.0, section 11.2.1) -----

// Returns all but the command and its arguments; facts that only the job knows are left out before
// this process has joined it. Calling thread: any.
StartFacts FactsOfStart();
// Returns the kinds of memory that this process' MPI serves, over its GPU backend. Once the process
// has joined.
const MemoryKinds& ServedMemoryKinds();
// Returns the entry mpi_memory_alloc_kinds for objects that belong to the session (null: to none):
// these kinds, with those that the session, or the launcher, has asked for. Once the process has
// joined.
Info::Entry MemoryKindsFor(const Session* session);
// Makes the contents of MPI_INFO_ENV. Once the process has joined.
Ref<Info> MakeEnvironment();

}  // namespace ferry::mpi
