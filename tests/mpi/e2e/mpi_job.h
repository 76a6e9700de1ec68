// Runs a program of tests/mpi/ranks as a job, on every placement of ranks that tests use.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/e2e/command.h"

namespace ferry::mpi_tests {

struct Placement {
  const char* name;
  std::vector<std::string> flags;  // of ferryrun
  unsigned limit_s = 240;
};

// For INSTANTIATE_TEST_SUITE_P.
inline std::string NameOf(const testing::TestParamInfo<Placement>& info) { return info.param.name; }

// One rank alone, ranks of one node, of several nodes, and more ranks than cores on both: a slice
// (tests/support/slice.h).
std::vector<Placement> AllPlacements();
// Placements for traffic between pairs of ranks, whatever other ranks there are: three ranks on two
// nodes have both kinds of pairs.
std::vector<Placement> PlacementsOfPairs();
// The placements with two ranks, and with more than one.
std::vector<Placement> Pairs();
std::vector<Placement> SeveralRanks();

// The command that starts a job there, without its program.
std::vector<std::string> JobOf(const Placement& placement);

// Runs the job to its end, with `words` behind that command. Expects it to leave nothing behind.
e2e::CommandResult RunJob(const Placement& placement, const std::vector<std::string>& words,
                          const std::vector<std::string>& variables = {});

// Expects the job to end well, with `line` and nothing else from each of its ranks, and to leave
// nothing behind.
void ExpectJob(const Placement& placement, const std::vector<std::string>& program,
               const std::string& line, const std::vector<std::string>& variables = {});
// As ExpectJob, of ranks of one node that print "rank 0: ok" and so on.
void ExpectAllOk(int ranks, const std::string& program);

}  // namespace ferry::mpi_tests
