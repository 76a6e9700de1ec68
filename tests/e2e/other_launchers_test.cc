// Jobs whose ranks another launcher has started: Open MPI's orterun, or prterun of Open MPI 5,
// which have a PMIx server, and MPICH's Hydra, which speaks PMI-1.
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
using testing::MatchesRegex;

constexpr char kFerryd[] = "daemon/ferryd";
constexpr char kEnds[] = "tests/e2e/ranks/ends";

struct Launcher {
  const char* name;
  const char* program;
  const char* package;
  int signal_code;  // of a job whose rank was ended by signal 0
  // Before "-n RANKS" of the first program, and of each further one.
  Words (*flags)(const std::string& folder);
  Words further_flags;
};
void PrintTo(const Launcher& launcher, std::ostream* out) { *out << launcher.name; }

constexpr char kPrterun[] = "/usr/bin/prterun";

Launcher LauncherOfOpenMpi() {
  if (std::filesystem::exists(kPrterun)) {
    return {"Prterun",
            kPrterun,
            "openmpi-bin",
            128,
            [](const std::string& folder) {
              return Words{"--allow-run-as-root", "--map-by",         ":OVERSUBSCRIBE",
                           "--prtemca",           "prte_tmpdir_base", folder};
            },
            {"--host", "localhost:7"}};
  }
  return {"Orterun",
          "/usr/bin/orterun",
          "openmpi-bin",
          128,
          [](const std::string& folder) {
            return Words{"--allow-run-as-root",
                         "--oversubscribe",
                         "--mca",
                         "orte_tmpdir_base",
                         folder,
                         "--mca",
                         "btl",
                         "self"};
          },
          {"--host", "localhost:7"}};
}

const Launcher kLaunchers[] = {
    LauncherOfOpenMpi(),
    {"Hydra", "/usr/bin/mpiexec.hydra", "mpich", 0, [](const std::string&) { return Words{}; }, {}},
    {"HydraByPort",
     "/usr/bin/mpiexec.hydra",
     "mpich",
     0,
     [](const std::string&) { return Words{"-pmi-port"}; },
     {}}};

class OtherLaunchersTest : public testing::TestWithParam<Launcher> {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(GetParam().program)) {
      GTEST_SKIP() << GetParam().program << " is not installed: apt-get install "
                   << GetParam().package;
    }
  }

  // RANKS of a program, and what follows; the launcher's own files are in a folder of this test.
  Words Job(int ranks, const Words& program) const {
    return Joined(Joined({"/usr/bin/env", "HOME=/tmp", GetParam().program},
                         GetParam().flags(sessions_.path())),
                  Joined({"-n", std::to_string(ranks)}, program));
  }

  const TempDirectory sessions_;
};

INSTANTIATE_TEST_SUITE_P(, OtherLaunchersTest, testing::ValuesIn(kLaunchers),
                         [](const auto& info) { return info.param.name; });

TEST_P(OtherLaunchersTest, RanksFindEachOtherAndADaemonIsStartedForThem) {
  EXPECT_THAT(SortedLines(RunWell(Job(4, {"examples/hello/hello"}))),
              ElementsAre("rank 0 of 4: rank 3 says hello", "rank 1 of 4: rank 0 says hello",
                          "rank 2 of 4: rank 1 says hello", "rank 3 of 4: rank 2 says hello"));
}

TEST_P(OtherLaunchersTest, AnMpiProgramIsOneJob) {
  const Words lines = SortedLines(RunWell(Job(4, {"examples/mpi_hello/mpi_hello"})));
  EXPECT_THAT(lines, ElementsAre(MatchesRegex("rank 0 of 4 on .*: rank 3 says hello"),
                                 MatchesRegex("rank 1 of 4 on .*: rank 0 says hello"),
                                 MatchesRegex("rank 2 of 4 on .*: rank 1 says hello"),
                                 MatchesRegex("rank 3 of 4 on .*: rank 2 says hello")));
}

TEST_P(OtherLaunchersTest, KeepsAllPromises) {
  EXPECT_EQ(RunWell(Job(3, {"tests/e2e/ranks/point_to_point"})), "point_to_point: ok\n");
}

// MPI programs learn which of the job's programs they are, and for how many there is room.
TEST_P(OtherLaunchersTest, ProgramsOfAJobHaveNumbers) {
  EXPECT_THAT(
      RunWell(
          Job(1, Joined(Joined({"tests/mpi/ranks/start", ":", "-n", "2"}, GetParam().further_flags),
                        {"tests/mpi/ranks/start"}))),
      AllOf(HasSubstr("0: app 0 of 1 ranks, universe"), HasSubstr("1: app 1 of 2 ranks, universe"),
            HasSubstr("2: app 1 of 2 ranks, universe")));
}

TEST_P(OtherLaunchersTest, OneRankAloneIsAJob) {
  EXPECT_EQ(RunWell(Job(1, {kEnds})), "rank 0 of 1\n");
}

TEST_P(OtherLaunchersTest, UsesTheDaemonThatRuns) {
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

// Rank 0 is the leader, whose end is its daemon's too.
TEST_P(OtherLaunchersTest, AnEndHasItsExitCodeAndLeavesNothing) {
  const int killed = GetParam().signal_code + SIGKILL;
  for (const End& end : {End{"abort", "1", 37}, End{"abort", "0", 37}, End{"kill", "1", killed},
                         End{"kill", "0", killed}}) {
    Words program = {kEnds, end.how, end.who};
    if (end.exit_code == killed) {  // several end at once, and any of them could be reported
      program.push_back("stay");
    }
    Command command(Job(3, program));
    EXPECT_EQ(command.WaitCleanly().exit_code, end.exit_code) << end.how << " " << end.who;
  }
}

TEST_P(OtherLaunchersTest, ARankThatExitsEndsTheJobAndTheDaemon) {
  Command command(Job(3, {kEnds, "exit", "2"}));
  EXPECT_NE(command.WaitCleanly().exit_code, 0);
}

TEST_P(OtherLaunchersTest, AFerryrunUnderItStartsAJobOfItsOwn) {
  EXPECT_THAT(SortedLines(RunWell(Job(1, {"tools/ferryrun/ferryrun", "--private", "--ferryd",
                                          kFerryd, "-n", "2", "--no-label", kEnds}))),
              ElementsAre("rank 0 of 2", "rank 1 of 2"));
}

TEST_P(OtherLaunchersTest, SaysWhyNoDaemonCouldBeStarted) {
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

// As srun without --mpi starts ranks: each would be a job of one.
TEST(NoServerTest, AnMpiProgramThatIsOneOfSeveralSaysWhatToType) {
  const CommandResult result =
      RunCommand({"tests/mpi/ranks/start"}, {"SLURM_STEP_NUM_TASKS=4", "SLURM_PROCID=0"});
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(result.err, AllOf(HasSubstr("srun started 4 processes (SLURM_STEP_NUM_TASKS)"),
                                HasSubstr("srun --mpi=pmix or srun --mpi=pmi2")));
}

// As HPE Cray's launchers start ranks, where their library is not found: Slurm's may be, which
// takes this process for a job of one.
TEST(NoServerTest, RanksThatOnlyALibraryOfPmi2CouldServeAreNoJobsOfOne) {
  const CommandResult result =
      RunCommand({"tests/mpi/ranks/start"}, {"PMI_SIZE=6", "PMI_RANK=2", "PMI_CONTROL_PORT=1"});
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(result.err,
              testing::AnyOf(AllOf(HasSubstr("a launcher with PMI started 6 processes (PMI_SIZE)"),
                                   HasSubstr("libpmi2.so")),
                             AllOf(HasSubstr("libpmi2 says that this process is rank "),
                                   HasSubstr("the launcher's variables say rank 2 of 6"))));
}

}  // namespace
}  // namespace ferry::e2e
