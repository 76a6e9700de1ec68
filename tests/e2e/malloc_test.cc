// ferryrun --malloc: what malloc hands out is read by the ranks of the node without the kernel.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>

#include "tests/e2e/command.h"

namespace ferry::e2e {
namespace {

using testing::HasSubstr;

constexpr char kProgram[] = "tests/e2e/ranks/malloced";

TEST(MallocTest, BlocksAreCopiedOnceWithoutTheKernel) {
  const CommandResult result = RunCleanly(PrivateJob({"-n", "2", "--malloc"}, {kProgram}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "all were copied once\n");
  EXPECT_EQ(result.err, "");
}

// Which maps the heap's file while it grows.
TEST(MallocTest, AndWithAWorkerProcess) {
  const CommandResult result =
      RunCommand(PrivateJob({"-n", "2", "--malloc", "--worker_mode=process", "--worker_program",
                             std::filesystem::absolute("daemon/ferry-worker").string()},
                            {kProgram}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "all were copied once\n");
  EXPECT_EQ(result.err, "");
}

// Else the tests above prove nothing.
TEST(MallocTest, BlocksOfTheSystemsMallocAreNot) {
  const CommandResult result = RunCommand(PrivateJob({"-n", "2"}, {kProgram}));
  EXPECT_EQ(result.exit_code, 128 + SIGSYS) << result.err;
}

TEST(MallocTest, BetweenNodesMessagesGoAsEver) {
  const CommandResult result =
      RunCommand(PrivateJob({"-n", "2", "--nodes", "2", "--malloc=ferry"}, {kProgram, "apart"}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
}

TEST(MallocTest, WhereTheFileMayNotGrowMessagesGoAsEver) {
  const CommandResult result = RunCommand(PrivateJob(
      {"-n", "2", "--malloc", "--request_limit=1000", "--unexpected_limit=1000"},
      {"bash", "-c", "ulimit -f 3000; exec tests/e2e/ranks/malloced apart with_the_kernel"}));
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_THAT(result.err, HasSubstr("ulimit -f"));
}

TEST(MallocTest, WhereTheDaemonRefusesItMessagesGoAsEver) {
  const CommandResult result =
      RunCommand(PrivateJob({"-n", "2", "--malloc", "--quota_pinned_bytes=200000000"},
                            {"tests/e2e/ranks/point_to_point"}));
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_THAT(result.err, HasSubstr("malloc's memory stays private"));
}

TEST(MallocTest, KeepsWhatTheUserPreloads) {
  const CommandResult result =
      RunCommand(PrivateJob({"-n", "1", "--malloc"}, {"bash", "-c", "echo $LD_PRELOAD"}),
                 {"LD_PRELOAD=libm.so.6"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, testing::MatchesRegex("libm.so.6:/.*/libferry_malloc.so\n"));
}

TEST(MallocTest, IsForTheProgramsThatAskForIt) {
  const CommandResult result =
      RunCommand(PrivateJob({"-n", "1", "-env", "FERRY_MALLOC", "ferry"},
                            {"bash", "-c", "echo first ${LD_PRELOAD##*/}", ":", "-n", "1", "bash",
                             "-c", "echo second ${LD_PRELOAD:-none}"}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(SortedLines(result.out),
              testing::ElementsAre("first libferry_malloc.so", "second none"));
}

// As ferryrun would, and with the loader of this system.
TEST(MallocTest, TheDoctorFindsItAndSaysWhatIsInItsWay) {
  const Words doctor = {"tools/ferryctl/ferryctl", "doctor"};
  EXPECT_THAT(RunCommand(doctor).out,
              testing::ContainsRegex("\nok       malloc: /[^ ]*/libferry_malloc.so: for ferryrun"));
  const CommandResult limited =
      RunCommand({"/bin/bash", "-c", "ulimit -f 3000; exec tools/ferryctl/ferryctl doctor"});
  EXPECT_THAT(limited.out,
              HasSubstr("warning  malloc: files may have 2 MiB: malloc's memory stays private"))
      << "signal " << limited.signal << ": " << limited.err;
}

TEST(MallocTest, SaysWhatTheOptionTakes) {
  const CommandResult result = RunCommand(PrivateJob({"-n", "1", "--malloc=mine"}, {"/bin/true"}));
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(result.err, HasSubstr("system"));
}

}  // namespace
}  // namespace ferry::e2e
