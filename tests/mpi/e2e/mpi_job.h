// Runs a program of tests/mpi/ranks as a job, on every placement of ranks that tests look at.
#pragma once

#include <string>
#include <vector>

namespace ferry::mpi_tests {

struct Placement {
  const char* name;
  std::vector<std::string> flags;  // of ferryrun
};

// One rank alone, ranks of one node, of several nodes, and more ranks than cores on both. gtest
// names tests by `name`.
std::vector<Placement> AllPlacements();
// Those of them with this many ranks.
std::vector<Placement> Pairs();

// The command that starts a job there, but for its program.
std::vector<std::string> JobOf(const Placement& placement);

// Expects the job to end well, with `line` from each of its ranks and nothing else, and to leave
// nothing behind.
void ExpectJob(const Placement& placement, const std::vector<std::string>& program,
               const std::string& line, const std::vector<std::string>& variables = {});

}  // namespace ferry::mpi_tests
