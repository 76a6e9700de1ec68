// kill -9 of a rank while all make or free a communicator or a window: each of the others gets an
// error by name, soon; none waits for another one that has left the call with its error.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>
#include <string>
#include <vector>

#include "common/clock.h"
#include "tests/faults/fault_fixture.h"

namespace ferry::faults {
namespace {

using e2e::Command;
using e2e::CommandResult;
using testing::SizeIs;

constexpr char kProgram[] = "tests/mpi/ranks/creation_deaths";
constexpr int kRanks = 5;
constexpr size_t kVictim = 2;
constexpr int kProcAborted = 58;  // MPI_ERR_PROC_ABORTED
constexpr double kPromisedMs = 1000;
constexpr double kAllowed = 10;  // times the promised time

// The parameter names the call.
class CreationFaultTest : public testing::TestWithParam<std::string> {
 protected:
  static void KillARank(int nodes) {
    const e2e::TempDirectory directory;
    const std::string file = directory / "left";
    std::ofstream(file).flush();
    Command job(PrivateJob(kRanks, nodes, {}, {kProgram, GetParam(), file}));
    ASSERT_TRUE(UnderWay(&job, kRanks)) << job.Wait().err;
    const std::vector<pid_t> pids = RankPids(job, kProgram, kRanks);
    ASSERT_THAT(pids, SizeIs(kRanks));
    const uint64_t killed_ns = MonotonicNs();
    kill(pids[kVictim], SIGKILL);
    const CommandResult result = job.WaitCleanly();
    EXPECT_EQ(result.exit_code, kRankKilled) << result.out << result.err;
    const std::vector<RankError> errors = ExpectErrors(result.out, kRanks - 1, {kProcAborted});
    EXPECT_LT(LatestMs(errors, killed_ns), kAllowed * kPromisedMs) << result.err;
  }
};

TEST_P(CreationFaultTest, AKilledRankOfTheNode) { KillARank(1); }

TEST_P(CreationFaultTest, AKilledRankOfAnotherNode) { KillARank(2); }

INSTANTIATE_TEST_SUITE_P(Calls, CreationFaultTest,
                         testing::Values("dup", "split", "free", "graph", "window", "shared",
                                         "inter_dup", "inter_split", "inter_merge", "inter_free"),
                         [](const auto& call) { return call.param; });

}  // namespace
}  // namespace ferry::faults
