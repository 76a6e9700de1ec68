// Rings of devices, from threads that play the GPU to ferryd and back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/e2e/command.h"

namespace ferry::e2e {
namespace {

CommandResult RunJob(const std::string& nodes, const std::vector<std::string>& variables,
                     const std::vector<std::string>& program) {
  std::vector<std::string> arguments = {"tools/ferryrun/ferryrun",
                                        "--private",
                                        "--ferryd",
                                        "daemon/ferryd",
                                        "--no-label",
                                        "-n",
                                        "2",
                                        "--nodes",
                                        nodes,
                                        "/usr/bin/env"};
  arguments.insert(arguments.end(), variables.begin(), variables.end());
  arguments.insert(arguments.end(), program.begin(), program.end());
  Command command(arguments);
  CommandResult result = command.Wait();
  EXPECT_THAT(command.Leftovers(), testing::IsEmpty());
  return result;
}

TEST(DeviceRingTest, InsideANode) {
  const CommandResult result = RunJob("1", {}, {"tests/e2e/ranks/device_ring"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
}

// There devices start matched requests, too.
TEST(DeviceRingTest, BetweenNodes) {
  const CommandResult result = RunJob("2", {}, {"tests/e2e/ranks/device_ring"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
}

// The daemon does not reach device memory that only streams reach, and refuses requests that name
// it.
TEST(DeviceRingTest, DevicesBehindALink) {
  const CommandResult result =
      RunJob("2", {"FERRY_HOST_LINK_H2D_MB_PER_S=20000", "FERRY_HOST_LINK_D2H_MB_PER_S=20000"},
             {"tests/e2e/ranks/device_ring", "link"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
}

TEST(DeviceRingTest, ARankLeavesWithAStalledRing) {
  const CommandResult result = RunJob("1", {}, {"tests/e2e/ranks/device_ring", "leave"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
}

}  // namespace
}  // namespace ferry::e2e
