// Partitioned collectives, and schedules of a program's own (mpix_partitioned.h).
#include <gmock/gmock.h>

#include "tests/mpi/e2e/mpi_job.h"

namespace ferry::mpi_tests {
namespace {

constexpr char kProgram[] = "tests/mpi/ranks/partitioned_collectives";
constexpr char kAllRight[] = "all partitions were right";
constexpr char kMistakes[] = "tests/mpi/ranks/partitioned_collective_mistakes";
constexpr char kAllNamed[] = "all mistakes were named";
constexpr char kBlocks[] = "tests/mpi/ranks/partitioned_blocks";
constexpr char kBlocksRight[] = "all blocks were right";
constexpr char kScatters[] = "tests/mpi/ranks/partitioned_reduce_scatter";
constexpr char kSumsRight[] = "all sums were right";

class PartitionedCollectivesTest : public testing::TestWithParam<Placement> {};

TEST_P(PartitionedCollectivesTest, GiveWhatThePlainOnesGive) {
  ExpectJob(GetParam(), {kProgram}, kAllRight);
}

TEST_P(PartitionedCollectivesTest, NameWrongCalls) {
  ExpectJob(GetParam(), {kMistakes}, kAllNamed);
}

TEST_P(PartitionedCollectivesTest, HaveBlocksOfTheirOwnAndNeighbours) {
  ExpectJob(GetParam(), {kBlocks}, kBlocksRight);
  ExpectJob(GetParam(), {kScatters}, kSumsRight);
}

TEST_P(PartitionedCollectivesTest, MayGoByTheProgramsSchedule) {
  ExpectJob(GetParam(), {"tests/mpi/ranks/partitioned_schedules"}, "all schedules were right");
}

INSTANTIATE_TEST_SUITE_P(Placements, PartitionedCollectivesTest, testing::ValuesIn(AllPlacements()),
                         NameOf);

// A ring of three, and recursive doubling of four.
INSTANTIATE_TEST_SUITE_P(MorePlacements, PartitionedCollectivesTest,
                         testing::Values(Placement{"ThreeRanks", {"-n", "3"}},
                                         Placement{"FourRanksOnTwoNodes",
                                                   {"-n", "4", "--nodes", "2"}}),
                         NameOf);

TEST(PartitionedCollectivesOnDevicesTest, ReachDevicesBehindALink) {
  const std::vector<std::string> behind_a_link = {"FERRY_HOST_LINK_H2D_MB_PER_S=20000",
                                                  "FERRY_HOST_LINK_D2H_MB_PER_S=20000"};
  ExpectJob({"", {"-n", "3"}}, {kProgram}, kAllRight, behind_a_link);
  ExpectJob({"", {"-n", "3"}}, {kBlocks, "device"}, kBlocksRight, behind_a_link);
}

TEST(ComparedPartitionsTest, AreFoundToDiffer) {
  ExpectJob({"", {"-n", "3"}}, {kMistakes, "compared"}, kAllNamed, {"FERRY_MPI_CHECK=1"});
  ExpectJob({"", {"-n", "3"}}, {kBlocks, "compared"}, kBlocksRight, {"FERRY_MPI_CHECK=1"});
  ExpectJob({"", {"-n", "3"}}, {kScatters}, kSumsRight, {"FERRY_MPI_CHECK=1"});
}

class DyingPartitionsTest : public testing::TestWithParam<Placement> {};

TEST_P(DyingPartitionsTest, KeepNobodyWaiting) {
  using Words = std::vector<std::string>;
  for (const Words& words : {Words{"--keep-going", kMistakes, "dies"},
                             {"--keep-going", kMistakes, "dies late"},
                             {"--keep-going", kBlocks, "dies"}}) {
    const e2e::CommandResult result = RunJob(GetParam(), words);
    EXPECT_THAT(result.out, testing::HasSubstr("class 58\n")) << "MPI_ERR_PROC_ABORTED";
    EXPECT_THAT(result.out, testing::Not(testing::HasSubstr("class 0\n"))) << result.err;
  }
}

// The setup takes some milliseconds.
TEST(DyingInTheSetupTest, KeepsNobodyWaiting) {
  for (int us = 0; us <= 6000; us += 400) {
    const std::string dying = us % 800 == 0 ? "0" : "4";
    const e2e::CommandResult result = RunJob(
        {"", {"-n", "5"}}, {"--keep-going", kMistakes, "dies soon", dying, std::to_string(us)});
    SCOPED_TRACE("rank " + dying + " after " + std::to_string(us) + " us");
    std::string twice_by_four;
    for (int i = 0; i < 8; ++i) {
      twice_by_four += "class 58\n";
    }
    EXPECT_EQ(result.out, twice_by_four) << "MPI_ERR_PROC_ABORTED: " << result.err;
  }
}

INSTANTIATE_TEST_SUITE_P(Placements, DyingPartitionsTest, testing::ValuesIn(SeveralRanks()),
                         NameOf);

// ---- Kernels ------------------------------------------------------------------------------------

const std::vector<std::string> kTwoDevices = {"FERRY_GPU_BACKEND=host", "FERRY_HOST_GPU_COUNT=2"};
const std::vector<std::string> kBehindALink = {"FERRY_GPU_BACKEND=host", "FERRY_HOST_GPU_COUNT=2",
                                               "FERRY_HOST_LINK_H2D_MB_PER_S=20000",
                                               "FERRY_HOST_LINK_D2H_MB_PER_S=20000"};
constexpr char kKernels[] = "tests/mpi/ranks/partitioned_collective_kernels";
constexpr char kKernelsRight[] = "all kernels were right";

class PartitionedCollectivesOfKernelsTest : public testing::TestWithParam<Placement> {};

TEST_P(PartitionedCollectivesOfKernelsTest, AreReadiedAndAwaited) {
  ExpectJob(GetParam(), {kKernels}, kKernelsRight, kTwoDevices);
}

INSTANTIATE_TEST_SUITE_P(Placements, PartitionedCollectivesOfKernelsTest,
                         testing::ValuesIn(AllPlacements()), NameOf);

TEST(PartitionedCollectivesOfKernelsOnDevicesTest, MoveMemoryBehindALink) {
  ExpectJob({"", {"-n", "3"}}, {kKernels, "auto", "device"}, kKernelsRight, kBehindALink);
}

class DyingKernelsTest : public testing::TestWithParam<Placement> {};

TEST_P(DyingKernelsTest, KeepNoKernelWaiting) {
  const e2e::CommandResult result =
      RunJob(GetParam(), {"--keep-going", kKernels, "die"}, kTwoDevices);
  EXPECT_THAT(result.out, testing::HasSubstr("the wait has ended")) << result.err;
}

INSTANTIATE_TEST_SUITE_P(Placements, DyingKernelsTest, testing::ValuesIn(SeveralRanks()), NameOf);

}  // namespace
}  // namespace ferry::mpi_tests
