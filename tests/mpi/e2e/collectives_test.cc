// Collectives as whole jobs: on one node and two, with ranks that do and do not share a node.
#include <gtest/gtest.h>

#include "tests/mpi/e2e/mpi_job.h"

namespace ferry::mpi_tests {
namespace {

class CollectivesTest : public testing::TestWithParam<Placement> {};

TEST_P(CollectivesTest, GiveWhatASimpleComputationGives) {
  ExpectJob(GetParam(), {"tests/mpi/ranks/collectives"}, "all collectives were right");
}

INSTANTIATE_TEST_SUITE_P(
    Placements, CollectivesTest,
    testing::Values(Placement{"OneRank", {"-n", "1"}}, Placement{"TwoRanks", {"-n", "2"}},
                    Placement{"ThreeRanks", {"-n", "3"}}, Placement{"FourRanks", {"-n", "4"}},
                    Placement{"FourRanksOnTwoNodes", {"-n", "4", "--nodes", "2"}},
                    Placement{"TwoNodes", {"-n", "2", "--nodes", "2"}}),
    [](const testing::TestParamInfo<Placement>& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace ferry::mpi_tests
