// Runs a program of tests/mpi/ranks as a job, on every placement of ranks that tests use.
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
// Those with this many ranks.
std::vector<Placement> Pairs();

// The command that starts a job there, without its program.
std::vector<std::string> JobOf(const Placement& placement);

// Expects the job to end well, with `line` and nothing else from each of its ranks, and to leave
// nothing behind.
void ExpectJob(const Placement& placement, const std::vector<std::string>& program,
               const std::string& line, const std::vector<std::string>& variables = {});

}  // namespace ferry::mpi_tests
