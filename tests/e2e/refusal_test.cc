// What a rank that cannot be served is told.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/e2e/command.h"

namespace ferry::e2e {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

constexpr char kFerryrun[] = "tools/ferryrun/ferryrun";
constexpr char kFerryd[] = "daemon/ferryd";
constexpr char kRefused[] = "tests/e2e/ranks/refused";

std::vector<std::string> InJob(const std::string& run_directory) {
  return {"FERRY_RUN_DIRECTORY=" + run_directory, "FERRY_JOB_ID=job", "FERRY_RANK=0",
          "FERRY_SIZE=1"};
}

// The output of one rank whose environment the job's launcher made, and `change` changed.
std::string InitWith(const std::string& change) {
  return RunCommand({kFerryrun, "--private", "--ferryd", kFerryd, "--no-label", "/usr/bin/env",
                     change, kRefused})
      .out;
}

TEST(RefusalTest, OutsideAJob) {
  EXPECT_THAT(RunCommand({kRefused}).out, HasSubstr("start it with ferryrun -n N PROGRAM"));
}

TEST(RefusalTest, WithoutADaemon) {
  EXPECT_THAT(RunCommand({kRefused}, InJob("/tmp/no-such-ferry")).out,
              AllOf(StartsWith("init: 5 "),
                    HasSubstr("no ferryd listens on /tmp/no-such-ferry/attach.sock. Start the "
                              "program with ferryrun, or start ferryd")));
}

TEST(RefusalTest, WithTheSocketOfADeadDaemon) {
  std::string directory = "/tmp/ferry-refusal-XXXXXX";
  ASSERT_NE(mkdtemp(directory.data()), nullptr);
  {
    Command daemon({kFerryd, "--run_directory=" + directory});
    ASSERT_TRUE(Eventually([&] { return fs::exists(directory + "/ferryd.json"); }));
    daemon.Signal(SIGKILL);
    daemon.Wait();
  }
  EXPECT_THAT(RunCommand({kRefused}, InJob(directory)).out,
              HasSubstr("/attach.sock (the socket is left over from one that died)"));
  fs::remove_all(directory);
}

TEST(RefusalTest, WithAnotherSecretSizeOrRank) {
  EXPECT_THAT(InitWith("FERRY_JOB_SECRET=wrong"),
              AllOf(StartsWith("init: 7 "), HasSubstr("wrong secret for job "),
                    HasSubstr("check FERRY_JOB_SECRET")));
  EXPECT_THAT(InitWith("FERRY_JOB_ID=nojob"), HasSubstr("there is no job nojob on this daemon"));
  EXPECT_THAT(InitWith("FERRY_SIZE=2"), HasSubstr("has 1 ranks, not 2: check FERRY_SIZE"));
}

TEST(RefusalTest, AForkOfARank) {
  const CommandResult result =
      RunCommand({kFerryrun, "--private", "--ferryd", kFerryd, "--no-label", kRefused, "fork"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out,
              AllOf(StartsWith("init: 0 \n"), HasSubstr("finalize: 0 \n"), HasSubstr("fork: 28 "),
                    HasSubstr("this process is a fork of one that had called ferry_init; "
                              "start ranks with ferryrun, or call exec first\n")));
}

}  // namespace
}  // namespace ferry::e2e
