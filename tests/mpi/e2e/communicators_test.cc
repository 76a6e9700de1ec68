// Communicators, groups, attributes, topologies, datatypes and operations of MPI programs, by the
// real library and daemon.
#include "tests/mpi/e2e/mpi_job.h"

namespace ferry::mpi_tests {
namespace {

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

// An intercommunicator has two sides.
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

INSTANTIATE_TEST_SUITE_P(Placements, IntercommunicatorsTest, testing::ValuesIn(SeveralRanks()),
                         NameOf);

TEST(DatatypesTest, CallsDoWhatTheySayAndMistakesAreNamed) {
  ExpectJob({"", {"-n", "1"}}, {"tests/mpi/ranks/datatypes"}, "all datatypes were right");
}

TEST(OperationsTest, CallsDoWhatTheySayAndMistakesAreNamed) {
  ExpectJob({"", {"-n", "2"}}, {"tests/mpi/ranks/operations"}, "all operations were right");
}

}  // namespace
}  // namespace ferry::mpi_tests
