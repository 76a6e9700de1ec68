// How OpenSHMEM programs on two nodes begin and end, well or not: as inside one, and what may
// happen to a node.
#include <gmock/gmock.h>

#include "tests/shmem/e2e/shmem_job.h"

namespace ferry::shmem_tests {
namespace {

using testing::HasSubstr;

TEST(NodesTest, BeginsAgainWithAnotherHeap) { ExpectAllOk({.nodes = 2}, {"life", "again"}); }
TEST(NodesTest, PairsOfInitAndFinalizeNest) { ExpectAllOk({.nodes = 2}, {"life", "nested"}); }
TEST(NodesTest, LeavingMainIsAnEnd) { ExpectAllOk({.nodes = 2}, {"life", "leaves_main"}); }
TEST(NodesTest, MpiInOneProgram) { ExpectAllOk({.nodes = 2}, {"both", "ms"}); }

TEST(NodesTest, GlobalExitEndsAllWithItsCode) {
  EXPECT_EQ(RunJob({.pes = 3, .nodes = 2}, {"life", "global_exit", "42"}).exit_code, 42);
}

TEST(NodesTest, GlobalExitWithZeroIsASuccess) {
  EXPECT_EQ(RunJob({.pes = 3, .nodes = 2}, {"life", "global_exit", "0"}).exit_code, 0);
}

TEST(NodesTest, APeThatHasFinalizedIsNotWaitedFor) {
  const e2e::CommandResult result = RunJob({.nodes = 2}, {"life", "leaves_early"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("shmem_barrier_all: PE 0 does not come: it has called "
                                    "shmem_finalize"));
}

TEST(NodesTest, APeMayLeaveAfterItsPart) {
  ExpectAllOk({.pes = 3, .nodes = 2}, {"life", "leaves_after_its_part"});
}

TEST(NodesTest, OtherArgumentsAreNamed) {
  const e2e::CommandResult result = RunJob({.nodes = 2}, {"life", "misuse", "differ"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("all PEs must make the same calls for symmetric memory"));
}

TEST(NodesTest, OtherSizesAreNoticed) {
  const e2e::CommandResult result = RunJob({.nodes = 2}, {"life", "misuse", "sizes"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("PE 0 has sent 4 bytes where this one expects 8"));
}

// ---- A PE that dies -----------------------------------------------------------------------------

struct Wait {
  const char* what;
  const char* sentence;
};
void PrintTo(const Wait& wait, std::ostream* out) { *out << wait.what; }

class RemoteDeathTest : public testing::TestWithParam<Wait> {
 protected:
  // The PEs 1 and 2 wait, one of them on the node of PE 0, which dies.
  static void DieInJob(const std::vector<std::string>& variables) {
    const e2e::CommandResult result =
        RunJob({.pes = 3, .nodes = 2, .flags = {"--keep-going"}, .variables = variables},
               {"life", "dies_in", GetParam().what});
    EXPECT_NE(result.exit_code, 0);
    EXPECT_THAT(result.err, HasSubstr(GetParam().sentence));
  }
};

TEST_P(RemoteDeathTest, EndsWhatWaitsForIt) { DieInJob({}); }

TEST_P(RemoteDeathTest, EndsWhatWaitsForItByADirectLink) {
  DieInJob({"FERRY_DIRECT_LINKS=always"});
}

INSTANTIATE_TEST_SUITE_P(
    , RemoteDeathTest,
    testing::Values(Wait{"wait", "shmem_long_wait_until: PE 0 has died"},
                    Wait{"barrier", "shmem_barrier_all: PE 0 has died"},
                    Wait{"reduce", "shmem_long_sum_reduce: PE 0 has died"},
                    Wait{"malloc", "shmem_malloc: PE 0 has died"}, Wait{"quiet", ": PE 0 has died"},
                    Wait{"get", "shmem_long_g: PE 0 has died"},
                    Wait{"fetch", "shmem_long_atomic_fetch_inc: PE 0 has died"},
                    Wait{"far_lock", "PE 0 has died"}),
    [](const auto& info) { return std::string(info.param.what); });

TEST(DeadRemotePeTest, DoesNotHoldUpFinalize) {
  const e2e::CommandResult result =
      RunJob({.pes = 3, .nodes = 2, .flags = {"--keep-going"}}, {"life", "dies_in", "finalize"});
  EXPECT_THAT(e2e::SortedLines(result.out), testing::ElementsAre("PE 1: ok", "PE 2: ok"))
      << result.err;
}

TEST(DeadRemotePeTest, PassesALockOn) {
  const e2e::CommandResult result =
      RunJob({.pes = 3, .nodes = 2, .flags = {"--keep-going"}}, {"life", "dies_in", "lock"});
  EXPECT_THAT(e2e::SortedLines(result.out),
              testing::ElementsAre("PE 0: has the lock", "PE 1: has the lock"))
      << result.err;
  EXPECT_THAT(result.err, HasSubstr("shmem_set_lock: PE 2 has died, which had the lock"));
}

TEST(LostDaemonTest, EndsTheJobByName) { ExpectALostDaemonEnds({"life", "loses_daemon"}); }

}  // namespace
}  // namespace ferry::shmem_tests
