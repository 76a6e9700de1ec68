// Programs under ferryrun that do not use Ferry: of MPICH, which meet by PMI-1, and of Open MPI,
// which meet by PMIx; and processes that misuse what ferryrun offers them.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <string>

#include "tests/e2e/command.h"

namespace ferry::e2e {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr char kFakeFerryd[] = "tests/tools/fake_ferryd";
constexpr char kProgram[] = "tests/tools/foreign_mpi";
constexpr char kHydra[] = "/usr/bin/mpiexec.hydra";

Words Job(const Words& flags_and_program) {
  return Joined({"tools/ferryrun/ferryrun", "--private", "--ferryd", kFakeFerryd, "--no-label",
                 "--abi=native"},
                flags_and_program);
}

Words Sums(int ranks) {
  Words lines;
  for (int rank = 0; rank < ranks; ++rank) {
    lines.push_back("rank " + std::to_string(rank) + " of " + std::to_string(ranks) + ": sum " +
                    std::to_string(ranks * (ranks - 1) / 2));
  }
  return lines;
}

// ---- The real libraries ----

struct Family {
  const char* name;
  const char* library;
  const char* package;
  const char* server;
};
void PrintTo(const Family& family, std::ostream* out) { *out << family.name; }

class ForeignMpiTest : public testing::TestWithParam<Family> {
 protected:
  void SetUp() override {
    for (const char* library :
         {GetParam().library,
          GetParam().name == std::string("mpich") ? "libc.so.6" : "libpmix.so.2"}) {
      if (dlopen(library, RTLD_LAZY | RTLD_LOCAL) == nullptr) {
        GTEST_SKIP() << library << " is not installed: apt-get install " << GetParam().package;
      }
    }
  }

  Words Program(const Words& action) const { return Joined({kProgram, GetParam().name}, action); }
  // Where the libraries put files of their own.
  Words Variables() const { return {"HOME=" + files_.path(), "TMPDIR=" + files_.path()}; }

  const TempDirectory files_;
};

INSTANTIATE_TEST_SUITE_P(, ForeignMpiTest,
                         testing::Values(Family{"mpich", "libmpich.so.12", "libmpich12", "PMI-1"},
                                         Family{"openmpi", "libmpi.so.40", "libopenmpi3 libpmix2",
                                                "PMIx"}),
                         [](const auto& info) { return info.param.name; });

TEST_P(ForeignMpiTest, RanksAreOneJob) {
  const CommandResult result = RunCleanly(Job(Joined({"-n", "4"}, Program({"sum"}))), Variables());
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(SortedLines(result.out), Sums(4));
  EXPECT_THAT(result.err,
              AllOf(HasSubstr("ferryrun: the ranks do not use Ferry, but another MPI library, /"),
                    HasSubstr(GetParam().library),
                    HasSubstr("by ferryrun's " + std::string(GetParam().server) + " server"),
                    Not(HasSubstr("each ran alone"))));
}

TEST_P(ForeignMpiTest, OneRankIsAJobAndNothingIsSaid) {
  const CommandResult result = RunCleanly(Job(Program({"sum"})), Variables());
  EXPECT_EQ(result.out, "rank 0 of 1: sum 0\n");
  EXPECT_THAT(result.err, Not(HasSubstr("ferryrun")));
}

TEST_P(ForeignMpiTest, ProgramsThatFollowEachOtherInASlotMeetAgain) {
  const std::string program = kProgram + std::string(" ") + GetParam().name + " sum";
  const CommandResult result =
      RunCleanly(Job({"-n", "2", "bash", "-c", program + " && " + program}), Variables());
  if (GetParam().name == std::string("mpich")) {  // as under Hydra, but for the words
    EXPECT_NE(result.exit_code, 0);
    EXPECT_THAT(result.err, HasSubstr("a program of MPICH had shut the way to ferryrun's PMI-1 "
                                      "server, as they do, for programs that follow it"));
    return;
  }
  EXPECT_EQ(result.exit_code, 0) << result.err;
  Words twice = Joined(Sums(2), Sums(2));
  std::sort(twice.begin(), twice.end());
  EXPECT_EQ(SortedLines(result.out), twice);
}

TEST_P(ForeignMpiTest, AnAbortEndsTheJobWithItsExitCode) {
  const CommandResult result =
      RunCleanly(Job(Joined({"-n", "3"}, Program({"abort", "1"}))), Variables());
  EXPECT_EQ(result.exit_code, 37) << result.err;
  EXPECT_THAT(result.err, HasSubstr("ferryrun: rank 1 aborted the job with exit code 37"));
}

TEST_P(ForeignMpiTest, ARankThatDiesOrLeavesEndsTheJob) {
  CommandResult result = RunCleanly(Job(Joined({"-n", "3"}, Program({"die", "2"}))), Variables());
  EXPECT_EQ(result.exit_code, 128 + SIGKILL) << result.err;
  EXPECT_THAT(result.err, HasSubstr("was killed by SIGKILL"));
  result = RunCleanly(Job(Joined({"-n", "3"}, Program({"leave", "1"}))), Variables());
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(result.err, HasSubstr("exited with code 0 without MPI_Finalize"));
}

// It is a rank of Hydra's, and its own ranks are not.
TEST_P(ForeignMpiTest, AFerryrunUnderAnotherLauncherStartsAJobOfItsOwn) {
  if (!std::filesystem::exists(kHydra)) {
    GTEST_SKIP() << kHydra << " is not installed: apt-get install mpich";
  }
  const std::string out =
      RunWell(Joined({kHydra, "-n", "1"}, Job(Joined({"-n", "2"}, Program({"sum"})))), Variables());
  EXPECT_EQ(SortedLines(out), Sums(2));
}

TEST_P(ForeignMpiTest, AFerryrunOfARankStartsAJobOfItsOwn) {
  const std::string out =
      RunWell(Job(Joined({"-n", "1"}, Job(Joined({"-n", "2"}, Program({"sum"}))))), Variables());
  EXPECT_EQ(SortedLines(out), Sums(2));
}

// ---- Processes that play with the server: "say LINE" and "hear" are commands ----

constexpr char kCommands[] =
    "say() { printf '%s\\n' \"$1\" >&$PMI_FD; }; hear() { read -r -u $PMI_FD line; }; "
    "begin() { say 'cmd=init pmi_version=1 pmi_subversion=1'; hear; }; ";

CommandResult Play(int ranks, const std::string& script) {
  return RunCleanly(Job({"-n", std::to_string(ranks), "bash", "-c", kCommands + script}));
}

TEST(PmiOfRanksTest, AToolLearnsItsRank) {
  const CommandResult result =
      Play(2,
           "begin; echo $PMI_RANK of $PMI_SIZE, $MPI_LOCALRANKID of $MPI_LOCALNRANKS: $line; "
           "say cmd=finalize; hear");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(
      SortedLines(result.out),
      ElementsAre("0 of 2, 0 of 2: cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0",
                  "1 of 2, 1 of 2: cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0"));
  EXPECT_THAT(result.err, HasSubstr("the ranks do not use Ferry"));
}

TEST(PmiOfRanksTest, ARankThatWantsNoneNoticesNothing) {
  const CommandResult result = RunCleanly(Job({"-n", "2", "true"}));
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.err, "");
}

TEST(PmiOfRanksTest, NonsenseEndsTheJob) {
  const CommandResult result =
      Play(3, "begin; if [ $PMI_RANK = 1 ]; then say 'GET / HTTP/1.1'; fi; sleep 1000");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("ferryrun: rank 1 says \"GET / HTTP/1.1\" to its PMI server, "
                                    "which is not PMI-1; ending the job"));
}

TEST(PmiOfRanksTest, OneThatDiesInTheMiddleOfALineEndsTheJob) {
  const CommandResult result =
      Play(2,
           "begin; if [ $PMI_RANK = 1 ]; then printf cmd=put >&$PMI_FD; kill -9 $$; fi; "
           "say cmd=barrier_in; hear");
  EXPECT_EQ(result.exit_code, 128 + SIGKILL);
  EXPECT_THAT(result.err, HasSubstr("was killed by SIGKILL"));
}

TEST(PmiOfRanksTest, OneThatExitsWhileOthersWaitInABarrierEndsTheJob) {
  const CommandResult result =
      Play(2, "begin; if [ $PMI_RANK = 1 ]; then exit 0; fi; say cmd=barrier_in; hear; echo $line");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("exited with code 0 without MPI_Finalize"));
  EXPECT_EQ(result.out, "");
}

TEST(PmiOfRanksTest, OneThatFinalizesWhileOthersWaitInABarrierEndsTheJob) {
  const CommandResult result =
      Play(2,
           "begin; if [ $PMI_RANK = 1 ]; then say cmd=finalize; hear; sleep 1000; fi; "
           "say cmd=barrier_in; hear");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("rank 0 waits in a barrier of PMI-1 for rank 1, which has "
                                    "finalized already; ending the job"));
}

TEST(PmiOfRanksTest, TwoProgramsOfASlotAtATimeAreNamed) {
  const CommandResult result = Play(1, "begin; begin; sleep 1000");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("rank 0 says \"cmd=init\" to its PMI server a second time"));
}

// The variables are those of an outer launcher that started ferryrun as its rank.
TEST(PmiOfRanksTest, WhatAnotherLauncherHasSaidIsNotPassedOn) {
  const Words variables = {"PMI_PORT=host:1", "PMI_ID=5", "PMIX_SERVER_URI51=x", "PMI_RANK=7",
                           "PMI_DEBUG=0"};
  const CommandResult result = RunCleanly(
      Job({"bash", "-c", "echo $PMI_PORT $PMI_ID $PMIX_SERVER_URI51 $PMI_RANK"}), variables);
  EXPECT_EQ(result.out, "0\n") << result.err;
}

// ---- PMIx ----

// Without a program that knocks, nothing of PMIx is there: no thread, and nothing that takes time.
TEST(PmixOfRanksTest, AServerStartsOnlyWhereOneIsAskedFor) {
  Command command(Job({"-n", "2", "bash", "-c", "echo ready $PMIX_RANK; sleep 1000"}));
  ASSERT_TRUE(command.WaitForOutput("ready 0") && command.WaitForOutput("ready 1"));
  const std::string maps = "/proc/" + std::to_string(command.pid()) + "/maps";
  EXPECT_EQ(RunCommand({"/usr/bin/grep", "-c", "libpmix", maps}).out, "0\n");
  command.Signal(SIGTERM);
  command.WaitCleanly();
}

TEST(PmixOfRanksTest, NonsenseAtItsDoorHarmsNoRank) {
  if (dlopen("libpmix.so.2", RTLD_LAZY | RTLD_LOCAL) == nullptr) {
    GTEST_SKIP() << "libpmix.so.2 is not installed: apt-get install libpmix2";
  }
  const CommandResult result =
      RunCleanly(Job({"-n", "2", "bash", "-c",
                      "place=${PMIX_SERVER_URI2##*tcp4://}; "
                      "for i in 1 2 3; do exec 7<>/dev/tcp/${place%:*}/${place#*:}; head -c 100000 "
                      "/dev/urandom >&7; exec 7>&-; done; echo done"}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(SortedLines(result.out), ElementsAre("done", "done")) << result.err;
}

}  // namespace
}  // namespace ferry::e2e
