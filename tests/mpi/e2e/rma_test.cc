// Windows (MPI 5.0, chapter 12): each call over memory of every kind, on one node and on two, by
// the daemons and by direct links. The programs name the step in which they fail. Deaths are in
// tests/faults/rma_test.cc.
#include "tests/mpi/e2e/mpi_job.h"

namespace ferry::mpi_tests {
namespace {

const std::vector<std::string> kWithoutLinks = {"FERRY_DIRECT_LINKS=off"};
const std::vector<std::string> kAlwaysByLinks = {"FERRY_DIRECT_LINKS=always"};
// Any access to the emulated devices' memory without a stream is a fault.
const std::vector<std::string> kBehindALink = {
    "FERRY_HOST_LINK_H2D_MB_PER_S=20000", "FERRY_HOST_LINK_D2H_MB_PER_S=20000",
    "FERRY_HOST_LINK_LATENCY_US=2", "FERRY_HOST_LINK_GUARD=1"};

class RmaTest : public testing::TestWithParam<Placement> {
 protected:
  static void Run(const std::string& program, const std::string& line) {
    ExpectJob(GetParam(), {"tests/mpi/ranks/rma_" + program}, line);
  }
};

TEST_P(RmaTest, ObjectsAreWhatTheyWereMade) { Run("objects", "all objects were right"); }

TEST_P(RmaTest, PutsAndGetsMoveEveryByte) { Run("moves", "all moves were right"); }

TEST_P(RmaTest, EpochsKeepApartWhatTheyShould) { Run("epochs", "all epochs were right"); }

TEST_P(RmaTest, AccumulatesAgree) { Run("accumulates", "all accumulates were right"); }

TEST_P(RmaTest, MemoryIsSharedAndAttached) { Run("shared", "all memory was right"); }

TEST_P(RmaTest, PutsAndGetsReachDevicesBehindALink) {
  ExpectJob(GetParam(), {"tests/mpi/ranks/rma_moves"}, "all moves were right", kBehindALink);
}

TEST_P(RmaTest, AccumulatesReachDevicesBehindALink) {
  ExpectJob(GetParam(), {"tests/mpi/ranks/rma_accumulates"}, "all accumulates were right",
            kBehindALink);
}

TEST_P(RmaTest, MemoryOfDevicesBehindALinkIsAttached) {
  ExpectJob(GetParam(), {"tests/mpi/ranks/rma_shared"}, "all memory was right", kBehindALink);
}

INSTANTIATE_TEST_SUITE_P(Placements, RmaTest, testing::ValuesIn(PlacementsOfPairs()), NameOf);

// Windows between two nodes, without direct links, and by them from the first message on.
class RmaLinksTest : public testing::TestWithParam<std::vector<std::string>> {
 protected:
  static void Run(const std::string& program, const std::string& line) {
    ExpectJob({"", {"-n", "2", "--nodes", "2"}}, {"tests/mpi/ranks/rma_" + program}, line,
              GetParam());
  }
};

TEST_P(RmaLinksTest, PutsAndGetsMoveEveryByte) { Run("moves", "all moves were right"); }

TEST_P(RmaLinksTest, EpochsKeepApartWhatTheyShould) { Run("epochs", "all epochs were right"); }

TEST_P(RmaLinksTest, AccumulatesAgree) { Run("accumulates", "all accumulates were right"); }

TEST_P(RmaLinksTest, MemoryIsSharedAndAttached) { Run("shared", "all memory was right"); }

INSTANTIATE_TEST_SUITE_P(, RmaLinksTest, testing::Values(kWithoutLinks, kAlwaysByLinks),
                         [](const auto& info) {
                           return std::string(info.index == 0 ? "Off" : "Always");
                         });

// Windows where the library serves threads.
TEST(RmaMultipleTest, MovesAndEpochsAreRight) {
  ExpectJob({"", {"-n", "2", "--nodes", "2"}}, {"tests/mpi/ranks/rma_moves", "multiple"},
            "all moves were right");
  ExpectJob({"", {"-n", "2"}}, {"tests/mpi/ranks/rma_epochs", "multiple"}, "all epochs were right");
}

}  // namespace
}  // namespace ferry::mpi_tests
