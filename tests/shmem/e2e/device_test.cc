// OpenSHMEM from kernels of emulated devices.
#include <gmock/gmock.h>

#include <string>
#include <tuple>

#include "tests/shmem/e2e/shmem_job.h"
#include "tests/support/slice.h"

namespace ferry::shmem_tests {
namespace {

using testing::HasSubstr;

const std::vector<std::string> kTwoDevices = {"FERRY_GPU_BACKEND=host", "FERRY_HOST_GPU_COUNT=2",
                                              "SHMEM_SYMMETRIC_SIZE=16m"};

// The number of PEs: several share a device.
class DeviceTest : public testing::TestWithParam<int> {
 protected:
  static void Expect(const std::vector<std::string>& words) {
    ExpectAllOk({.pes = GetParam(), .variables = kTwoDevices}, words);
  }
};

TEST_P(DeviceTest, KernelsPutAndGet) { Expect({"device_moves"}); }
TEST_P(DeviceTest, KernelsNameNoTypes) { Expect({"device_overloads"}); }
TEST_P(DeviceTest, KernelsPutAndGetWithStrides) { Expect({"device_strided"}); }
TEST_P(DeviceTest, KernelsChangeWordsAndWait) { Expect({"device_words"}); }
TEST_P(DeviceTest, KernelsWaitForManyWords) { Expect({"device_waits"}); }
TEST_P(DeviceTest, KernelsMeet) { Expect({"device_collectives"}); }
TEST_P(DeviceTest, KernelsRunOnStreams) { Expect({"device_life", "stream"}); }
TEST_P(DeviceTest, TablesAreMadeAgain) { Expect({"device_life", "again"}); }

INSTANTIATE_TEST_SUITE_P(, DeviceTest, testing::ValuesIn(tests::Slice<int>({1, 4}, {2})),
                         [](const auto& info) { return std::to_string(info.param) + "Pes"; });

// The number of PEs, on two nodes: kernels ask ferryd for what is on the other one.
class DeviceNodesTest : public testing::TestWithParam<int> {
 protected:
  static void Expect(const std::vector<std::string>& words) {
    ExpectAllOk({.pes = GetParam(), .nodes = 2, .variables = kTwoDevices}, words);
  }
};

TEST_P(DeviceNodesTest, KernelsPutAndGet) { Expect({"device_moves"}); }
TEST_P(DeviceNodesTest, KernelsNameNoTypes) { Expect({"device_overloads"}); }
TEST_P(DeviceNodesTest, KernelsChangeWordsAndWait) { Expect({"device_words"}); }
TEST_P(DeviceNodesTest, KernelsPutAndGetWithStrides) { Expect({"device_strided"}); }
TEST_P(DeviceNodesTest, KernelsWaitForManyWords) { Expect({"device_waits"}); }
TEST_P(DeviceNodesTest, KernelsMeet) { Expect({"device_collectives"}); }
TEST_P(DeviceNodesTest, LongBlocksOrderAndPrivateMemory) { Expect({"device_far"}); }
TEST_P(DeviceNodesTest, TablesEndWithWhatTheyHaveAskedFor) {
  Expect({"device_life", "unfinished"});
}

INSTANTIATE_TEST_SUITE_P(, DeviceNodesTest, testing::ValuesIn(tests::Slice<int>({4}, {2})),
                         [](const auto& info) { return std::to_string(info.param) + "Pes"; });

// Whatever ferryd can carry out in the node it is asked for.
class DeviceCutoverTest : public testing::TestWithParam<const char*> {};

TEST_P(DeviceCutoverTest, FerrydMovesWhatStoresWould) {
  std::vector<std::string> variables = kTwoDevices;
  variables.push_back("FERRY_SHMEM_CUTOVERS=put=0,get=0");
  ExpectAllOk({.pes = 3, .variables = variables}, {GetParam()});
}

INSTANTIATE_TEST_SUITE_P(, DeviceCutoverTest,
                         testing::Values("device_collectives", "device_moves", "device_strided"),
                         [](const auto& info) { return std::string(info.param); });

TEST(DeviceTableTest, LiesWhereFunctionsReachItBehindAGuardedLink) {
  std::vector<std::string> variables = kTwoDevices;
  variables.insert(variables.end(),
                   {"FERRY_HOST_LINK_H2D_MB_PER_S=20000", "FERRY_HOST_LINK_D2H_MB_PER_S=20000",
                    "FERRY_HOST_LINK_GUARD=1"});
  ExpectAllOk({.variables = variables}, {"device_life", "again"});
}

// The thread that looks after kernels ends before what it looks at.
TEST(DeviceTableTest, DoesNotOutliveAPeThatExits) {
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(RunJob({.pes = 1, .variables = kTwoDevices}, {"device_life", "exits"}).exit_code, 5);
  }
}

// ---- No table -----------------------------------------------------------------------------------

TEST(NoDeviceTableTest, ForAnUnknownDeviceOfOnePe) {
  for (const std::string device : {"2", "-1"}) {
    const JobSettings settings{.variables = kTwoDevices};
    ExpectAllOk(settings, {"device_life", "none", device});
    const std::string said = RunJob(settings, {"device_life", "none", device}).err;
    EXPECT_THAT(said, HasSubstr("rank 1: shmemx_device_prepare: the device " + device +
                                " is not between 0 and 1"));
    EXPECT_THAT(said, HasSubstr("rank 0: shmemx_device_prepare: PE 1 has no table, and says why"));
  }
}

TEST(NoDeviceTableTest, WhereCutoversAreNone) {
  std::vector<std::string> variables = kTwoDevices;
  variables.push_back("FERRY_SHMEM_CUTOVERS=put=4k,store=5");
  const JobSettings settings{.variables = variables};
  ExpectAllOk(settings, {"device_life", "none", "0"});
  EXPECT_THAT(RunJob(settings, {"device_life", "none", "0"}).err,
              HasSubstr("shmemx_device_prepare: FERRY_SHMEM_CUTOVERS: \"store=5\" is not of the "
                        "form put=BYTES"));
}

// ---- Failing requests of rings ------------------------------------------------------------------

// The number of PEs, on two nodes; what fails, and in which call.
using Failure = std::tuple<int, const char*, const char*>;
class DeviceFailuresTest : public testing::TestWithParam<Failure> {};

std::string NameOfFailure(const testing::TestParamInfo<Failure>& info) {
  const auto& [pes, when, what] = info.param;
  return std::to_string(pes) + "Pes_" + when + "_" + what;
}

TEST_P(DeviceFailuresTest, AreTheCallsOwn) {
  const auto& [pes, when, what] = GetParam();
  ExpectAllOk({.pes = pes, .nodes = 2, .variables = kTwoDevices}, {"device_failures", when, what});
}

INSTANTIATE_TEST_SUITE_P(, DeviceFailuresTest,
                         testing::Combine(testing::ValuesIn(tests::Slice<int>({4}, {2})),
                                          testing::Values("before", "inside"),
                                          testing::Values("alltoall", "alltoalls", "broadcast",
                                                          "collect", "fcollect", "long_fcollect",
                                                          "reduce", "scan", "strided")),
                         NameOfFailure);
INSTANTIATE_TEST_SUITE_P(BehindAFence, DeviceFailuresTest,
                         testing::Combine(testing::Values(4), testing::Values("behind_a_fence"),
                                          testing::Values("broadcast", "fcollect", "reduce")),
                         NameOfFailure);

// ---- Misuse, and PEs that are gone --------------------------------------------------------------

struct Case {
  const char* what;
  const char* sentence;
};
void PrintTo(const Case& one, std::ostream* out) { *out << one.what; }

class DeviceMisuseTest : public testing::TestWithParam<Case> {};

TEST_P(DeviceMisuseTest, EndsTheProgramWithASentence) {
  const e2e::CommandResult result =
      RunJob({.variables = kTwoDevices}, {"device_life", "misuse", GetParam().what});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr(GetParam().sentence));
}

INSTANTIATE_TEST_SUITE_P(
    , DeviceMisuseTest,
    testing::Values(Case{"before",
                         "shmemx_device_prepare: call shmem_init or shmem_init_thread first"},
                    Case{"team", "shmemx_device_prepare: the team is SHMEM_TEAM_INVALID"},
                    Case{"unknown", "is no table that shmemx_device_prepare has returned"},
                    Case{"twice", "was it released before?"},
                    Case{"destroyed", "shmemx_device_release: the team is none (any more)"}),
    [](const auto& info) { return std::string(info.param.what); });

class DeviceDeathTest : public testing::TestWithParam<const char*> {};

TEST_P(DeviceDeathTest, EndsWhatKernelsWaitFor) {
  const e2e::CommandResult result =
      RunJob({.pes = 3, .flags = {"--keep-going"}, .variables = kTwoDevices},
             {"device_life", "dies_in", GetParam()});
  EXPECT_THAT(e2e::SortedLines(result.out), testing::ElementsAre("PE 1: ok", "PE 2: ok"))
      << result.err;
}

INSTANTIATE_TEST_SUITE_P(, DeviceDeathTest,
                         testing::Values("wait", "signal", "wait_of_group", "sync", "reduce",
                                         "scan"),
                         [](const auto& info) { return std::string(info.param); });

// PE 1 is on the dead one's node, 2 and 3 are on the other.
class DeviceNodesDeathTest : public testing::TestWithParam<const char*> {};

TEST_P(DeviceNodesDeathTest, EndsWhatKernelsWaitFor) {
  const e2e::CommandResult result =
      RunJob({.pes = 4, .nodes = 2, .flags = {"--keep-going"}, .variables = kTwoDevices},
             {"device_life", "dies_in", GetParam()});
  EXPECT_THAT(e2e::SortedLines(result.out),
              testing::ElementsAre("PE 1: ok", "PE 2: ok", "PE 3: ok"))
      << result.err;
}

INSTANTIATE_TEST_SUITE_P(, DeviceNodesDeathTest,
                         testing::Values("wait_of_group", "sync", "reduce", "scan"),
                         [](const auto& info) { return std::string(info.param); });

// PE 0 dies, and one of the others is on another node.
class DeviceRemoteDeathTest : public testing::TestWithParam<const char*> {};

TEST_P(DeviceRemoteDeathTest, EndsWhatKernelsAskFor) {
  const e2e::CommandResult result =
      RunJob({.pes = 3, .nodes = 2, .flags = {"--keep-going"}, .variables = kTwoDevices},
             {"device_life", "dies_far_in", GetParam()});
  EXPECT_THAT(e2e::SortedLines(result.out), testing::ElementsAre("PE 1: ok", "PE 2: ok"))
      << result.err;
}

INSTANTIATE_TEST_SUITE_P(, DeviceRemoteDeathTest, testing::Values("get", "fetch", "quiet"),
                         [](const auto& info) { return std::string(info.param); });

TEST(DeviceLeaveTest, EndsWhatKernelsWaitFor) {
  ExpectAllOk({.pes = 3, .variables = kTwoDevices}, {"device_life", "leaves"});
}

}  // namespace
}  // namespace ferry::shmem_tests
