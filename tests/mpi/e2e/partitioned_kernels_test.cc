// Partitioned communication from kernels of emulated devices, by the real library and daemon.
#include <gmock/gmock.h>

#include "tests/mpi/e2e/mpi_job.h"

namespace ferry::mpi_tests {
namespace {

using testing::HasSubstr;

const std::vector<std::string> kTwoDevices = {"FERRY_GPU_BACKEND=host", "FERRY_HOST_GPU_COUNT=2"};
// Device memory is out of the CPU's reach, but not of kernels'.
const std::vector<std::string> kBehindALink = {"FERRY_GPU_BACKEND=host",
                                               "FERRY_HOST_LINK_H2D_MB_PER_S=20000",
                                               "FERRY_HOST_LINK_D2H_MB_PER_S=20000"};
// And of the kernels' too: what they use lies in host memory.
const std::vector<std::string> kGuarded = {
    "FERRY_GPU_BACKEND=host", "FERRY_HOST_LINK_H2D_MB_PER_S=20000",
    "FERRY_HOST_LINK_D2H_MB_PER_S=20000", "FERRY_HOST_LINK_GUARD=1"};

constexpr char kProgram[] = "tests/mpi/ranks/partitioned_kernels";
constexpr char kRight[] = "all kernels were right";

bool IsOneNode(const Placement& placement) { return placement.flags.size() == 2; }

class PartitionedKernelsTest : public testing::TestWithParam<Placement> {};

TEST_P(PartitionedKernelsTest, MoveHostMemory) {
  ExpectJob(GetParam(), {kProgram}, kRight, kTwoDevices);
}

TEST_P(PartitionedKernelsTest, MoveDeviceMemory) {
  ExpectJob(GetParam(), {kProgram, "auto", "device"}, kRight, kTwoDevices);
}

TEST_P(PartitionedKernelsTest, MoveDeviceMemoryBehindALink) {
  ExpectJob(GetParam(), {kProgram, "auto", "device"}, kRight, kBehindALink);
}

TEST_P(PartitionedKernelsTest, LieInHostMemoryBehindAGuardedLink) {
  ExpectJob(GetParam(), {kProgram, "auto", "pinned"}, kRight, kGuarded);
}

TEST_P(PartitionedKernelsTest, AskFerryd) {
  ExpectJob(GetParam(), {kProgram, "daemon"}, kRight, kTwoDevices);
}

TEST_P(PartitionedKernelsTest, LeaveItToHosts) {
  ExpectJob(GetParam(), {kProgram, "host"}, kRight, kTwoDevices);
}

TEST_P(PartitionedKernelsTest, LeaveItToWhoWaits) {
  if (IsOneNode(GetParam())) {
    GTEST_SKIP() << "ferryd is asked for what goes to other nodes";
  }
  for (const char* const links : {"FERRY_DIRECT_LINKS=off", "FERRY_DIRECT_LINKS=always"}) {
    std::vector<std::string> variables = kTwoDevices;
    variables.push_back(links);
    ExpectJob(GetParam(), {kProgram, "auto", "host", "waiting"}, kRight, variables);
  }
}

TEST_P(PartitionedKernelsTest, LeaveItToWhoWaitsAlone) {
  if (IsOneNode(GetParam())) {
    GTEST_SKIP() << "the library's thread looks after what goes to other nodes";
  }
  for (const char* const links : {"FERRY_DIRECT_LINKS=off", "FERRY_DIRECT_LINKS=always"}) {
    std::vector<std::string> variables = kTwoDevices;
    variables.push_back(links);
    ExpectJob(GetParam(), {"tests/mpi/ranks/partitioned_attended"}, "who waited was alone",
              variables);
  }
}

TEST_P(PartitionedKernelsTest, CopyThemselves) {
  if (!IsOneNode(GetParam())) {
    GTEST_SKIP() << "kernels do not reach other nodes";
  }
  ExpectJob(GetParam(), {kProgram, "kernel"}, kRight, kTwoDevices);
}

INSTANTIATE_TEST_SUITE_P(Alone, PartitionedKernelsTest,
                         testing::Values(Placement{"OneRank", {"-n", "1"}}), NameOf);
INSTANTIATE_TEST_SUITE_P(Placements, PartitionedKernelsTest, testing::ValuesIn(Pairs()), NameOf);

class KernelMistakesTest : public testing::TestWithParam<Placement> {};

TEST_P(KernelMistakesTest, AreTold) {
  ExpectJob(GetParam(),
            {"tests/mpi/ranks/partitioned_kernel_mistakes", IsOneNode(GetParam()) ? "near" : "far"},
            "all mistakes were named", kTwoDevices);
}

TEST_P(KernelMistakesTest, ARankThatDiesIsNotWaitedFor) {
  const e2e::CommandResult result =
      RunJob(GetParam(), {"--keep-going", "tests/mpi/ranks/partitioned_kernel_mistakes", "die"},
             kTwoDevices);
  EXPECT_THAT(result.out, HasSubstr("the wait has ended")) << result.err;
}

INSTANTIATE_TEST_SUITE_P(Placements, KernelMistakesTest, testing::ValuesIn(Pairs()), NameOf);

}  // namespace
}  // namespace ferry::mpi_tests
