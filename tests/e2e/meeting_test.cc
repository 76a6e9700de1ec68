// Ranks wait for one another at the start of a job and at its end for as long as that takes, and
// say for whom; and no rank waits for one that has ended.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <tuple>

#include "tests/e2e/command.h"
#include "tests/support/processes.h"

namespace ferry::e2e {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const Words kSoonTold = {"--mpi_warn_after_ms=500"};
// Longer than the ranks of a job once waited for each other (attach_timeout_ms, 5 s), and longer
// than a daemon may be silent in a call in which they wait (half as long again).
constexpr auto kVeryLate = std::chrono::seconds(8);

struct FrontEnd {
  const char* name;
  const char* start;
  const char* end;
};
constexpr FrontEnd kFerry = {"ferry", "ferry_init", "ferry_finalize"};
constexpr FrontEnd kMpi = {"mpi", "MPI_Init", "MPI_Finalize"};
constexpr FrontEnd kShmem = {"shmem", "shmem_init", "shmem_finalize"};

class MeetingTest : public testing::TestWithParam<std::tuple<FrontEnd, const char*>> {
 protected:
  static const FrontEnd& front_end() { return std::get<0>(GetParam()); }
  static std::string Program() {
    return std::string("tests/e2e/ranks/meeting_") + front_end().name;
  }
  // Three ranks, of which the last one may be on a node of its own.
  static Words Job(const Words& flags, const Words& arguments) {
    return PrivateJob(Joined(Joined({"-n", "3", "--nodes", std::get<1>(GetParam())}, flags),
                             Joined({Program()}, arguments)));
  }

  // The rank that is late waits until the test opens this.
  std::string MakeFifo() {
    const std::string path = directory_ / "fifo";
    EXPECT_EQ(mkfifo(path.c_str(), 0600), 0);
    return path;
  }
  // Blocks until the rank waits.
  static void Open(const std::string& fifo) { close(open(fifo.c_str(), O_WRONLY | O_CLOEXEC)); }
  // The pid of a rank, once it runs; 0: there is none.
  static pid_t PidOf(Command* job, int rank) {
    const std::string name = "rank " + std::to_string(rank) + ": pid ";
    const bool runs = job->WaitForOutput(name);
    EXPECT_TRUE(runs);
    const std::string output = job->Output();
    return runs ? std::atoi(output.c_str() + output.find(name) + name.size()) : 0;
  }
  static void ExpectAllMet(Command* job) {
    const CommandResult result = job->WaitCleanly();
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.out, AllOf(HasSubstr("rank 0: met\n"), HasSubstr("rank 1: met\n"),
                                  HasSubstr("rank 2: met\n")))
        << result.err;
  }

  const TempDirectory directory_;
};

TEST_P(MeetingTest, ARankThatStartsLateIsWaitedForAndNamed) {
  const std::string fifo = MakeFifo();
  Command job(Job(kSoonTold, {"start", "2", fifo}));
  EXPECT_TRUE(job.WaitForError(std::string(front_end().start) + " has waited for "));
  EXPECT_TRUE(job.WaitForError(" for all ranks of the job to call it; missing: rank 2 ("));
  Open(fifo);
  ExpectAllMet(&job);
}

TEST_P(MeetingTest, ARankThatEndsLateIsWaitedForAndNamed) {
  const std::string fifo = MakeFifo();
  Command job(Job(kSoonTold, {"end", "1", fifo}));
  if (std::string(front_end().name) == kShmem.name) {
    EXPECT_TRUE(job.WaitForError("shmem_finalize: waiting for PE 1 to call it, too"));
  } else {
    EXPECT_TRUE(job.WaitForError(std::string(front_end().end) + " has waited for "));
    EXPECT_TRUE(
        job.WaitForError(": rank 2 waits for rank 1, which is outside Ferry, asleep in a "
                         "call of its own"));
  }
  Open(fifo);
  ExpectAllMet(&job);
}

TEST_P(MeetingTest, ARankThatIsKilledBeforeItStartsEndsTheOthers) {
  Command job(Job({}, {"start", "2", MakeFifo()}));
  const pid_t late = PidOf(&job, 2);
  ASSERT_GT(late, 0);
  kill(late, SIGKILL);
  const CommandResult result = job.WaitCleanly();
  EXPECT_EQ(result.exit_code, 128 + SIGKILL) << result.err;
  EXPECT_THAT(result.err, HasSubstr(") was killed by SIGKILL"));
}

// Only the daemons end the others then.
TEST_P(MeetingTest, SoItDoesWhereOthersAreToGoOn) {
  Command job(Job({"--keep-going"}, {"start", "2", MakeFifo()}));
  const pid_t late = PidOf(&job, 2);
  ASSERT_GT(late, 0);
  kill(late, SIGKILL);
  const CommandResult result = job.WaitCleanly();
  EXPECT_EQ(result.exit_code, 128 + SIGKILL) << result.err;
  EXPECT_THAT(result.err,
              AllOf(HasSubstr("rank 2 of job "),
                    HasSubstr(" was killed by SIGKILL without " + std::string(front_end().start) +
                              ", in which other ranks wait for it")));
}

TEST_P(MeetingTest, AProgramThatEndsWithoutStartingEndsTheOthers) {
  const CommandResult result =
      RunCleanly(PrivateJob({"-n", "2", "--nodes", std::get<1>(GetParam())},
                            {Program(), "start", "-", "-", ":", "-n", "1", "true"}));
  EXPECT_EQ(result.exit_code, 1) << result.err;
  EXPECT_THAT(result.err,
              AllOf(HasSubstr("ferryrun: rank 2 (pid "),
                    HasSubstr(") exited with code 0 without " + std::string(front_end().start) +
                              ", in which other ranks wait for it")));
}

// Such a program is no mistake where no rank waits for it.
TEST_P(MeetingTest, ProgramsThatNeverStartAreTheirOwnAffair) {
  const CommandResult result = RunCleanly(
      PrivateJob({"-n", "3", "--nodes", std::get<1>(GetParam())}, {"sh", "-c", "exit 0"}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
}

TEST_P(MeetingTest, TheRankThatEndedFirstIsBlamed) {
  for (const int code : {1, 3, 0}) {
    for (int run = 0; run < 4; ++run) {
      const CommandResult result =
          RunCleanly(Job({}, {"exit", std::to_string(run % 3), std::to_string(code)}));
      EXPECT_EQ(result.exit_code, code == 0 ? 1 : code) << result.err;
      EXPECT_THAT(result.err,
                  AllOf(HasSubstr("ferryrun: rank " + std::to_string(run % 3) + " (pid "),
                        HasSubstr(") exited with code " + std::to_string(code) + " without " +
                                  front_end().end),
                        Not(HasSubstr("aborted the job"))));
    }
  }
}

TEST_P(MeetingTest, AnExitCodeAfterTheEndCountsAsItIs) {
  const CommandResult result = RunCleanly(Job({}, {"after", "1", "5"}));
  EXPECT_EQ(result.exit_code, 5) << result.err;
  EXPECT_THAT(result.err, AllOf(HasSubstr(") exited with code 5"), Not(HasSubstr(" without "))));
}

std::string NameOf(const testing::TestParamInfo<MeetingTest::ParamType>& info) {
  return std::string(std::get<0>(info.param).name) + std::get<1>(info.param) + "Nodes";
}

// One that has yet to start, and one that waits for it in a call to its daemon: both are stopped.
using LongMeetingTest = MeetingTest;
TEST_P(LongMeetingTest, ThereIsNoLimit) {
  const std::string fifo = MakeFifo();
  Command job(Job(kSoonTold, {"start", "2", fifo}));
  const pid_t waiting = PidOf(&job, 1);
  const pid_t late = PidOf(&job, 2);
  ASSERT_GT(waiting, 0);
  ASSERT_GT(late, 0);
  tests::Stop(late);
  ASSERT_TRUE(job.WaitForError("missing: rank 2 ("));  // the other one has come
  tests::Stop(waiting);
  std::this_thread::sleep_for(kVeryLate);  // the fault itself
  kill(late, SIGCONT);
  Open(fifo);
  kill(waiting, SIGCONT);
  ExpectAllMet(&job);
}

INSTANTIATE_TEST_SUITE_P(Mpi, LongMeetingTest,
                         testing::Combine(testing::Values(kMpi), testing::Values("2")), NameOf);

INSTANTIATE_TEST_SUITE_P(FrontEnds, MeetingTest,
                         testing::Combine(testing::Values(kFerry, kMpi, kShmem),
                                          testing::Values("1", "2")),
                         NameOf);

}  // namespace
}  // namespace ferry::e2e
