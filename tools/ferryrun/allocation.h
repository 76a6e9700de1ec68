// The hosts and the number of ranks that a batch system has given to the job in which ferryrun
// runs. It is found in the environment, and in files and programs that the environment names:
//
//   Flux         FLUX_URI, FLUX_ENCLOSING_ID; resource.R of the instance (RFC 20), asked by `flux`
//   Slurm        SLURM_JOB_NODELIST, SLURM_TASKS_PER_NODE, SLURM_NTASKS; in a shell of srun --pty
//                SLURM_STEP_NODELIST, SLURM_STEP_TASKS_PER_NODE
//   PBS, Torque  PBS_NODEFILE: a line for each slot
//   LSF          LSB_DJOB_HOSTFILE, or else LSB_MCPU_HOSTS: "a 4 b 2"
//   Grid Engine  PE_HOSTFILE: "a 4 queue ..."
//
// FindAllocation reads files, and waits at most ten seconds for `flux`; the others are pure but for
// the functions that the caller gives. Main thread. Errors: kInvalidArgument or the file's, which
// name the variable and the way out.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"
#include "tools/ferryrun/arguments.h"
#include "tools/ferryrun/hosts.h"

namespace ferry::tools {

struct Allocation {
  std::string system;                  // "Slurm"
  std::string source;                  // "SLURM_JOB_NODELIST"
  std::vector<Host> hosts;             // each once, in the batch system's order
  std::optional<uint64_t> ranks = {};  // that the user asked for; else as many as there are slots
  std::string name_of_node = {};       // what the batch system calls this host; empty: unknown
  bool has_aliases = false;            // hosts may be listed under other names than their own
  // Values of option `launcher` that start what the batch system knows as the job's: the first that
  // can be used here.
  std::vector<const char*> launchers = {};
};

// Returns the allocation of the batch system `wanted` (values of the flag --allocation). With
// "auto": of the innermost one, and none if a launcher has started this ferryrun as one of its
// tasks, or another ferryrun as a rank.
StatusOr<std::optional<Allocation>> FindAllocation(const char* const* environment,
                                                   std::string_view wanted, bool has_terminal);

// Returns the allocation's name for this host, whose own name is `own_name`; nothing if the host
// does not belong to it.
std::optional<std::string> NameOfThisHost(
    const Allocation& allocation, const std::string& own_name,
    const std::function<bool(const std::string&)>& is_this_host);

// Gives the job the hosts of the allocation, and its only program as many ranks as there are slots
// on its hosts if the user names no number. Hosts that programs are to run on become the
// allocation's; others are an error. `here`: NameOfThisHost.
Status TakeAllocation(const Allocation& allocation, const std::optional<std::string>& here,
                      const std::function<bool(const std::string&)>& is_this_host,
                      Arguments* arguments);

// Returns "2 hosts of Slurm's allocation (SLURM_JOB_NODELIST): n1:3, n2:2".
std::string Describe(const Allocation& allocation);

// ---- What the parts of the environment say ----

// Lines of "NAME", one for each slot.
StatusOr<std::vector<Host>> ReadSlotLines(std::string_view text);
// Lines of "NAME SLOTS ...", as of Grid Engine.
StatusOr<std::vector<Host>> ReadCountLines(std::string_view text);
// "NAME SLOTS NAME SLOTS ...".
StatusOr<std::vector<Host>> ReadPairs(std::string_view text);
// A resource set of Flux, version 1.
StatusOr<std::vector<Host>> ReadFluxResources(std::string_view json);

}  // namespace ferry::tools
