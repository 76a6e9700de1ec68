// Communicators, groups, attributes and topologies of MPI programs, by the real library and daemon.
#include <gtest/gtest.h>

#include "tests/mpi/e2e/mpi_job.h"

namespace ferry::mpi_tests {
namespace {

std::string NameOf(const testing::TestParamInfo<Placement>& info) { return info.param.name; }

// An intercommunicator has two sides.
std::vector<Placement> WithTwoSides() {
  std::vector<Placement> found;
  for (Placement& placement : AllPlacements()) {
    if (placement.flags.at(1) != "1") {
      found.push_back(placement);
    }
  }
  return found;
}

class CommunicatorsTest : public testing::TestWithParam<Placement> {};

TEST_P(CommunicatorsTest, AreMadeInAllWaysAndDoNotMeet) {
  ExpectJob(GetParam(), {"tests/mpi/ranks/communicators"}, "all communicators were right");
}

TEST_P(CommunicatorsTest, OfSeveralThreadsDoNotMeet) {
  ExpectJob(GetParam(), {"tests/mpi/ranks/communicator_threads"},
            "all threads had communicators of their own");
}

TEST_P(CommunicatorsTest, HaveAttributesGroupsHintsAndErrorHandlers) {
  ExpectJob(GetParam(), {"tests/mpi/ranks/attributes"},
            "all attributes, groups, infos and handlers were right");
}

TEST_P(CommunicatorsTest, HaveTopologies) {
  ExpectJob(GetParam(), {"tests/mpi/ranks/topologies"}, "all topologies were right");
}

// Each node's ranks are a row of two, until they are reordered into a square.
TEST(ReorderTest, NeighboursShareNodes) {
  ExpectJob({"EightRanksOnTwoNodes", {"-n", "8", "--nodes", "2"}}, {"tests/mpi/ranks/topologies"},
            "all topologies were right");
}

INSTANTIATE_TEST_SUITE_P(Placements, CommunicatorsTest, testing::ValuesIn(AllPlacements()), NameOf);

class IntercommunicatorsTest : public testing::TestWithParam<Placement> {};

TEST_P(IntercommunicatorsTest, AreMadeInAllWaysAndDoNotMeet) {
  ExpectJob(GetParam(), {"tests/mpi/ranks/intercommunicators"},
            "all intercommunicators were right");
}

TEST_P(IntercommunicatorsTest, HaveCollectives) {
  ExpectJob(GetParam(), {"tests/mpi/ranks/inter_collectives"},
            "all collectives of intercommunicators were right");
}

TEST_P(IntercommunicatorsTest, HaveCollectivesOnQueues) {
  ExpectJob(GetParam(), {"tests/mpi/ranks/inter_collectives", "on_queue"},
            "all collectives of intercommunicators were right");
}

TEST_P(IntercommunicatorsTest, HaveCollectivesInMixedRounds) {
  ExpectJob(GetParam(), {"tests/mpi/ranks/inter_collectives", "mixed"},
            "all collectives of intercommunicators were right");
}

INSTANTIATE_TEST_SUITE_P(Placements, IntercommunicatorsTest, testing::ValuesIn(WithTwoSides()),
                         NameOf);

}  // namespace
}  // namespace ferry::mpi_tests
