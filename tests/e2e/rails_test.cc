// Programs on two nodes with two NICs each, here two addresses of the loopback interface.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/e2e/command.h"

namespace ferry::e2e {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> Job(const std::string& ranks, std::vector<std::string> program) {
  std::vector<std::string> arguments = {"tools/ferryrun/ferryrun",
                                        "--private",
                                        "--ferryd",
                                        "daemon/ferryd",
                                        "--no-label",
                                        "-n",
                                        ranks,
                                        "--nodes",
                                        "2"};
  arguments.insert(arguments.end(), program.begin(), program.end());
  return arguments;
}

void ExpectPasses(const std::string& ranks, std::vector<std::string> program,
                  std::vector<std::string> variables = {}) {
  variables.emplace_back("FERRY_FABRIC_RAILS=127.0.0.2");
  Command command(Job(ranks, std::move(program)), std::move(variables));
  const CommandResult result = command.Wait();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(command.Leftovers(), IsEmpty());
}

// What every placement has to pass.
TEST(RailsTest, ProgramsDoNotNotice) { ExpectPasses("4", {"tests/e2e/ranks/point_to_point"}); }

TEST(RailsTest, WindowsBothWays) {
  ExpectPasses("2", {"tests/e2e/ranks/windows", "30"}, {"FERRY_RAIL_STRIPE_BYTES=65536"});
}

TEST(RailsTest, WritesIntoReceivesThatAreThereFirst) {
  ExpectPasses("2", {"tests/e2e/ranks/receiver_first", "on"}, {"FERRY_RECEIVER_FIRST_MIN_BYTES=1"});
}

TEST(RailsTest, ANicThatIsNotThereIsNamed) {
  Command command(Job("2", {"/bin/true"}), {"FERRY_FABRIC_RAILS=203.0.113.9"});
  const CommandResult result = command.Wait();
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(result.err, HasSubstr("rail '203.0.113.9'"));
  EXPECT_THAT(command.Leftovers(), IsEmpty());
}

}  // namespace
}  // namespace ferry::e2e
