// Matched persistent requests and queues through MPI (mpix.h).
#include "tests/mpi/e2e/mpi_job.h"

namespace ferry::mpi_tests {
namespace {

class MatchingTest : public testing::TestWithParam<Placement> {};

TEST_P(MatchingTest, KeepsItsPromises) {
  ExpectJob(GetParam(), {"tests/mpi/ranks/matching"}, "all matched");
}

INSTANTIATE_TEST_SUITE_P(Placements, MatchingTest, testing::ValuesIn(Pairs()), NameOf);

// Device memory is out of the CPU's reach.
const std::vector<std::string> kBehindALink = {"FERRY_HOST_LINK_H2D_MB_PER_S=20000",
                                               "FERRY_HOST_LINK_D2H_MB_PER_S=20000"};
// Deferred work of the NIC moves messages to another node.
const std::vector<std::string> kByTheNic = {"FERRY_PROVIDER=sockets", "FERRY_MATCHED_CELL_BYTES=0"};

class QueueCollectivesTest : public testing::TestWithParam<Placement> {};

TEST_P(QueueCollectivesTest, KeepTheRulesOfQueues) {
  ExpectJob(GetParam(), {"tests/mpi/ranks/queue_collectives"}, "all queues were right");
}

TEST_P(QueueCollectivesTest, ReachDevicesBehindALink) {
  ExpectJob(GetParam(), {"tests/mpi/ranks/queue_collectives"}, "all queues were right",
            kBehindALink);
}

// Some ranks enqueue a round, others start it themselves.
TEST_P(QueueCollectivesTest, TakePartInMixedRounds) {
  ExpectJob(GetParam(), {"tests/mpi/ranks/mixed_rounds"}, "all rounds were right");
}

TEST_P(QueueCollectivesTest, TakePartInMixedRoundsBehindALink) {
  ExpectJob(GetParam(), {"tests/mpi/ranks/mixed_rounds", "link"}, "all rounds were right",
            kBehindALink);
}

TEST(NicCollectivesTest, KeepTheRulesOfQueues) {
  ExpectJob({"Nic", {"-n", "5", "--nodes", "2"}}, {"tests/mpi/ranks/queue_collectives"},
            "all queues were right", kByTheNic);
}

TEST(NicCollectivesTest, TakePartInMixedRounds) {
  ExpectJob({"Nic", {"-n", "5", "--nodes", "2"}}, {"tests/mpi/ranks/mixed_rounds"},
            "all rounds were right", kByTheNic);
}

INSTANTIATE_TEST_SUITE_P(Placements, QueueCollectivesTest, testing::ValuesIn(AllPlacements()),
                         NameOf);

}  // namespace
}  // namespace ferry::mpi_tests
