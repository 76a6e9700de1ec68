// The commands of ferryctl about daemons: those that ask daemons (questions.cc), and those that
// change a daemon's state, which are for its administrators (orders.cc). In a daemon that serves
// all users an ordinary user sees only the user's own jobs.
//
// Main thread. Each blocks for as long as daemons take to answer, Top, Web and Watch until their
// end, and Drain until no job runs. Errors: those of choice.h, and those of the daemon.
#pragma once

#include "common/status.h"
#include "tools/admin/daemon_client.h"
#include "tools/ferryctl/arguments.h"

namespace ferry::tools {

// Lists the daemons of this user and their jobs. It is no error if there are none.
Status ListDaemons(const CtlArguments& arguments);
Status ShowStatus(const CtlArguments& arguments);
Status Sessions(const CtlArguments& arguments);
Status Counters(const CtlArguments& arguments);
Status Nics(const CtlArguments& arguments);
// The pairs of ranks and how their messages go; with --take-back, TakeLinks.
Status Links(const CtlArguments& arguments);
Status Gpus(const CtlArguments& arguments);
// Explains a rank, all ranks of a job, or every rank that waits.
Status Why(const CtlArguments& arguments);
// Lists what a rank sends and receives, and the messages that wait for it, by communicator.
Status ShowQueues(const CtlArguments& arguments);
// Shows the rates between one look and the next, until the count is reached or the user ends it.
Status Top(const CtlArguments& arguments);
// Serves a page that shows all of this, to this user only, until it is interrupted (web/server.h).
Status Web(const CtlArguments& arguments);
// Prints the daemon's status at each interval, until the daemon ends. For administrators.
Status Watch(const CtlArguments& arguments);

// Connects to the daemon that choice.h chooses. kPermissionDenied, with a text that says what an
// ordinary user may do instead.
StatusOr<AdminClient> ConnectAsAdministrator(const CtlArguments& arguments);

Status Drain(const CtlArguments& arguments);
Status Undrain(const CtlArguments& arguments);
Status Shutdown(const CtlArguments& arguments);
// The daemon sends the trace and this program writes it, with the caller's rights.
Status Trace(const CtlArguments& arguments);
// Writes the timeline of a job whose ranks keep their events, so far.
Status TraceJob(const CtlArguments& arguments);
Status Faults(const CtlArguments& arguments);
// Takes back the direct links of a job, or of one rank of it.
Status TakeLinks(const CtlArguments& arguments);

}  // namespace ferry::tools
