// Messages from and to device memory that only streams reach, over an emulated link, by the real
// library and daemon: any other access to it is a fault.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/e2e/command.h"

namespace ferry::e2e {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> WithLink(std::vector<std::string> variables = {}) {
  for (const char* variable :
       {"FERRY_HOST_LINK_H2D_MB_PER_S=8000", "FERRY_HOST_LINK_D2H_MB_PER_S=8000",
        "FERRY_HOST_LINK_LATENCY_US=5", "FERRY_HOST_LINK_GUARD=1"}) {
    variables.emplace_back(variable);
  }
  return variables;
}

struct Placement {
  const char* name;
  std::vector<std::string> flags;
  std::vector<std::string> variables;
};

std::vector<std::string> Job(const std::vector<std::string>& flags, const std::string& what) {
  std::vector<std::string> arguments = {"tools/ferryrun/ferryrun", "--private", "--ferryd",
                                        "daemon/ferryd", "--no-label"};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  arguments.insert(arguments.end(), {"tests/e2e/ranks/device", what});
  return arguments;
}

class DeviceTest : public testing::TestWithParam<Placement> {
 protected:
  static void Run(const std::string& what) {
    Command command(Job(GetParam().flags, what), WithLink(GetParam().variables));
    const CommandResult result = command.Wait();
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.out, "device: ok\n");
    EXPECT_THAT(command.Leftovers(), IsEmpty());
  }
};

TEST_P(DeviceTest, MovesAllSizesBetweenAllKindsOfMemory) { Run("sizes"); }
TEST_P(DeviceTest, MovesManyAtATime) { Run("windows"); }

// With few and small staging blocks, so that messages wait for each other's.
INSTANTIATE_TEST_SUITE_P(
    Placements, DeviceTest,
    testing::Values(
        Placement{"OneRank", {"-n", "1"}, {}}, Placement{"TwoRanks", {"-n", "2"}, {}},
        Placement{"TwoNodes", {"-n", "2", "--nodes", "2"}, {}},
        Placement{"TwoNics", {"-n", "2", "--nodes", "2"}, {"FERRY_FABRIC_RAILS=127.0.0.2"}},
        Placement{"ThreeRanksOnTwoNodes", {"-n", "3", "--nodes", "2"}, {}},
        Placement{"FewBlocks",
                  {"-n", "2", "--nodes", "2"},
                  {"FERRY_PIPELINE_BLOCK_BYTES=65536", "FERRY_PIPELINE_STAGING_BLOCKS=2",
                   "FERRY_PIPELINE_MODE=even"}},
        Placement{"DaemonsStageAll", {"-n", "3", "--nodes", "2"}, {"FERRY_OFFLOAD_MIN_BYTES=0"}},
        Placement{"RanksStage", {"-n", "3", "--nodes", "2"}, {"FERRY_PIPELINE_STAGING_BLOCKS=0"}},
        Placement{"WorkerProcess", {"-n", "3", "--nodes", "2"}, {"FERRY_WORKER_MODE=process"}}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(DeviceMistakesTest, AreNamed) {
  for (const char* nodes : {"1", "2"}) {
    Command command(Job({"-n", "2", "--nodes", nodes}, "mistakes"), WithLink());
    const CommandResult result = command.Wait();
    EXPECT_EQ(result.exit_code, 0) << result.err;
  }
}

// A rank that loads from such memory is ended, so that the other tests notice it.
TEST(DeviceGuardTest, EndsWhoTouchesDeviceMemory) {
  Command command(Job({"-n", "1"}, "touch"), WithLink());
  const CommandResult result = command.Wait();
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(result.err, HasSubstr("was killed by SIGSEGV"));
}

TEST(DeviceDeathTest, TheOtherRankIsTold) {
  for (const char* nodes : {"1", "2"}) {
    for (const char* what : {"hold", "vanish"}) {
      SCOPED_TRACE(std::string(what) + " on " + nodes);
      Command command(Job({"-n", "2", "--keep-going", "--nodes", nodes}, what), WithLink());
      const CommandResult result = command.Wait();
      EXPECT_THAT(result.out, HasSubstr("survivor: "));
      EXPECT_THAT(command.Leftovers(), IsEmpty());
    }
  }
}

// A failed copy of ferryd's is an error of both ranks' requests, and of nothing else.
TEST(DeviceFaultTest, ACopyThatFailsIsToldToBothRanks) {
  for (const char* point : {"staging.copy_in:3:SYSTEM", "staging.copy_out:3:SYSTEM"}) {
    SCOPED_TRACE(point);
    Command command(Job({"-n", "2", "--nodes", "2"}, "fails"),
                    WithLink({std::string("FERRY_FAULTS=") + point}));
    const CommandResult result = command.Wait();
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.out, HasSubstr("device: ok\n"));
  }
}

}  // namespace
}  // namespace ferry::e2e
