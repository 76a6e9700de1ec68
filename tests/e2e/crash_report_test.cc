// A rank that a fault ends says where it was, and ends as it would without that.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <string>

#include "tests/e2e/command.h"
#include "tests/support/processes.h"

namespace ferry::e2e {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

constexpr char kCrashes[] = "tests/e2e/ranks/crashes";

// No core dumps: they would lie in the way of other tests.
CommandResult EndOf(const Words& flags, const Words& how, const Words& variables = {}) {
  return RunCleanly(Joined({"/bin/sh", "-c", "ulimit -c 0; exec \"$@\"", "sh"},
                           PrivateJob(flags, Joined({kCrashes}, how))),
                    variables);
}

TEST(CrashReportTest, NamesTheFunctionAndItsCallers) {
  const CommandResult result = EndOf({"-n", "2"}, {"null", "1"});
  EXPECT_EQ(result.exit_code, 128 + SIGSEGV);
  EXPECT_THAT(result.err, AllOf(ContainsRegex("libferry: rank 1: SIGSEGV at address 0x0 in "
                                              "touch_nothing \\(crashes\\+0x[0-9a-f]+\\), from .*"
                                              "main \\(crashes\\+0x[0-9a-f]+\\)\n"),
                                HasSubstr("was killed by SIGSEGV")));
}

TEST(CrashReportTest, NamesOfCxxAreReadable) {
  EXPECT_THAT(EndOf({}, {"name"}).err, HasSubstr(" in crashing::WriteTo(int*) (crashes+0x"));
}

TEST(CrashReportTest, RanksThatEndAtOnePlaceAreToldTogether) {
  const CommandResult result = EndOf({"-n", "4", "--nodes", "2", "--keep-going"}, {"null"});
  EXPECT_EQ(result.exit_code, 128 + SIGSEGV);
  const size_t first = result.err.find("libferry: rank ");
  ASSERT_NE(first, result.err.npos);
  EXPECT_EQ(result.err.find("libferry: rank ", first + 1), result.err.npos) << result.err;
  EXPECT_THAT(result.err, ContainsRegex("the same from 3 more ranks \\([0-3, -]+\\): SIGSEGV at "
                                        "address 0x0 in touch_nothing"));
}

struct Way {
  const char* how;
  int signal;
  const char* words;
};
class CrashReportWayTest : public testing::TestWithParam<Way> {};

TEST_P(CrashReportWayTest, IsToldAndChangesNoSignal) {
  const CommandResult result = EndOf({}, {GetParam().how});
  EXPECT_EQ(result.exit_code, 128 + GetParam().signal);
  EXPECT_THAT(result.err, ContainsRegex(GetParam().words));
}

INSTANTIATE_TEST_SUITE_P(
    All, CrashReportWayTest,
    testing::Values(
        Way{"abort", SIGABRT, "rank 0: SIGABRT in give_up \\(crashes.*, from main"},
        Way{"overflow", SIGSEGV, "rank 0: SIGSEGV in go_down \\(crashes.*, from go_down "},
        Way{"jump", SIGSEGV, "rank 0: SIGSEGV at address 0x0 in \\? .no code., from call_nothing "},
        Way{"wild", SIGSEGV, "rank 0: SIGSEGV in \\? .no code., from call_nothing "},
        Way{"stack", SIGSEGV, "rank 0: SIGSEGV at address 0x0 in lose_stack "},
        Way{"asked", SIGSEGV, "rank 0: SIGSEGV in .*from end_itself \\(crashes.*from main "},
        Way{"thread", SIGSEGV, "rank 0: SIGSEGV at address 0x0 in touch_nothing "}));

TEST(CrashReportTest, AHandlerOfTheProgramCounts) {
  for (const char* when : {"own", "later"}) {
    const CommandResult result = EndOf({}, {when});
    EXPECT_EQ(result.exit_code, 7) << when;
    EXPECT_THAT(result.err, AllOf(HasSubstr("own handler\n"), Not(HasSubstr("touch_nothing"))));
  }
}

TEST(CrashReportTest, AChildSaysNothing) {
  const CommandResult result = EndOf({}, {"child"});
  EXPECT_EQ(result.exit_code, SIGSEGV);
  EXPECT_THAT(result.err, Not(HasSubstr("touch_nothing")));
}

// Where the kernel writes cores into the rank's directory.
TEST(CrashReportTest, TheCoreDumpIsAsItWouldBe) {
  const std::string pattern = tests::ReadFile("/proc/sys/kernel/core_pattern");
  if (pattern.find_first_of("/|") != pattern.npos) {
    GTEST_SKIP() << "cores go to " << pattern;
  }
  for (const char* backtrace : {"--backtrace=on", "--backtrace=off"}) {
    const TempDirectory folder;
    const CommandResult result =
        RunCleanly(Joined({"/bin/sh", "-c", "ulimit -c unlimited; exec \"$@\"", "sh"},
                          PrivateJob({backtrace, "-wdir", folder.path()},
                                     {std::filesystem::absolute(kCrashes).string(), "null"})));
    EXPECT_THAT(result.err, HasSubstr("was killed by SIGSEGV (core dumped)")) << backtrace;
    EXPECT_FALSE(std::filesystem::is_empty(folder.path())) << backtrace;
  }
}

TEST(CrashReportTest, IsOffIfTheUserSaysSo) {
  const CommandResult result = EndOf({"--backtrace=off"}, {"null"});
  EXPECT_EQ(result.exit_code, 128 + SIGSEGV);
  EXPECT_THAT(result.err, Not(HasSubstr("touch_nothing")));
}

}  // namespace
}  // namespace ferry::e2e
