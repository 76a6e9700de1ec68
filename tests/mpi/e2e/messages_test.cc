// Messages of MPI programs, by the real library and daemon: all modes, forms and sizes, threads,
// and every mistake a program can make with them.
#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "tests/mpi/e2e/mpi_job.h"

namespace ferry::mpi_tests {
namespace {

std::string NameOf(const testing::TestParamInfo<Placement>& info) { return info.param.name; }

class MessagesTest : public testing::TestWithParam<Placement> {};

TEST_P(MessagesTest, AreRightInAllModesFormsAndSizes) {
  ExpectJob(GetParam(), {"tests/mpi/ranks/messages"}, "all messages were right");
}

TEST_P(MessagesTest, AreRightWithThreadMultiple) {
  ExpectJob(GetParam(), {"tests/mpi/ranks/messages", "multiple"}, "all messages were right");
}

TEST_P(MessagesTest, OfWindowsEndInEveryWay) {
  ExpectJob(GetParam(), {"tests/mpi/ranks/windows"}, "all windows were right");
}

TEST_P(MessagesTest, OfWindowsEndInEveryWayWithThreadMultiple) {
  ExpectJob(GetParam(), {"tests/mpi/ranks/windows", "multiple"}, "all windows were right");
}

TEST_P(MessagesTest, OfManyThreadsDoNotMeet) {
  ExpectJob(GetParam(), {"tests/mpi/ranks/threads"}, "all threads were served");
}

// Any access to the emulated devices' memory without a stream is a fault.
std::vector<std::string> BehindALink() {
  return {"FERRY_HOST_LINK_H2D_MB_PER_S=8000", "FERRY_HOST_LINK_D2H_MB_PER_S=8000",
          "FERRY_HOST_LINK_LATENCY_US=5", "FERRY_HOST_LINK_GUARD=1"};
}

TEST_P(MessagesTest, AndCollectivesTakeDeviceBuffers) {
  ExpectJob(GetParam(), {"tests/mpi/ranks/device"}, "device buffers were right", BehindALink());
}

TEST_P(MessagesTest, OfDevicesAreReducedWhereItIsSoonerDone) {
  ExpectJob(GetParam(), {"tests/mpi/ranks/device_reductions"}, "device reductions were right",
            BehindALink());
}

TEST_P(MessagesTest, OfDevicesAreReducedThere) {
  std::vector<std::string> variables = BehindALink();
  variables.emplace_back("FERRY_DEVICE_REDUCTION_MIN_BYTES=0");
  ExpectJob(GetParam(), {"tests/mpi/ranks/device_reductions"}, "device reductions were right",
            variables);
}

// The scratch memory of reductions then lies in host memory that the device reaches.
TEST_P(MessagesTest, OfDevicesAreReducedThereWithoutRoomForMore) {
  std::vector<std::string> variables = BehindALink();
  variables.emplace_back("FERRY_DEVICE_REDUCTION_MIN_BYTES=0");
  variables.emplace_back("FERRY_HOST_GPU_MEMORY_BYTES=1310720");
  ExpectJob(GetParam(), {"tests/mpi/ranks/device_reductions"}, "device reductions were right",
            variables);
}

INSTANTIATE_TEST_SUITE_P(Placements, MessagesTest, testing::ValuesIn(AllPlacements()), NameOf);

// Small receives go another way where ranks share cores.
TEST(CrowdedNodeTest, ItsWindowsEndInEveryWay) {
  const unsigned cores = std::thread::hardware_concurrency();
  if (cores > 16) {
    GTEST_SKIP() << "it takes more ranks than cores, and here are " << cores << " cores";
  }
  ExpectJob({"Crowded", {"-n", std::to_string(cores + 1)}}, {"tests/mpi/ranks/windows"},
            "all windows were right");
}

class MistakesTest : public testing::TestWithParam<Placement> {};

TEST_P(MistakesTest, AreNamedAndHarmNothing) {
  ExpectJob(GetParam(), {"tests/mpi/ranks/mistakes"}, "all mistakes were named");
}

INSTANTIATE_TEST_SUITE_P(Placements, MistakesTest, testing::ValuesIn(Pairs()), NameOf);

}  // namespace
}  // namespace ferry::mpi_tests
