// Collectives as whole jobs: on one node and two, with ranks that share a node and ranks that do
// not.
#include <gmock/gmock.h>

#include <fstream>
#include <string>

#include "tests/mpi/e2e/mpi_job.h"
#include "tests/support/slice.h"

namespace ferry::mpi_tests {
namespace {

class CollectivesTest : public testing::TestWithParam<Placement> {};

TEST_P(CollectivesTest, GiveWhatASimpleComputationGives) {
  ExpectJob(GetParam(), {"tests/mpi/ranks/collectives"}, "all collectives were right");
}

// "on_queue": tests/mpi/ranks/on_queue.h.
class QueuedTest : public testing::TestWithParam<Placement> {};

TEST_P(QueuedTest, GiveTheSameOnQueues) {
  ExpectJob(GetParam(), {"tests/mpi/ranks/collectives", "on_queue"}, "all collectives were right");
}

class MixedRoundsTest : public testing::TestWithParam<Placement> {};

TEST_P(MixedRoundsTest, GiveTheSame) {
  ExpectJob(GetParam(), {"tests/mpi/ranks/collectives", "mixed"}, "all collectives were right");
}

INSTANTIATE_TEST_SUITE_P(Placements, MixedRoundsTest,
                         testing::ValuesIn(tests::Slice<Placement>(
                             {{"ThreeRanks", {"-n", "3"}}},
                             {{"FourRanksOnTwoNodes", {"-n", "4", "--nodes", "2"}}})),
                         NameOf);

class FormsTest : public testing::TestWithParam<Placement> {};

TEST_P(FormsTest, NeighboursNeedNotBeARing) {
  ExpectJob(GetParam(), {"tests/mpi/ranks/neighbours"}, "all neighbours were right");
}

TEST_P(FormsTest, NeighboursMeetOnQueues) {
  ExpectJob(GetParam(), {"tests/mpi/ranks/neighbours", "on_queue"}, "all neighbours were right");
}

TEST_P(FormsTest, NeighboursMeetInMixedRounds) {
  ExpectJob(GetParam(), {"tests/mpi/ranks/neighbours", "mixed"}, "all neighbours were right");
}

TEST_P(FormsTest, OwnOperationsRunInMixedRounds) {
  ExpectJob(GetParam(), {"tests/mpi/ranks/own_operations", "mixed"},
            "all own operations were right");
}

TEST_P(FormsTest, OwnOperationsRunOnQueues) {
  ExpectJob(GetParam(), {"tests/mpi/ranks/own_operations", "on_queue"},
            "all own operations were right");
}

TEST_P(FormsTest, CountsMayBeLarge) {
  ExpectJob(GetParam(), {"tests/mpi/ranks/large_counts"}, "all large counts were right");
}

TEST_P(FormsTest, OperationsAndDatatypesMayBeTheProgramsOwn) {
  ExpectJob(GetParam(), {"tests/mpi/ranks/own_operations"}, "all own operations were right");
}

INSTANTIATE_TEST_SUITE_P(Placements, FormsTest, testing::ValuesIn(AllPlacements()), NameOf);

class BoardsTest : public testing::TestWithParam<Placement> {};

TEST_P(BoardsTest, CarryTheCollectivesOfANode) {
  ExpectJob(GetParam(), {"tests/mpi/ranks/boards"}, "all boards were right");
}

TEST_P(BoardsTest, CarryNonblockingCollectivesOfANode) {
  ExpectJob(GetParam(), {"tests/mpi/ranks/boards", "nonblocking"}, "all boards were right");
}

TEST_P(BoardsTest, DoNotKeepAnybodyWaitingForTheDead) {
  for (const char* form : {"blocking", "nonblocking"}) {
    const e2e::CommandResult result =
        RunJob(GetParam(), {"--keep-going", "tests/mpi/ranks/boards", form, "dies"});
    EXPECT_THAT(result.out, testing::HasSubstr("class 58\n"))
        << form << ", MPI_ERR_PROC_ABORTED: " << result.err;
  }
}

INSTANTIATE_TEST_SUITE_P(Placements, BoardsTest,
                         testing::Values(Placement{"TwoRanks", {"-n", "2"}},
                                         Placement{"FiveRanks", {"-n", "5"}}),
                         NameOf);

// Boards in the nodes, and messages between their leaders.
class TwoLevelsTest : public testing::Test {
 protected:
  TwoLevelsTest() {
    std::ofstream table(path_);
    for (const char* collective : {"barrier", "bcast", "reduce", "allreduce", "allgather"}) {
      table << "[[rule]]\ncollective = \"" << collective
            << "\"\nalgorithm = \"board\"\nnodes = \"mixed\"\nmax_bytes = 65536\n";
    }
  }

  const std::string path_ = testing::TempDir() + "two_levels.toml";
  const Placement five_{"", {"-n", "5", "--nodes", "2", "--collective_table", path_}};
};

TEST_F(TwoLevelsTest, CarryTheCollectivesOfNodesWithSeveralRanks) {
  ExpectJob(five_, {"tests/mpi/ranks/boards"}, "all boards were right");
}

TEST_F(TwoLevelsTest, GiveWhatASimpleComputationGives) {
  ExpectJob(five_, {"tests/mpi/ranks/collectives"}, "all collectives were right");
}

TEST_F(TwoLevelsTest, RanksMayBeDealtOutInTurn) {
  const Placement in_turn{
      "", {"-n", "4", "--nodes", "2", "--map-by", "node", "--collective_table", path_}};
  ExpectJob(in_turn, {"tests/mpi/ranks/boards"}, "all boards were right");
}

// On the other node, too.
TEST_F(TwoLevelsTest, WhoHasDiedIsToldOnAllRanks) {
  for (const char* who : {"dies", "leader_dies"}) {
    const e2e::CommandResult result =
        RunJob(five_, {"--keep-going", "tests/mpi/ranks/boards", "blocking", who});
    EXPECT_EQ(result.out, "class 58\nclass 58\nclass 58\nclass 58\n")
        << who << ", MPI_ERR_PROC_ABORTED: " << result.err;
  }
}

const Placement kThree{"ThreeRanks", {"-n", "3"}};
const Placement kFour{"FourRanks", {"-n", "4"}};
const Placement kFourOnTwo{"FourRanksOnTwoNodes", {"-n", "4", "--nodes", "2"}};
const Placement kFiveOnTwo{"FiveRanksOnTwoNodes", {"-n", "5", "--nodes", "2"}};
const Placement kFourInTurn{"FourRanksInTurn", {"-n", "4", "--nodes", "2", "--map-by", "node"}};

INSTANTIATE_TEST_SUITE_P(Placements, CollectivesTest,
                         testing::Values(Placement{"OneRank", {"-n", "1"}},
                                         Placement{"TwoRanks", {"-n", "2"}}, kThree, kFour,
                                         kFourOnTwo, kFiveOnTwo, kFourInTurn,
                                         Placement{"TwoNodes", {"-n", "2", "--nodes", "2"}}),
                         NameOf);
INSTANTIATE_TEST_SUITE_P(
    Placements, QueuedTest,
    testing::ValuesIn(tests::Slice<Placement>({{"OneRank", {"-n", "1"}}, kThree, kFiveOnTwo},
                                              {{"TwoRanks", {"-n", "2"}},
                                               kFour,
                                               kFourOnTwo,
                                               kFourInTurn,
                                               {"TwoNodes", {"-n", "2", "--nodes", "2"}}})),
    NameOf);

// More ranks than a node has cores, or a board once had places.
TEST(CrowdTest, ManyRanksOfANodeMeet) {
  ExpectJob({"ManyRanks", {"-n", "128", "--attach_timeout_ms=60000"}}, {"tests/mpi/ranks/crowd"},
            "the crowd was right");
}

class HelperTest : public testing::TestWithParam<const char*> {};

TEST_P(HelperTest, CostsMessagesNothingWhileItRests) {
  const Placement pair{"TwoRanks", {"-n", "2"}};
  ExpectJob(pair, {"tests/mpi/ranks/helper_rest", GetParam()}, "the helper rested");
}

INSTANTIATE_TEST_SUITE_P(Levels, HelperTest, testing::Values("single", "serialized", "multiple"),
                         [](const testing::TestParamInfo<const char*>& info) {
                           return std::string(info.param);
                         });

TEST(LinkThreadTest, RestsAfterCollectivesInsideANode) {
  ExpectJob({"TwoOnEachOfTwo", {"-n", "4", "--nodes", "2"}}, {"tests/mpi/ranks/link_rest"},
            "the link thread rested", {"FERRY_DIRECT_LINKS=always"});
}

}  // namespace
}  // namespace ferry::mpi_tests
