// Jobs whose ranks a PMIx server has started: Open MPI's orterun.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "tests/e2e/command.h"

namespace ferry::e2e {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kOrterun[] = "/usr/bin/orterun";
constexpr char kFerryd[] = "daemon/ferryd";
constexpr char kEnds[] = "tests/e2e/ranks/ends";

class PmixTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(kOrterun)) {
      GTEST_SKIP() << "orterun is not installed: apt-get install openmpi-bin";
    }
  }

  // orterun -n RANKS and the other arguments; its own files are in a folder of this test.
  Words Job(int ranks, const Words& flags_and_program) const {
    return Joined(
        {"/usr/bin/env", "HOME=/tmp", kOrterun, "-n", std::to_string(ranks), "--allow-run-as-root",
         "--oversubscribe", "--mca", "orte_tmpdir_base", sessions_.path(), "--mca", "btl", "self"},
        flags_and_program);
  }

  const TempDirectory sessions_;
};

TEST_F(PmixTest, RanksFindEachOtherAndADaemonIsStartedForThem) {
  EXPECT_THAT(SortedLines(RunWell(Job(4, {"examples/hello/hello"}))),
              ElementsAre("rank 0 of 4: rank 3 says hello", "rank 1 of 4: rank 0 says hello",
                          "rank 2 of 4: rank 1 says hello", "rank 3 of 4: rank 2 says hello"));
}

TEST_F(PmixTest, KeepsAllPromises) {
  EXPECT_EQ(RunWell(Job(3, {"tests/e2e/ranks/point_to_point"})), "point_to_point: ok\n");
}

// MPI programs learn which of the job's programs they are, and for how many there is room.
TEST_F(PmixTest, ProgramsOfAJobHaveNumbers) {
  EXPECT_THAT(
      RunWell(Job(1, {"tests/mpi/ranks/start", ":", "-n", "2", "--host", "localhost:7",
                      "tests/mpi/ranks/start"})),
      AllOf(HasSubstr("0: app 0 of 1 ranks, universe"), HasSubstr("1: app 1 of 2 ranks, universe"),
            HasSubstr("2: app 1 of 2 ranks, universe")));
}

TEST_F(PmixTest, OneRankAloneIsAJob) { EXPECT_EQ(RunWell(Job(1, {kEnds})), "rank 0 of 1\n"); }

TEST_F(PmixTest, UsesTheDaemonThatRuns) {
  const TempDirectory directory;
  const auto served = StartDaemon({kFerryd}, directory / "run");
  RunWell(Job(2, {"examples/hello/hello"}), {"FERRY_RUN_DIRECTORY=" + directory / "run"});
  served->Signal(SIGTERM);
  const CommandResult daemon = served->Wait();
  EXPECT_THAT(daemon.out + daemon.err,
              HasSubstr("created by uid " + std::to_string(geteuid()) + ", 2 ranks on 1 node"));
}

struct End {
  const char* how;
  const char* who;
  int exit_code;
};

class PmixEndTest : public PmixTest, public testing::WithParamInterface<End> {};

TEST_P(PmixEndTest, HasItsExitCodeAndLeavesNothing) {
  Words program = {kEnds, GetParam().how, GetParam().who};
  if (GetParam().exit_code > 128) {  // several end at once, and the server could report any of them
    program.push_back("stay");
  }
  Command command(Job(3, program));
  EXPECT_EQ(command.WaitCleanly().exit_code, GetParam().exit_code);
}

// Rank 0 is the leader, whose end is its daemon's too.
INSTANTIATE_TEST_SUITE_P(All, PmixEndTest,
                         testing::Values(End{"abort", "1", 37}, End{"abort", "0", 37},
                                         End{"kill", "1", 128 + SIGKILL},
                                         End{"kill", "0", 128 + SIGKILL}));

TEST_F(PmixTest, ARankThatExitsEndsTheJobAndTheDaemon) {
  Command command(Job(3, {kEnds, "exit", "2"}));
  EXPECT_NE(command.WaitCleanly().exit_code, 0);
}

TEST_F(PmixTest, AFerryrunUnderPmixStartsAJobOfItsOwn) {
  EXPECT_THAT(SortedLines(RunWell(Job(1, {"tools/ferryrun/ferryrun", "--private", "--ferryd",
                                          kFerryd, "-n", "2", "--no-label", kEnds}))),
              ElementsAre("rank 0 of 2", "rank 1 of 2"));
}

TEST_F(PmixTest, SaysWhyNoDaemonCouldBeStarted) {
  const CommandResult result = RunCleanly(Job(2, {kEnds}), {"FERRY_PROVIDER=nosuch"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, AllOf(HasSubstr("the node of rank 0: no ferryd serves this "
                                          "node, and none could be started for this job: "),
                                HasSubstr("nosuch")));
}

TEST(PmixAbsentTest, AServerThatIsNotThereIsNamed) {
  const CommandResult result = RunCommand({kEnds}, {"PMIX_NAMESPACE=none", "PMIX_RANK=0"});
  EXPECT_EQ(result.exit_code, 1);
  // The message says so where libpmix is not installed.
  EXPECT_THAT(result.err, testing::AnyOf(HasSubstr("PMIx cannot reach the server"),
                                         HasSubstr("its library cannot be opened")));
}

}  // namespace
}  // namespace ferry::e2e
