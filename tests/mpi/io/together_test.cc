// Collective reads and writes of pieces that lie between each other, on one node and on two, by
// every way that the ranks can agree on; also with system calls that fail.
#include <filesystem>
#include <string>

#include "tests/mpi/e2e/mpi_job.h"

namespace ferry::mpi_tests {
namespace {

class TogetherTest : public testing::TestWithParam<Placement> {};

TEST_P(TogetherTest, EveryByteIsThatOfItsRank) {
  const std::string file = testing::TempDir() + "/together." + GetParam().name;
  ExpectJob(GetParam(), {"tests/mpi/ranks/files_together", file}, "all bytes were right");
  std::filesystem::remove(file);  // which a failed job leaves
}

// Several calls at once, which do not block.
TEST_P(TogetherTest, EveryByteIsThatOfItsRankInTheBackground) {
  const std::string file = testing::TempDir() + "/background." + GetParam().name;
  ExpectJob(GetParam(), {"tests/mpi/ranks/files_together", file, "background"},
            "all bytes were right");
  std::filesystem::remove(file);
}

INSTANTIATE_TEST_SUITE_P(
    Placements, TogetherTest,
    testing::Values(Placement{"OneRank", {"-n", "1"}}, Placement{"TwoRanks", {"-n", "2"}},
                    Placement{"FourRanks", {"-n", "4"}},
                    Placement{"TwoRanksOnTwoNodes", {"-n", "2", "--nodes", "2"}},
                    Placement{"ThreeRanksOnTwoNodes", {"-n", "3", "--nodes", "2"}},
                    Placement{"FourRanksOnTwoNodes", {"-n", "4", "--nodes", "2"}},
                    Placement{"FiveRanksOnTwoNodes", {"-n", "5", "--nodes", "2"}},
                    Placement{"FourRanksOnThreeNodes", {"-n", "4", "--nodes", "3"}}),
    NameOf);

}  // namespace
}  // namespace ferry::mpi_tests
