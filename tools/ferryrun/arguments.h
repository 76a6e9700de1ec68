// ferryrun's command line: flags and a program, and after ":" more of these for a job of several
// programs (MPMD). Flags are ferryrun's own and those of mpiexec (MPI 5.0, section 11.5, and what
// Open MPI, MPICH and Intel MPI add) and srun: flag_table.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/status.h"
#include "tools/ferryrun/hosts.h"
#include "tools/ferryrun/mapping.h"
#include "tools/ferryrun/rankfile.h"

namespace ferry::tools {

// A program, its ranks, and the settings for these only.
struct Part {
  std::optional<uint64_t> ranks;
  std::vector<std::string> program;    // its name first
  std::vector<std::string> variables;  // "NAME=value", for each name the last counts
  std::string directory;               // absolute; empty: ferryrun's own
  std::vector<Host> hosts;             // on which it may run; empty: on all of the job

  bool operator==(const Part&) const = default;
};

struct Arguments {
  std::vector<Part> parts;  // at least one
  uint64_t nodes = 1;
  bool names_nodes = false;         // with --nodes: then all are on this machine
  std::string allocation = "auto";  // whose hosts the job has where none are named
  std::vector<Host> hosts;          // of the job, without those that only parts name
  Mapping mapping;
  std::vector<RankfileLine> rank_lines;  // of the rankfile, by rank; empty: there is none
  std::vector<std::string> variables;    // "NAME=value", for all ranks; those of parts come first
  bool private_daemons = false;          // asked for
  std::string name;                      // of the job, for people; empty: none
  bool label = false;
  std::string output;       // the directory for a file of each rank's output; empty: none
  bool report = false;      // at the end, where the time went
  std::string report_file;  // with its suffix; empty: as text, to standard error
  std::string trace_file;   // for the timeline; empty: none
  uint64_t trace_last_ns = UINT64_MAX;  // what of it is wanted: so much before its end
  bool keep_going = false;
  bool verbose = false;          // say where ranks run
  bool report_bindings = false;  // and on which CPUs
  uint64_t timeout_s = 0;        // 0: none
  uint64_t grace_ms = 5000;
  uint64_t deadlock_check_s = 5;     // between looks for deadlocks; 0: none
  uint64_t launch_radix = 64;        // of the tree of agents; 0: none
  uint64_t launch_timeout_s = 0;     // for agents that call; 0: not said
  std::string network;               // empty: see hosts.h
  std::string ferryd;                // empty: found beside ferryrun
  std::vector<std::string> options;  // "--name=value", for LoadOptions

  // The command line names a run directory, so a daemon must serve it.
  bool names_run_directory = false;

  bool operator==(const Arguments&) const = default;
};

// Returns the arguments, or the exit code after --help, --version or a mistake, about which it has
// printed a message. `environment`: this process's, for variables that are passed on, and Intel
// MPI's variables, which count where no flag says the same. Main thread only; reads host files.
std::variant<Arguments, int> ParseArguments(int argc, const char* const* argv,
                                            const char* const* environment);

}  // namespace ferry::tools
