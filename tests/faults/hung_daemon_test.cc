// A daemon that hangs: it lives, and does not move. Its ranks notice, whatever they wait in, and
// say so; ferryrun ends the daemon, and nothing stays behind. No rank takes a daemon for hung
// because it was itself stopped.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/faults/fault_fixture.h"
#include "tests/support/frozen_thread.h"
#include "tests/support/processes.h"

namespace ferry::faults {
namespace {

using e2e::Command;
using e2e::CommandResult;
using e2e::Words;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

constexpr char kWaiting[] = "tests/faults/ranks/waiting";
constexpr char kPairs[] = "tests/faults/ranks/pairs";
constexpr int kMpiOther = 16;  // MPI_ERR_OTHER
// Ranks that stay away are ended after the grace, as is the daemon.
const Words kHurry = {"--peer_timeout_ms=1000", "--grace-ms=500"};

std::string Hangs(pid_t daemon) {
  return "(pid " + std::to_string(daemon) + ") has not moved for ";
}
std::string WasKilled(pid_t daemon) {
  return "(pid " + std::to_string(daemon) +
         ") did not stop as it should: it was killed by SIGKILL, since it took longer than 500 ms";
}

// ---- Every wait

const Words kWaits = {kWaiting, "away", "recv", "test", "barrier", "fence", "receive", "poll"};
const int kRanks = static_cast<int>(kWaits.size()) - 1;
const size_t kWhoWait = static_cast<size_t>(kRanks) - 1;

void AwaitErrors(Command* job) {
  EXPECT_TRUE(e2e::Eventually([&] { return ErrorsIn(job->Output()).size() == kWhoWait; }))
      << job->Output();
}

void ExpectAllHaveNoticed(const std::string& out, pid_t daemon) {
  EXPECT_THAT(ExpectErrors(out, kWhoWait, {kMpiOther, kDaemonDied}), SizeIs(kWhoWait)) << out;
  EXPECT_THAT(out, HasSubstr(Hangs(daemon)));
}

TEST(HungDaemonTest, EndsEveryWaitAndIsEndedByFerryrun) {
  Command job(PrivateJob(kRanks, 1, kHurry, kWaits));
  ASSERT_TRUE(UnderWay(&job, kRanks)) << job.Wait().err;
  const pid_t rank_zero = RankPids(job, kWaiting, kRanks).at(0);
  const pid_t daemon = DaemonPids(job, 1)[0];
  tests::Stop(daemon);
  AwaitErrors(&job);
  kill(rank_zero, SIGKILL);
  const CommandResult result = job.WaitCleanly();
  ExpectAllHaveNoticed(result.out, daemon);
  EXPECT_THAT(result.out, HasSubstr("it is stopped"));
  EXPECT_THAT(result.err, HasSubstr(WasKilled(daemon)));
}

class StuckThreadTest : public testing::TestWithParam<const char*> {};

// Either of the two threads that a rank needs.
TEST_P(StuckThreadTest, EndsEveryWait) {
  Command job(PrivateJob(kRanks, 1, kHurry, kWaits));
  ASSERT_TRUE(UnderWay(&job, kRanks)) << job.Wait().err;
  const pid_t rank_zero = RankPids(job, kWaiting, kRanks).at(0);
  const pid_t daemon = DaemonPids(job, 1)[0];
  {
    const tests::FrozenThread frozen(daemon, "ferry-" + std::string(GetParam()));
    AwaitErrors(&job);
  }
  kill(rank_zero, SIGKILL);
  const CommandResult result = job.WaitCleanly();
  ExpectAllHaveNoticed(result.out, daemon);
  EXPECT_THAT(result.out, HasSubstr("its " + std::string(GetParam()) + " thread"));
}

INSTANTIATE_TEST_SUITE_P(Threads, StuckThreadTest, testing::Values("control", "progress"),
                         [](const auto& what) { return what.param; });

class ShmemWaitTest : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(ShmemWaitTest, EndsByName) {
  const auto& [wait, call] = GetParam();
  Command job(PrivateJob(2, 1, kHurry, {"tests/faults/ranks/waiting_pes", "away", wait}));
  ASSERT_TRUE(UnderWay(&job, 2)) << job.Wait().err;
  const pid_t daemon = DaemonPids(job, 1)[0];
  tests::Stop(daemon);
  const CommandResult result = job.WaitCleanly();  // one PE's failure ends the others
  EXPECT_THAT(result.out, Not(HasSubstr("nothing was wrong")));
  EXPECT_THAT(result.err, AllOf(HasSubstr(std::string("rank 1: ") + call + ": "),
                                HasSubstr(Hangs(daemon)), HasSubstr(WasKilled(daemon))));
}

INSTANTIATE_TEST_SUITE_P(Calls, ShmemWaitTest,
                         testing::Values(std::pair{"until", "shmem_long_wait_until"},
                                         std::pair{"barrier", "shmem_barrier_all"}),
                         [](const auto& what) { return what.param.first; });

// ---- The beginning and the end of a job

TEST(HungDaemonTest, EndsMpiInit) {
  Command job(PrivateJob(2, 1,
                         {"--attach_timeout_ms=1000", "--mpi_warn_after_ms=100", "--grace-ms=500"},
                         {kWaiting, "absent", "away"}));
  ASSERT_TRUE(job.WaitForError("MPI_Init has waited for"));
  const std::vector<pid_t> ranks = RankPids(job, kWaiting, 2);
  ASSERT_THAT(ranks, SizeIs(2));
  const pid_t daemon = DaemonPids(job, 1)[0];
  tests::Stop(daemon);
  ASSERT_TRUE(job.WaitForError("is it stopped?"));
  kill(ranks[0], SIGKILL);
  const CommandResult result = job.WaitCleanly();
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(result.err, HasSubstr(WasKilled(daemon)));
}

TEST(HungDaemonTest, EndsMpiFinalize) {
  Command job(PrivateJob(2, 1, e2e::Joined(kHurry, {"--mpi_warn_after_ms=100"}),
                         {kWaiting, "away", "finalize"}));
  ASSERT_TRUE(job.WaitForError("MPI_Finalize has waited for"));
  const std::vector<pid_t> ranks = RankPids(job, kWaiting, 2);
  ASSERT_THAT(ranks, SizeIs(2));
  const pid_t daemon = DaemonPids(job, 1)[0];
  tests::Stop(daemon);
  ASSERT_TRUE(job.WaitForOutput("rank 1: ends")) << job.Wait().err;
  kill(ranks[0], SIGKILL);
  const CommandResult result = job.WaitCleanly();
  EXPECT_THAT(result.out + result.err, HasSubstr(Hangs(daemon)));
  EXPECT_THAT(result.err, HasSubstr(WasKilled(daemon)));
}

// ---- No false alarm

// For longer than a daemon may be silent: what did not run did not watch.
TEST(HungDaemonTest, StoppedRanksAndJobsRaiseNoAlarm) {
  Command job(PrivateJob(4, 1, {"--peer_timeout_ms=500"}, {kPairs, "8"}));
  ASSERT_TRUE(UnderWay(&job, 4));
  const std::vector<pid_t> ranks = RankPids(job, kPairs, 4);
  ASSERT_THAT(ranks, SizeIs(4));
  const pid_t daemon = DaemonPids(job, 1)[0];
  for (const bool with_daemon : {false, true}) {
    for (const pid_t rank : ranks) {
      tests::Stop(rank);
    }
    if (with_daemon) {
      tests::Stop(daemon);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1200));  // the fault itself
    for (const pid_t rank : ranks) {
      kill(rank, SIGCONT);
    }
    kill(daemon, SIGCONT);
  }
  for (const pid_t rank : {ranks[0], ranks[2]}) {
    kill(rank, SIGUSR1);
  }
  const CommandResult result = job.WaitCleanly();
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  ExpectAllRight(result.out, 4);
  EXPECT_THAT(result.err, IsEmpty());
}

}  // namespace
}  // namespace ferry::faults
