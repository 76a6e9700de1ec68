// Tells what the ranks of a job run, and with which variables: the user's arguments and the job's
// options for each rank, on this host and on others.
//
// Main thread; nothing blocks. The constructor's arguments must outlive the object.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/status.h"
#include "config/options.h"
#include "tools/ferryrun/agent_protocol.h"
#include "tools/ferryrun/arguments.h"
#include "tools/ferryrun/job.h"
#include "tools/ferryrun/node_plan.h"
#include "tools/ferryrun/rank_process.h"

namespace ferry::tools {

class RankCommands {
 public:
  RankCommands(const Arguments& arguments, const JobLayout& layout, const config::Options& options,
               const Job& job);

  // Returns what a rank of this host runs; on which CPUs, the caller says.
  RankCommand Here(uint32_t rank) const;
  // Returns what all agents are told of the job.
  AgentJob ForAgents() const;
  // Returns what a rank of another host runs, beside what ForAgents says of all.
  AgentRank There(uint32_t rank) const;
  // Returns the path of the program of each part of the command line, as this host finds it; empty
  // for those that are not there, which fail later, and say why.
  std::vector<std::string> ProgramsHere() const;
  // As ProgramsHere, but empty for those that have Ferry's library in place of another that their
  // file names.
  std::vector<std::string> UnservedHere() const;

 private:
  // The variables that the ranks of a part have in common, beside the environment.
  struct Common {
    std::vector<std::string> variables;
    // Names that the user gives another value than a rank's place has: the user's counts.
    std::vector<std::string> names_of_user;
  };

  const Part& PartOf(uint32_t rank) const { return arguments_.parts[layout_.part_of_rank[rank]]; }
  Common CommonOf(uint32_t part, uint64_t ranks, const config::Options& options) const;
  // Of each part, if it is wanted.
  std::vector<std::string> Programs(
      const std::function<bool(const std::string& path, const RankCommand&)>& is_wanted) const;
  // The variables that a rank alone has.
  std::vector<std::string> OwnOf(uint32_t rank) const;

  const Arguments& arguments_;
  const JobLayout& layout_;
  const Job& job_;
  const std::vector<std::string> environment_;  // ferryrun's, for ranks
  std::vector<Common> common_;                  // by part
};

// Finds the mistakes in what ranks of this host run that can be seen before anything starts:
// kInvalidArgument (a directory that is not there), or why FindProgram fails.
Status CheckPrograms(const Arguments& arguments, const JobLayout& layout);

// Returns this ferryrun's environment, with the variables that flags give to the ranks of `part`.
std::vector<std::string> EnvironmentOf(const Arguments& arguments, const Part& part);

}  // namespace ferry::tools
