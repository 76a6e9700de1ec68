// Large messages between nodes, written into receives that are there first, and fetched.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/e2e/command.h"

namespace ferry::e2e {
namespace {

std::vector<std::string> Job(const std::string& ranks, const std::string& min_bytes) {
  return {"tools/ferryrun/ferryrun",
          "--private",
          "--ferryd",
          "daemon/ferryd",
          "--no-label",
          "-n",
          ranks,
          "--nodes",
          "2",
          "/usr/bin/env",
          "FERRY_RECEIVER_FIRST_MIN_BYTES=" + min_bytes};
}

void ExpectPasses(std::vector<std::string> arguments) {
  Command command(arguments);
  const CommandResult result = command.Wait();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(command.Leftovers(), testing::IsEmpty());
}

TEST(ReceiverFirstTest, KeepsItsPromises) {
  std::vector<std::string> arguments = Job("2", "1");
  arguments.insert(arguments.end(), {"tests/e2e/ranks/receiver_first", "on"});
  ExpectPasses(arguments);
}

TEST(ReceiverFirstTest, TheSameWithout) {
  std::vector<std::string> arguments = Job("2", "0");
  arguments.insert(arguments.end(), {"tests/e2e/ranks/receiver_first", "off"});
  ExpectPasses(arguments);
}

// The programs that every placement has to pass.
TEST(ReceiverFirstTest, OtherProgramsDoNotNotice) {
  std::vector<std::string> arguments = Job("4", "1");
  arguments.push_back("tests/e2e/ranks/point_to_point");
  ExpectPasses(arguments);
}

TEST(ReceiverFirstTest, WindowsBothWays) {
  std::vector<std::string> arguments = Job("2", "1");
  arguments.insert(arguments.end(), {"tests/e2e/ranks/windows", "30"});
  ExpectPasses(arguments);
}

}  // namespace
}  // namespace ferry::e2e
