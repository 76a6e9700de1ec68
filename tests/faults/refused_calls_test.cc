// Systems that refuse system calls: a kernel as old as Linux 4.18, which has none of those that
// came later, and filters of containers that were written before the calls were. Jobs work there,
// and deaths are noticed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <string>
#include <vector>

#include "tests/faults/fault_fixture.h"
#include "tests/support/processes.h"

namespace ferry::faults {
namespace {

using e2e::Command;
using e2e::CommandResult;
using e2e::Joined;
using e2e::RunWell;
using e2e::Words;
using testing::HasSubstr;
using testing::SizeIs;

constexpr char kPointToPoint[] = "tests/e2e/ranks/point_to_point";
constexpr char kAllPromisesKept[] = "point_to_point: ok\n";
constexpr char kTraffic[] = "tests/faults/ranks/traffic";

struct Refusal {
  const char* name;
  Words calls;  // and before them the error: the words of refuse_calls
};

Words Refusing(const Words& calls, const Words& program) {
  return Joined(Joined(Joined({"tests/fixtures/refuse_calls"}, calls), {"--"}), program);
}

// ferryrun, its daemons and the ranks have the system in common.
class RefusedCallsTest : public testing::TestWithParam<Refusal> {
 protected:
  static Words Job(int ranks, int nodes, const Words& program, const Words& flags = {}) {
    return Refusing(GetParam().calls, PrivateJob(ranks, nodes, flags, program));
  }
};

TEST_P(RefusedCallsTest, AJobKeepsThePromises) {
  EXPECT_EQ(RunWell(Refusing(GetParam().calls,
                             e2e::PrivateJob({"-n", "3", "--nodes", "2"}, {kPointToPoint}))),
            kAllPromisesKept);
}

TEST_P(RefusedCallsTest, SigtermEndsAJob) {
  Command job(Job(2, 1, {kTraffic, "wait"}));
  ASSERT_TRUE(UnderWay(&job, 2));
  job.Signal(SIGTERM);
  EXPECT_EQ(job.WaitCleanly().exit_code, 128 + SIGTERM);
}

TEST_P(RefusedCallsTest, AKilledRankIsAnErrorForItsPeers) {
  Command job(Job(3, 1, {kTraffic, "exchange", "1000"}));
  ASSERT_TRUE(UnderWay(&job, 3));
  const std::vector<pid_t> pids = RankPids(job, kTraffic, 3);
  ASSERT_THAT(pids, SizeIs(3));
  kill(pids[1], SIGKILL);
  const CommandResult result = job.WaitCleanly();
  EXPECT_EQ(result.exit_code, kRankKilled) << result.err;
  ExpectErrors(result.out, 2, {kPeerDied});
}

TEST_P(RefusedCallsTest, AKilledDaemonIsAnErrorForItsRanks) {
  Command job(Job(2, 1, {kTraffic, "exchange", "1000"}));
  ASSERT_TRUE(UnderWay(&job, 2));
  kill(DaemonPids(job, 1).front(), SIGKILL);
  const CommandResult result = job.WaitCleanly();
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.err, HasSubstr("was killed by SIGKILL"));
  ExpectErrors(result.out, 2, {kDaemonDied});
}

// A job whose ranks are matched and copied for by a process of their own.
TEST_P(RefusedCallsTest, AWorkerProcessServesAndItsDeathIsNoticed) {
  const Words flags = {"--worker_mode=process"};
  const Words well = e2e::PrivateJob({"-n", "3", flags.front()}, {kPointToPoint});
  EXPECT_EQ(RunWell(Refusing(GetParam().calls, well)), kAllPromisesKept);
  Command job(Job(2, 1, {kTraffic, "exchange", "1000"}, flags));
  ASSERT_TRUE(UnderWay(&job, 2));
  const std::vector<pid_t> workers = tests::WorkersOf(DaemonPids(job, 1).front());
  ASSERT_THAT(workers, SizeIs(1));
  kill(workers.front(), SIGKILL);
  const CommandResult result = job.WaitCleanly();
  EXPECT_NE(result.exit_code, 0);
  ExpectErrors(result.out, 2, {kWorkerDied});
}

INSTANTIATE_TEST_SUITE_P(
    , RefusedCallsTest,
    testing::Values(Refusal{"NothingThatCameAfterLinux418", {"ENOSYS", "after_4.18"}},
                    Refusal{"NoHandlesOfProcesses",
                            {"EPERM", "pidfd_open", "pidfd_send_signal", "pidfd_getfd"}},
                    Refusal{"NoBarriersOfOthers", {"EPERM", "membarrier", "userfaultfd"}},
                    Refusal{"NoMemoryOfOthers",
                            {"EPERM", "process_vm_readv", "process_vm_writev"}}),
    [](const auto& info) { return info.param.name; });

// ---- process_vm calls refused to ranks alone ----

class RefusedCopiesTest : public testing::TestWithParam<Words> {};

TEST_P(RefusedCopiesTest, RanksKeepThePromises) {
  const auto run = [](const Words& placement, const char* program) {
    return RunWell(e2e::PrivateJob(Joined(placement, GetParam()), {program}), {}, 240);
  };
  EXPECT_EQ(run({"-n", "4"}, kPointToPoint), kAllPromisesKept);
  EXPECT_EQ(run({"-n", "4", "--nodes", "2"}, kPointToPoint), kAllPromisesKept);
  EXPECT_EQ(run({"-n", "3", "--worker_mode=process"}, kPointToPoint), kAllPromisesKept);
  for (const char* program : {"tests/e2e/ranks/one_sided", "tests/e2e/ranks/accumulate"}) {
    run({"-n", "3"}, program);
  }
}

INSTANTIATE_TEST_SUITE_P(
    , RefusedCopiesTest,
    testing::Values(Words{"tests/fixtures/refuse_calls", "EPERM", "process_vm_readv",
                          "process_vm_writev", "--"},
                    Words{"/bin/sh", "-c",
                          "test $((FERRY_RANK % 2)) = 0 && exec \"$0\"; exec "
                          "tests/fixtures/refuse_calls ENOSYS process_vm_readv process_vm_writev "
                          "-- \"$0\""}),
    [](const auto& info) { return std::string(info.index == 0 ? "ToAll" : "ToEveryOther"); });

// The daemon's own tests of what it notices: a rank that is killed while a child of it holds its
// connection, workers that end in every way.
TEST(OldKernelTest, TheDaemonNoticesEveryEnd) {
  for (const Words& test : std::vector<Words>{
           {"tests/daemon/attach/attached_rank_test", "--gtest_filter=*AKilledProcess*:*HangUp*"},
           {"tests/daemon/worker/worker_supervisor_test"}}) {
    RunWell(Refusing({"ENOSYS", "after_4.18"}, test));
  }
}

}  // namespace
}  // namespace ferry::faults
