// How OpenSHMEM programs begin and end, well or not: exit codes, sentences, and that no PE waits
// for ever.
#include <gmock/gmock.h>

#include <tuple>

#include "tests/shmem/e2e/shmem_job.h"

namespace ferry::shmem_tests {
namespace {

using testing::HasSubstr;

TEST(LifeTest, BeginsAgainWithAnotherHeap) { ExpectAllOk({}, {"life", "again"}); }
TEST(LifeTest, TheLastToFinalizeWakesTheOthers) { ExpectAllOk({.pes = 4}, {"life", "late"}); }
TEST(LifeTest, PairsOfInitAndFinalizeNest) { ExpectAllOk({}, {"life", "nested"}); }
TEST(LifeTest, AForkedChildEndsWithoutHarm) { ExpectAllOk({}, {"life", "forks"}); }
TEST(LifeTest, LeavingMainIsAnEnd) { ExpectAllOk({}, {"life", "leaves_main"}); }

TEST(LifeTest, GlobalExitEndsAllWithItsCode) {
  EXPECT_EQ(RunJob({.pes = 3}, {"life", "global_exit", "42"}).exit_code, 42);
}

// No PE has failed then, although all but one are ended from outside.
TEST(LifeTest, GlobalExitWithZeroIsASuccess) {
  for (const std::vector<std::string>& flags : {std::vector<std::string>{}, {"--keep-going"}}) {
    const e2e::CommandResult result =
        RunJob({.pes = 3, .flags = flags}, {"life", "global_exit", "0"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.err, HasSubstr("rank 2 ended the job with exit code 0"));
  }
}

TEST(LifeTest, APeThatExitsWithAFailureEndsTheOthersWaits) {
  const e2e::CommandResult result = RunJob({.flags = {"--keep-going"}}, {"life", "exits"});
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(result.err, HasSubstr("shmem_barrier_all: PE 0 has died"));
}

TEST(LifeTest, APeThatHasFinalizedIsNotWaitedFor) {
  const e2e::CommandResult result = RunJob({}, {"life", "leaves_early"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("shmem_barrier_all: PE 0 does not come: it has called "
                                    "shmem_finalize"));
}

// In a node, and between nodes: a PE is not told while it only puts and gets.
class DeathsTest : public testing::TestWithParam<std::tuple<int, const char*, const char*>> {};

TEST_P(DeathsTest, OrderingCallsSayThatAPeHasDied) {
  const auto& [nodes, operation, order] = GetParam();
  const e2e::CommandResult result =
      RunJob({.nodes = nodes, .flags = {"--keep-going"}}, {"deaths", operation, order});
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(result.err, HasSubstr("PE 1 has died"));
}

INSTANTIATE_TEST_SUITE_P(
    InANode, DeathsTest,
    testing::Combine(testing::Values(1), testing::Values("put", "get", "atomic"),
                     testing::Values("quiet", "fence", "pe_quiet", "ctx_quiet")),
    [](const auto& info) {
      return std::string(std::get<1>(info.param)) + "_" + std::get<2>(info.param);
    });
INSTANTIATE_TEST_SUITE_P(BetweenNodes, DeathsTest,
                         testing::Combine(testing::Values(2),
                                          testing::Values("put", "get", "atomic"),
                                          testing::Values("quiet")),
                         [](const auto& info) { return std::string(std::get<1>(info.param)); });

TEST(LifeTest, AnExhaustedHeapSaysSoAndReturnsNull) {
  const JobSettings settings{.variables = {"SHMEM_SYMMETRIC_SIZE=1m"}};
  ExpectAllOk(settings, {"life", "exhausted"});
  const std::string said = RunJob(settings, {"life", "exhausted"}).err;
  EXPECT_THAT(said,
              HasSubstr("shmem_malloc: 524288 bytes asked for, 528384 of the symmetric heap's "
                        "1048576 are in use, and the largest free piece has 520192"));
  EXPECT_THAT(said, HasSubstr("shmem_align: the alignment 1073741824 is more than that of the "
                              "symmetric heap itself, which is 268435456: the address is null"));
}

TEST(LifeTest, AnUnreadableSizeIsNamed) {
  const e2e::CommandResult result = RunJob({.variables = {"SHMEM_SYMMETRIC_SIZE=lots"}}, {"life"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("SHMEM_SYMMETRIC_SIZE: \"lots\" is no size"));
}

TEST(LifeTest, StaticDataMayStayPrivate) {
  const e2e::CommandResult result =
      RunJob({.variables = {"FERRY_SHMEM_STATICS=private"}}, {"life", "misuse", "static"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("which is no symmetric memory"));
}

// ---- MPI beside it ------------------------------------------------------------------------------

class BothTest : public testing::TestWithParam<const char*> {};

TEST_P(BothTest, InOneProgram) { ExpectAllOk({.pes = 2}, {"both", GetParam()}); }

// The library that begins first, and the one that ends last: MPI or OpenSHMEM.
INSTANTIATE_TEST_SUITE_P(, BothTest, testing::Values("mm", "ms", "sm", "ss"),
                         [](const auto& info) { return std::string(info.param); });

// ---- Misuse -------------------------------------------------------------------------------------

struct Misuse {
  const char* what;
  const char* sentence;
};
void PrintTo(const Misuse& misuse, std::ostream* out) { *out << misuse.what; }

class MisuseTest : public testing::TestWithParam<Misuse> {};

TEST_P(MisuseTest, EndsTheProgramWithASentence) {
  const e2e::CommandResult result = RunJob({}, {"life", "misuse", GetParam().what});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr(GetParam().sentence));
}

INSTANTIATE_TEST_SUITE_P(
    , MisuseTest,
    testing::Values(
        Misuse{"before", "shmem_int_p: call shmem_init or shmem_init_thread first"},
        Misuse{"after", "shmem_barrier_all: shmem_finalize was called"},
        Misuse{"pe", "shmem_int_p: PE 2 is not between 0 and 1"},
        Misuse{"local", "which is no symmetric memory: use memory of shmem_malloc"},
        Misuse{"past", "run past the end of the symmetric heap"},
        Misuse{"team", "shmem_team_sync: the team is SHMEM_TEAM_INVALID"},
        Misuse{"world", "SHMEM_TEAM_WORLD and SHMEM_TEAM_SHARED cannot be destroyed"},
        Misuse{"context", "shmem_ctx_int_p: the context is SHMEM_CTX_INVALID"},
        Misuse{"destroyed", "shmem_ctx_int_p: the context was destroyed, or its team was"},
        Misuse{"differ", "all PEs must make the same calls for symmetric memory"},
        Misuse{"free", "is where no memory begins that shmem_malloc has returned"},
        Misuse{"twice", "was it freed before?"},
        Misuse{"order", "is in another collective of this team"},
        Misuse{"sizes", "has passed another size"},
        Misuse{"root", "shmem_int_broadcast: the root 2 is not between 0 and 1"},
        Misuse{"unlocked", "shmem_clear_lock: this PE does not have the lock"},
        Misuse{"locked", "shmem_set_lock: this PE has the lock at"},
        Misuse{"unaligned", "is no multiple of 4, as the address of an atomic operation must be"},
        Misuse{"level", "shmem_init_thread: the thread level 99 is none of SHMEM_THREAD_*"},
        Misuse{"comparison", "the comparison 77 is none of SHMEM_CMP_*"},
        Misuse{"set", "the active set of 2 PEs from 0 on, with stride 2, is not among the 2 PEs"}),
    [](const auto& info) { return std::string(info.param.what); });

// ---- A PE that dies -----------------------------------------------------------------------------

class DeathTest : public testing::TestWithParam<Misuse> {};

TEST_P(DeathTest, EndsWhatWaitsForIt) {
  const e2e::CommandResult result =
      RunJob({.pes = 3, .flags = {"--keep-going"}}, {"life", "dies_in", GetParam().what});
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(result.err, HasSubstr(GetParam().sentence));
}

INSTANTIATE_TEST_SUITE_P(, DeathTest,
                         testing::Values(Misuse{"wait", "shmem_long_wait_until: PE 0 has died"},
                                         Misuse{"signal", "shmem_signal_wait_until: PE 0 has died"},
                                         Misuse{"any", "shmem_long_wait_until_any: PE 0 has died"},
                                         Misuse{"barrier", "shmem_barrier_all: PE 0 has died"},
                                         Misuse{"sync", "shmem_team_sync: PE 0 has died"},
                                         Misuse{"reduce", "shmem_long_sum_reduce: PE 0 has died"},
                                         Misuse{"malloc", "shmem_malloc: PE 0 has died"},
                                         Misuse{"split",
                                                "shmem_team_split_strided: PE 0 has died"}),
                         [](const auto& info) { return std::string(info.param.what); });

TEST(DeadPeTest, DoesNotHoldUpFinalize) {
  const e2e::CommandResult result =
      RunJob({.pes = 3, .flags = {"--keep-going"}}, {"life", "dies_in", "finalize"});
  EXPECT_THAT(e2e::SortedLines(result.out), testing::ElementsAre("PE 1: ok", "PE 2: ok"))
      << result.err;
}

TEST(DeadPeTest, PassesALockOn) {
  const e2e::CommandResult result =
      RunJob({.pes = 3, .flags = {"--keep-going"}}, {"life", "dies_in", "lock"});
  EXPECT_THAT(e2e::SortedLines(result.out),
              testing::ElementsAre("PE 1: has the lock", "PE 2: has the lock"))
      << result.err;
  EXPECT_THAT(result.err, HasSubstr("shmem_set_lock: PE 0 has died, which had the lock"));
}

}  // namespace
}  // namespace ferry::shmem_tests
