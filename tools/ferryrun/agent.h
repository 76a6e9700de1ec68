// A ferryrun on another host of a job: does there what the one says that the user called
// (agent_protocol.h), and ends all that it started when that one falls silent.
#pragma once

namespace ferry::tools {

// Serves standard input and output until told to stop, or until they end. The exit code. Main
// thread.
int RunAgent();

}  // namespace ferry::tools
