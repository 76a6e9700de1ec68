// A rank of a job, as a process of this machine.
//
// Main thread; blocks for the exec only.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "common/status.h"
#include "common/topology/cpu_set.h"
#include "common/unique_fd.h"

namespace ferry::tools {

// The program of a rank, and how to run it.
struct RankCommand {
  uint32_t rank = 0;
  std::vector<std::string> program;      // its name first
  std::vector<std::string> environment;  // "NAME=value", all of it; PATH finds the program
  std::string directory = {};            // absolute; empty: ferryrun's own
  int inherited_fd = -1;                 // that it finds under the same number; -1: none
  topology::CpuSet cpus = {};            // empty: any
};

// A running rank, and ferryrun's ends of its streams. Output is read without blocking.
struct RankProcess {
  pid_t pid = -1;
  UniqueFd in;
  UniqueFd out;
  UniqueFd err;
};

// Where FERRY_MALLOC says so, the rank's malloc is libferry_malloc.so's; what LD_PRELOAD names
// comes before it. kNotFound, kPermissionDenied and kInvalidArgument (the directory or the CPUs)
// say what cannot be run, and why.
StatusOr<RankProcess> StartRank(const RankCommand& command);

// Sets each "NAME=value" of `more` in `environment`, in place of another of that name.
void SetVariables(const std::vector<std::string>& more, std::vector<std::string>* environment);
// Its value in `environment`, or nothing ("").
std::string ValueOf(const std::string& name, const std::vector<std::string>& environment);

}  // namespace ferry::tools
