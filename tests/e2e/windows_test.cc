// Large messages both ways at once, whoever copies them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/e2e/command.h"

namespace ferry::e2e {
namespace {

#ifdef FERRY_STRESS
constexpr char kRounds[] = "10000";
#else
constexpr char kRounds[] = "400";
#endif

class WindowsTest : public testing::TestWithParam<std::string> {};

TEST_P(WindowsTest, EveryByteOfEveryMessageIsItsOwn) {
  Command command({"tools/ferryrun/ferryrun", "--private", "--ferryd", "daemon/ferryd",
                   "--no-label", "-n", GetParam(), "tests/e2e/ranks/windows", kRounds});
  const CommandResult result = command.Wait();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(command.Leftovers(), testing::IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Ranks, WindowsTest, testing::Values("2", "3"));

}  // namespace
}  // namespace ferry::e2e
