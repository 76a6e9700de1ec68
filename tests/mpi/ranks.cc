#include "tests/mpi/ranks.h"

#include <gtest/gtest.h>

#include "tests/e2e/command.h"

namespace ferry::mpi {

constexpr char kFerryrun[] = "tools/ferryrun/ferryrun";

std::vector<std::string> RunRanks(int ranks, const std::string& program) {
  const e2e::CommandResult result =
      e2e::RunCommand({kFerryrun, "--private", "--no-label", "-n", std::to_string(ranks), program});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  return e2e::SortedLines(result.out);
}

std::vector<std::string> AllOk(int ranks) {
  std::vector<std::string> lines;
  for (int rank = 0; rank < ranks; ++rank) {
    lines.push_back("rank " + std::to_string(rank) + ": ok");
  }
  return lines;
}

}  // namespace ferry::mpi
