// The commands of ferryctl that change what a daemon does; they are for its administrators.
//
// Main thread. Each blocks for as long as the daemon takes to answer, and Drain until no job runs.
// Errors are AdminClient's.
#pragma once

#include "common/status.h"
#include "tools/admin/admin_client.h"
#include "tools/ferryctl/arguments.h"

namespace ferry::tools {

// Connects to the daemon that choice.h chooses. kPermissionDenied says what an ordinary user may do
// instead.
StatusOr<AdminClient> ConnectAsAdministrator(const CtlArguments& arguments);

Status Drain(const CtlArguments& arguments);
Status Shutdown(const CtlArguments& arguments);
// The daemon sends the trace and this program writes it, with the caller's rights.
Status Trace(const CtlArguments& arguments);
Status Faults(const CtlArguments& arguments);

}  // namespace ferry::tools
