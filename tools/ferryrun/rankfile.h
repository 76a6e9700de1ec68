// A rankfile, as mpirun of Open MPI reads it: for each rank its host, and on which CPUs of it the
// rank may run.
//
//   rank 0=alpha slot=0:0-2        # cores 0 to 2 of the first socket
//   rank 1=beta slot=0:0,1;1:*     # cores 0 and 1 of the first socket, all of the second
//   rank 2=beta slot=4-6,8         # cores of the node
//   rank 3=+n1                     # the second of the job's hosts; it is not bound
//
// Numbers are logical: in the order of sockets and cores, as `lstopo -l` and --report-bindings have
// them. With --use-hwthread-cpus they are those of hardware threads in place of cores.
// (mpirun(1) of Open MPI 4.1, "Rankfiles"; PRRTE's help on "rankfile".)
//
// Pure functions but for ReadRankFile, which blocks for the file; any thread. Errors:
// kInvalidArgument, which name the line, or the file's.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"
#include "common/topology/cpu_set.h"
#include "common/topology/machine.h"
#include "tools/ferryrun/hosts.h"

namespace ferry::tools {

struct RankfileLine {
  std::string host;  // or "+nK": the job's host K, from 0 on
  std::string slot;  // empty: not bound

  bool operator==(const RankfileLine&) const = default;
};

// Returns the lines by rank: those from 0 on, each once. `where` opens the messages.
StatusOr<std::vector<RankfileLine>> ParseRankFile(std::string_view text, const std::string& where);
StatusOr<std::vector<RankfileLine>> ReadRankFile(const std::string& path);

// Returns which of the job's hosts a line names, by its name there. `hosts`: the job's; none: it
// has those that the file names.
StatusOr<std::string> HostOfLine(const RankfileLine& line, const std::vector<Host>& hosts);

// Returns the CPUs of a slot: the hardware threads of its cores, or those that it counts.
// `allowed`: where ranks may run at all.
StatusOr<topology::CpuSet> CpusOfSlot(const topology::Machine& machine,
                                      const topology::CpuSet& allowed, std::string_view slot,
                                      bool counts_threads);

}  // namespace ferry::tools
