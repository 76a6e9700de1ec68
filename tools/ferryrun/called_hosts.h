// Ferryrun's end of agents that call it (agent_call.h): it starts one command for all hosts, such
// as a step of Slurm, or one for each (launchers.h), and hands out the streams of their agents as
// they come.
//
// A caller with another secret is sent away, and the job goes on. An agent that has begun to call
// and does not come, a command that fails, or that starts fewer agents than it has hosts, ends the
// streams of the hosts that lack theirs, with the reason.
//
// Main thread; nothing blocks but HostStream::HowEnded and the end of the last stream, which waits
// some seconds for the commands'.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/status.h"
#include "tools/ferryrun/host_stream.h"
#include "tools/ferryrun/launchers.h"

namespace ferry::tools {

struct CallPlan {
  std::vector<std::string> hosts;  // each once, as the user wrote them
  CallCommands call;               // starts `ferryrun --call` on each of them
  std::string network;             // by which they reach this host (--network); empty: any
  // How long to wait for the first agent, which may have to wait for scripts of the batch system,
  // and, after each that has come, for another.
  uint64_t first_limit_ms = 55'000;
  uint64_t next_limit_ms = 10'000;
};

// Starts the commands. Returns a stream for each host, in their order. All of a command's end with
// it; its standard error is its first host's. Errors: this host has no such network; no port is
// free; a command cannot be started here.
StatusOr<std::vector<std::unique_ptr<HostStream>>> StartCallers(const CallPlan& plan);

}  // namespace ferry::tools
