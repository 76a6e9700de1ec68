// A rank of a job, as a process of this machine, and its streams to and from ferryrun.
//
// Main thread; blocks for the exec only.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/status.h"
#include "common/topology/cpu_set.h"
#include "common/unique_fd.h"
#include "tools/ferryrun/rank_terminal.h"
#include "tools/ferryrun/slots.h"

namespace ferry::tools {

class RankServers;

// The program of a rank, and how to run it.
struct RankCommand {
  uint32_t rank = 0;
  std::vector<std::string> program;      // its name first
  std::vector<std::string> environment;  // "NAME=value", all of it; PATH finds the program
  std::string directory = {};            // absolute; empty: ferryrun's own
  topology::CpuSet cpus = {};            // empty: any
  // Its standard output is a terminal of this size; nothing: a pipe.
  std::optional<TerminalSize> terminal = {};
  bool is_held = false;  // SpawnRequest's
};

// A running rank, and ferryrun's ends of its streams. Output is read without blocking.
struct RankProcess {
  pid_t pid = -1;
  UniqueFd in;
  UniqueFd out;
  UniqueFd err;
};

// Starts a rank. One that is to have a terminal gets a pipe where there is none left. Where
// FERRY_MALLOC says so, its malloc is libferry_malloc.so's, behind the libraries that LD_PRELOAD
// names. kNotFound, kPermissionDenied and kInvalidArgument (the directory or the CPUs) say which
// program cannot be run, and why.
StatusOr<RankProcess> StartRank(const RankCommand& command, Slots* slots, RankServers* servers);

// Sets each "NAME=value" of `more` in `environment`, in place of another of that name.
void SetVariables(const std::vector<std::string>& more, std::vector<std::string>* environment);
// Returns the value of `name` in `environment`, or "".
std::string ValueOf(const std::string& name, const std::vector<std::string>& environment);

// Passes ferryrun's standard input on to one rank. It copies the input because a rank cannot
// inherit it: a rank has a process group of its own, and the terminal would stop it for reading.
class StdinForwarder {
 public:
  StdinForwarder() = default;

  // Starts forwarding to `pipe`, the write end of the rank's standard input.
  void Start(UniqueFd pipe);
  // Returns the next event to poll for: input, or room in the pipe. fd -1 (ignored by poll):
  // forwarding is over.
  pollfd Interest() const;
  // Call it when that descriptor has polled ready.
  void Advance();

 private:
  UniqueFd pipe_;
  std::string waiting_;
};

}  // namespace ferry::tools
