// Partitioned messages between hosts: each demand of MPI 5.0, chapter 4, and each fault of other
// libraries that is known. The programs name the demand in which they fail. Deaths are in
// tests/faults/partitioned_test.cc.
#include <algorithm>

#include "tests/mpi/e2e/mpi_job.h"

namespace ferry::mpi_tests {
namespace {

// Any access to the emulated devices' memory without a stream is a fault.
const std::vector<std::string> kBehindALink = {
    "FERRY_HOST_LINK_H2D_MB_PER_S=20000", "FERRY_HOST_LINK_D2H_MB_PER_S=20000",
    "FERRY_HOST_LINK_LATENCY_US=2", "FERRY_HOST_LINK_GUARD=1"};

class PartitionedTest : public testing::TestWithParam<Placement> {
 protected:
  static void Run(const std::string& program, const std::string& line,
                  const std::vector<std::string>& variables = {}) {
    ExpectJob(GetParam(), {"tests/mpi/ranks/partitioned_" + program}, line, variables);
  }
};

// One init meets one other, in their order, by communicator, rank and tag, and no message; inits
// are local; requests that were freed do not disturb the matching.
TEST_P(PartitionedTest, InitsMeetInTheirOrder) { Run("matching", "all pairs were right"); }

// A readied partition arrives before others are readied, one by one; no request ends too soon.
TEST_P(PartitionedTest, PartitionsArriveOneByOne) { Run("rounds", "all rounds were right"); }

// Unequal numbers of partitions, datatypes with gaps, hints, sizes.
TEST_P(PartitionedTest, DataAreRightHoweverTheyAreCut) { Run("data", "all data were right"); }

// Large partitions, which both sides copy piece by piece.
TEST_P(PartitionedTest, PiecesOfLargePartitionsAreRight) { Run("pieces", "all pieces were right"); }

TEST_P(PartitionedTest, RequestsEndInEveryCall) { Run("completion", "all requests ended"); }

TEST_P(PartitionedTest, CommunicatorsOfAllKindsCarryThem) {
  Run("communicators", "all communicators were right");
}

// Ferry's own calls: arrivals of any partition, waits for the other side's start, queues.
TEST_P(PartitionedTest, ExtensionsKeepTheirPromises) {
  Run("extensions", "all extensions were right");
}

TEST_P(PartitionedTest, ThreadsReadyAndAskTogether) { Run("threads", "all threads were right"); }

INSTANTIATE_TEST_SUITE_P(Placements, PartitionedTest, testing::ValuesIn(PlacementsOfPairs()),
                         NameOf);

class PartitionedPairsTest : public PartitionedTest {};

TEST_P(PartitionedPairsTest, PartitionsOfDevicesBehindALinkArriveOneByOne) {
  Run("rounds", "all rounds were right", kBehindALink);
}

TEST_P(PartitionedPairsTest, DataOfDevicesBehindALinkAreRight) {
  Run("data", "all data were right", kBehindALink);
}

TEST_P(PartitionedPairsTest, ProgressOfDevicesBehindALinkNeedsNone) {
  Run("alone", "nobody waited in vain", kBehindALink);
}

TEST_P(PartitionedPairsTest, MistakesAreNamedAndHarmNothing) {
  Run("mistakes", "all mistakes were named");
}

INSTANTIATE_TEST_SUITE_P(Placements, PartitionedPairsTest, testing::ValuesIn(Pairs()), NameOf);

// A side that computes, and programs that wait for the answer to one partition; also where ranks
// share cores.
class PartitionedProgressTest : public PartitionedTest {};

TEST_P(PartitionedProgressTest, NeedsNoCallOfTheOtherSide) {
  Run("alone", "nobody waited in vain");
}

INSTANTIATE_TEST_SUITE_P(Placements, PartitionedProgressTest, testing::ValuesIn(SeveralRanks()),
                         NameOf);

// Partitioned communication where the library serves threads.
class PartitionedMultipleTest : public testing::TestWithParam<Placement> {};

TEST_P(PartitionedMultipleTest, InitsMeetInTheirOrder) {
  ExpectJob(GetParam(), {"tests/mpi/ranks/partitioned_matching", "multiple"},
            "all pairs were right");
}

TEST_P(PartitionedMultipleTest, PartitionsArriveOneByOne) {
  ExpectJob(GetParam(), {"tests/mpi/ranks/partitioned_rounds", "multiple"},
            "all rounds were right");
}

TEST_P(PartitionedMultipleTest, RequestsEndInEveryCall) {
  ExpectJob(GetParam(), {"tests/mpi/ranks/partitioned_completion", "multiple"},
            "all requests ended");
}

TEST_P(PartitionedMultipleTest, ProgressNeedsNoCallOfTheOtherSide) {
  ExpectJob(GetParam(), {"tests/mpi/ranks/partitioned_alone", "multiple"}, "nobody waited in vain");
}

INSTANTIATE_TEST_SUITE_P(Placements, PartitionedMultipleTest, testing::ValuesIn(Pairs()), NameOf);

// Partitioned communication by direct links, which take the puts of partitions: all the time, and
// now and then.
class PartitionedLinksTest : public testing::TestWithParam<std::vector<std::string>> {
 protected:
  static void Run(const std::string& program, const std::string& line) {
    ExpectJob({"", {"-n", "2", "--nodes", "2"}}, {"tests/mpi/ranks/partitioned_" + program}, line,
              GetParam());
  }
};

TEST_P(PartitionedLinksTest, PartitionsArriveOneByOne) { Run("rounds", "all rounds were right"); }

TEST_P(PartitionedLinksTest, DataAreRightHoweverTheyAreCut) { Run("data", "all data were right"); }

TEST_P(PartitionedLinksTest, ThreadsReadyAndAskTogether) {
  Run("threads", "all threads were right");
}

TEST_P(PartitionedLinksTest, ProgressNeedsNoCallOfTheOtherSide) {
  Run("alone", "nobody waited in vain");
}

INSTANTIATE_TEST_SUITE_P(, PartitionedLinksTest,
                         testing::Values(std::vector<std::string>{"FERRY_DIRECT_LINKS=always"},
                                         std::vector<std::string>{"FERRY_DIRECT_LINKS=auto",
                                                                  "FERRY_DIRECT_LINK_MESSAGES=3",
                                                                  "FERRY_DIRECT_LINK_IDLE_MS=5"}),
                         [](const auto& info) {
                           return std::string(info.index == 0 ? "Kept" : "Restless");
                         });

// Rank 0's requests to its daemon, in so many rounds of 64 small partitions to another node.
constexpr int kUnitRounds = 50;

int OneSidedOperations(const std::vector<std::string>& hints) {
  std::vector<std::string> words = {"tests/mpi/ranks/partitioned_units",
                                    std::to_string(kUnitRounds), "tools/ferryctl/ferryctl"};
  words.insert(words.end(), hints.begin(), hints.end());
  const e2e::CommandResult result = RunJob({"", {"-n", "2", "--nodes", "2"}}, words);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const size_t found = result.out.find("\"one_sided_operations\"");
  const size_t value = result.out.find("\"value\": ", std::min(found, result.out.size()));
  EXPECT_NE(value, std::string::npos) << result.out;
  return value == std::string::npos ? -1 : std::stoi(result.out.substr(value + 9));
}

TEST(PartitionedUnitsTest, SmallPartitionsTravelTogether) {
  const int operations = OneSidedOperations({});
  EXPECT_GE(operations, kUnitRounds);
  EXPECT_LE(operations, 4 * kUnitRounds);
}

TEST(PartitionedUnitsTest, HintsSayHowMany) {
  const int operations = OneSidedOperations({"ferry_partitioned_min_bytes", "128"});
  EXPECT_GE(operations, 4 * kUnitRounds);
  EXPECT_LE(operations, 8 * kUnitRounds);
  EXPECT_LE(
      OneSidedOperations({"ferry_partitioned_min_bytes", "8", "ferry_partitioned_max_units", "2"}),
      6 * kUnitRounds);
}

}  // namespace
}  // namespace ferry::mpi_tests
