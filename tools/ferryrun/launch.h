// One run of ferryrun: from arguments, or as an agent, to an exit code. It puts the pieces in this
// folder together.
#pragma once

#include <string>

#include "config/options.h"
#include "tools/ferryrun/arguments.h"
#include "tools/ferryrun/node_plan.h"
#include "tools/ferryrun/signals.h"

namespace ferry::tools {

// Runs the job and reports failures on standard error. Blocks until the job and all its processes
// have ended. Returns the exit code. Main thread, with no other thread yet.
int RunJob(Arguments arguments);
// The second part of RunJob: all that is needed is known. `launcher`: as HostSource has it.
int RunLaunch(const Arguments& arguments, config::Options options, std::string launcher,
              JobLayout layout, SignalSource signals);

// Runs this ferryrun as an agent on another host of a job: obeys the ferryrun that the user called
// (agent_protocol.h), and ends everything that it started when that one falls silent. Serves
// standard input and output until told to stop, or until they end. Returns the exit code. Main
// thread.
int RunAgent();

}  // namespace ferry::tools
