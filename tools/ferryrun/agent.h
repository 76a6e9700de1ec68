// A ferryrun on another host of a job. It obeys the ferryrun that the user called
// (agent_protocol.h), and ends everything it started when that one falls silent.
#pragma once

namespace ferry::tools {

// Serves standard input and output until told to stop, or until they end. Returns the exit code.
// Main thread.
int RunAgent();

}  // namespace ferry::tools
