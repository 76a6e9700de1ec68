// Ferryrun's end of agents that call it (agent_call.h): it starts one command for all hosts, a step
// of Slurm, and hands out the streams of their agents as they come.
//
// A caller with another secret is sent away, and the job goes on. An agent that has begun to call
// and does not come, a command that fails, or that starts fewer agents than there are hosts, ends
// the streams of the hosts that lack theirs, with the reason.
//
// Main thread; nothing blocks but HostStream::HowEnded and the end of the last stream, which waits
// some seconds for the command's.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/status.h"
#include "tools/ferryrun/host_stream.h"

namespace ferry::tools {

struct CallPlan {
  std::vector<std::string> hosts;    // each once, as the user wrote them
  std::vector<std::string> command;  // starts `ferryrun --call` on each of them
  std::string network;               // by which they reach this host (--network); empty: any
  // Until the command must have started them all. Less than ferryrun waits for an agent's answer.
  uint64_t start_limit_ms = 55'000;
};

// Starts the command. Returns a stream for each host, in their order. All of them end with the
// command; its standard error is the first host's. Errors: this host has no such network; no port
// is free; the command cannot be started here.
StatusOr<std::vector<std::unique_ptr<HostStream>>> StartCallers(const CallPlan& plan);

}  // namespace ferry::tools
