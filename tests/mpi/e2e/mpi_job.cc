#include "tests/mpi/e2e/mpi_job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/e2e/command.h"

namespace ferry::mpi_tests {
namespace {

int RanksOf(const Placement& placement) { return std::stoi(placement.flags.at(1)); }

}  // namespace

std::vector<Placement> AllPlacements() {
  return {{"OneRank", {"-n", "1"}},
          {"TwoRanks", {"-n", "2"}},
          {"TwoNodes", {"-n", "2", "--nodes", "2"}},
          {"FiveRanks", {"-n", "5"}},
          {"FiveRanksOnTwoNodes", {"-n", "5", "--nodes", "2"}}};
}

std::vector<Placement> Pairs() {
  std::vector<Placement> pairs;
  for (Placement& placement : AllPlacements()) {
    if (RanksOf(placement) == 2) {
      pairs.push_back(placement);
    }
  }
  return pairs;
}

std::vector<std::string> JobOf(const Placement& placement) {
  std::vector<std::string> arguments = {"tools/ferryrun/ferryrun", "--private", "--ferryd",
                                        "daemon/ferryd", "--no-label"};
  arguments.insert(arguments.end(), placement.flags.begin(), placement.flags.end());
  return arguments;
}

void ExpectJob(const Placement& placement, const std::vector<std::string>& program,
               const std::string& line, const std::vector<std::string>& variables) {
  std::vector<std::string> arguments = JobOf(placement);
  arguments.insert(arguments.end(), program.begin(), program.end());
  std::string expected;
  for (int rank = 0; rank < RanksOf(placement); ++rank) {
    expected += line + "\n";
  }
  e2e::Command command(arguments, variables, "", 240);
  const e2e::CommandResult result = command.Wait();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, expected) << result.err;
  EXPECT_THAT(command.Leftovers(), testing::IsEmpty());
}

}  // namespace ferry::mpi_tests
