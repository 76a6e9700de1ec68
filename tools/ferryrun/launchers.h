// The programs that start agents on other hosts, as option `launcher` names them, and what is to be
// said to each:
//
//   ssh        `ssh HOST`: a login
//   srun       one step of the Slurm job around ferryrun for all hosts
//   qrsh       `qrsh -inherit HOST`: a task of the Grid Engine job
//   blaunch    `blaunch -z "HOSTS"`: tasks of the LSF job, all by one call
//   pbs_tmrsh  `pbs_tmrsh HOST`: a task of the job of OpenPBS and PBS Professional
//   pbsdsh     `pbsdsh -h HOST`: the same of Torque
//   flux       `flux exec --rank=IDS`: processes of the Flux instance's brokers, all by one call
//
// Open MPI and MPICH's Hydra use the same programs, or the libraries below them; see blaunch(1),
// pbs_tmrsh(8), pbsdsh(1B), flux-exec(1).
//
// Those of PBS and Flux carry no standard input, or lines of text only, so agents that they start
// call ferryrun (agent_call.h). So do the agents of srun and blaunch where one call starts several.
//
// Pure functions, any thread, but for PlanCalls.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"
#include "config/options.h"

namespace ferry::tools {

// Returns the command that runs `program` with `arguments` on `host`, its name first: options
// `launcher` and `rsh`. Its standard streams are the program's. Quotes the remote command for a
// shell where necessary, since ssh and the like pass it to one. kConfiguration: launcher is none,
// or one whose agents call in any case; rsh is empty.
StatusOr<std::vector<std::string>> LauncherCommand(const config::Options& options,
                                                   const std::string& host,
                                                   const std::string& program,
                                                   const std::vector<std::string>& arguments);

// Returns true if agents on so many hosts are to call ferryrun. `radix`: of the tree of agents; 0:
// the user wants one command for each host where that is possible.
bool AgentsCall(const config::Options& options, size_t hosts, uint64_t radix);

// How agents are started that call.
struct CallCommands {
  // One command for all hosts, or one for each in their order. Each ends when its agents have.
  std::vector<std::vector<std::string>> commands;
  // Not empty: the commands pass on no variables of this process, so the place to call has to be
  // told in words, which all users of a host may read. This is known to processes of the batch
  // system's job only.
  std::string secret_of_job = {};
  bool may_be_each = false;  // --launch-radix 0 does without calls
  // Slurm's variables of a caller's task are of this step, and not of one around this job.
  bool is_step_of_slurm = false;
};

// For a launcher of which AgentsCall is true. `environment`: this process's. Asks `flux` for the
// names of its brokers' hosts; blocks for at most ten seconds then, else not at all. Errors: a host
// is not known to Flux; there is no secret of the PBS job.
StatusOr<CallCommands> PlanCalls(const config::Options& options,
                                 const std::vector<std::string>& hosts, const std::string& program,
                                 const char* const* environment);

// Returns what keeps this process from using the launcher, which is to be in a folder of PATH and,
// where it belongs to a batch system, to run in a job of that: "there is no blaunch". Empty:
// nothing.
std::string WhyUnusable(std::string_view launcher, const char* const* environment);

}  // namespace ferry::tools
