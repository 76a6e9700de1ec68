// The checking mode of OpenSHMEM (FERRY_SHMEM_CHECK=1), and what else the environment asks for:
// each mistake has its sentence, and right programs run as ever.
#include <gmock/gmock.h>

#include <string>

#include "tests/shmem/e2e/shmem_job.h"

namespace ferry::shmem_tests {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

const std::vector<std::string>& Checked() {
  static const auto& variables = *new std::vector<std::string>{"FERRY_SHMEM_CHECK=1"};
  return variables;
}

struct Mistake {
  const char* what;
  const char* how;
  const char* sentence;  // a regular expression; either PE may be the first to find the mistake
};
void PrintTo(const Mistake& mistake, std::ostream* out) {
  *out << mistake.what << " " << mistake.how;
}
std::string NameOf(const testing::TestParamInfo<Mistake>& info) {
  return std::string(info.param.what) + "_" + info.param.how;
}

void ExpectFound(const JobSettings& settings, const Mistake& mistake) {
  const e2e::CommandResult result = RunJob(settings, {"mistakes", mistake.what, mistake.how});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, ContainsRegex(mistake.sentence));
}

class CheckingTest : public testing::TestWithParam<Mistake> {};

TEST_P(CheckingTest, FindsTheMistake) { ExpectFound({.variables = Checked()}, GetParam()); }

#define FREED                                                                               \
  "\\) lie in the 40 bytes at offset [0-9]+ of the symmetric heap, which shmem_malloc has " \
  "returned and shmem_free has freed"

INSTANTIATE_TEST_SUITE_P(
    Memory, CheckingTest,
    testing::Values(
        Mistake{"freed", "put", "rank [01]: shmem_long_put: 16 bytes from 0x.*PE's memory" FREED},
        Mistake{"freed", "p", "shmem_long_p: 8 bytes from 0x.*PE's memory" FREED},
        Mistake{"freed", "get", "shmem_long_get: 16 bytes from 0x.*PE's memory" FREED},
        Mistake{"freed", "put_source", "shmem_long_put: 16 bytes from 0x.*\\(source" FREED},
        Mistake{"freed", "get_dest", "shmem_long_get: 16 bytes from 0x.*\\(dest" FREED},
        Mistake{"freed", "iput_source", "shmem_long_iput: 8 bytes from 0x.*\\(source" FREED},
        Mistake{"freed", "amo", "shmem_long_atomic_inc: 8 bytes from 0x.*PE's memory" FREED},
        Mistake{"freed", "amo_nbi", "shmem_long_atomic_fetch_nbi: 8 bytes .*\\(fetch" FREED},
        Mistake{"freed", "signal", "shmem_long_put_signal: 8 bytes from 0x.*PE's memory" FREED},
        Mistake{"freed", "signal_fetch", "shmem_signal_fetch: 8 bytes .*signal's address" FREED},
        Mistake{"freed", "wait", "shmem_long_wait_until: 8 bytes .*variables' address" FREED},
        Mistake{"freed", "test", "shmem_long_test_any: 16 bytes .*variables' address" FREED},
        Mistake{"freed", "lock", "shmem_set_lock: 8 bytes from 0x.*PE's memory" FREED},
        Mistake{"freed", "reduce", "shmem_long_sum_reduce: 8 bytes from 0x.*\\(dest" FREED},
        Mistake{"freed", "collect", "shmem_long_collect: 8 bytes from 0x.*\\(source" FREED},
        Mistake{"outside", "past", "8 bytes .* run past the end of the 20 bytes at offset"},
        Mistake{"outside", "behind", "8 bytes .* lie 40 bytes behind the end of the 20 bytes"},
        Mistake{"outside", "shrunk", "past the end of the 10 bytes .* shmem_realloc has returned"},
        Mistake{"outside", "moved", "the 20 bytes .* returned and shmem_realloc has freed"},
        Mistake{"outside", "nowhere", "where the program has been given no memory"}),
    NameOf);

#define APART "in common: they must not overlap"

INSTANTIATE_TEST_SUITE_P(
    Overlaps, CheckingTest,
    testing::Values(
        Mistake{"overlap", "put", "shmem_long_put: 32 bytes .*\\(source\\) have 8 bytes " APART},
        Mistake{"overlap", "get", "shmem_long_get: 32 bytes .*\\(dest\\) have 8 bytes " APART},
        Mistake{"overlap", "iput", "shmem_long_iput: a block .*\\(source\\) have bytes " APART},
        Mistake{"overlap", "signal",
                "shmem_long_put_signal: .*signal's address\\) have 8 bytes " APART},
        Mistake{"overlap", "reduce", "sum_reduce: 32 bytes .*\\(source\\) have 24 bytes " APART},
        Mistake{"overlap", "fcollect", "shmem_long_fcollect: .*\\(source\\) have 32 bytes " APART},
        Mistake{"overlap", "collect", "shmem_long_collect: .*\\(source\\) have 32 bytes " APART}),
    NameOf);

#define ALIKE ": all PEs of a team must make the same calls, in the same order"

INSTANTIATE_TEST_SUITE_P(
    Collectives, CheckingTest,
    testing::Values(
        Mistake{
            "differ", "name",
            "PE 1 is in shmem_barrier_all, this one in shmem_int_broadcast of 4 bytes from root "
            "0" ALIKE "|PE 0 is in shmem_int_broadcast of 4 bytes from root 0, this one in "
            "shmem_barrier_all" ALIKE},
        Mistake{"differ", "operation",
                "PE [01] is in shmem_int_m.._reduce of 1 element, this one "
                "in shmem_int_m.._reduce of 1 element" ALIKE},
        Mistake{"differ", "type",
                "shmem_(int|float)_sum_reduce of 2 elements, this one in "
                "shmem_(int|float)_sum_reduce of 2 elements" ALIKE},
        Mistake{"differ", "size",
                "shmem_int_sum_reduce of (8|16) elements, this one in "
                "shmem_int_sum_reduce of (8|16) elements" ALIKE},
        Mistake{"differ", "root",
                "of 16 bytes from root [01], this one in .* from root [01]" ALIKE},
        Mistake{"differ", "stride",
                "of 8 bytes with strides [12] and 1, this one in "
                "shmem_int_alltoalls of 8 bytes with strides [12] and 1" ALIKE},
        Mistake{"differ", "dest",
                "PE [01] has passed offset [0-9]+ of the symmetric heap as dest, "
                "this one offset [0-9]+ of the symmetric heap: all PEs must pass "
                "the same symmetric memory"},
        Mistake{"differ", "source", "PE [01] has passed offset [0-9]+ of .* as source, this one "},
        Mistake{"differ", "private", "shmem_int_sum_reduce: source is 0x.* no symmetric memory"},
        Mistake{"differ", "memory",
                "PE [01] is in shmem_(free|barrier_all), this one in "
                "shmem_(free|barrier_all)" ALIKE},
        Mistake{"differ", "team",
                "PE [01] is in shmem_(team_split_strided|sync_all), this one in "
                "shmem_(team_split_strided|sync_all)" ALIKE},
        Mistake{"differ", "set",
                "PE [01] is in shmem_b(arrier|roadcast32 of 12 bytes from root 0), "
                "this one in shmem_b(arrier|roadcast32 of 12)"}),
    NameOf);

class RemoteCheckingTest : public testing::TestWithParam<Mistake> {};

TEST_P(RemoteCheckingTest, FindsTheMistakeBetweenNodes) {
  ExpectFound({.nodes = 2, .variables = Checked()}, GetParam());
}

INSTANTIATE_TEST_SUITE_P(
    , RemoteCheckingTest,
    testing::Values(Mistake{"freed", "put", "shmem_long_put: 16 bytes from 0x.*memory" FREED},
                    Mistake{"freed", "amo", "shmem_long_atomic_inc: 8 bytes from 0x"},
                    Mistake{"differ", "size", "shmem_int_sum_reduce of (8|16) elements, this one"},
                    Mistake{"differ", "memory", "is in shmem_(free|barrier_all), this one in"}),
    NameOf);

// ---- Memory and teams left at the end -----------------------------------------------------------

TEST(LeftoversTest, AreNamedOnce) {
  const e2e::CommandResult result = RunJob({.variables = Checked()}, {"mistakes", "leave", "one"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err,
              ContainsRegex("rank 0: shmem_finalize: 24 bytes at offset [0-9]+ of the symmetric "
                            "heap, which shmem_malloc has returned, were never freed"));
  EXPECT_THAT(result.err, HasSubstr("shmem_finalize: 1 team never destroyed"));
  EXPECT_THAT(result.err, HasSubstr("shmem_finalize: 1 context never destroyed"));
  EXPECT_THAT(result.err, Not(HasSubstr("rank 1: ")));
}

TEST(LeftoversTest, ManyAreCounted) {
  const e2e::CommandResult result = RunJob({.variables = Checked()}, {"mistakes", "leave", "much"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("4 further pieces of symmetric memory were never freed"));
}

TEST(LeftoversTest, OfAProgramThatGivesAllBackThereIsNoWord) {
  const e2e::CommandResult result = RunJob({.variables = Checked()}, {"mistakes", "nothing"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.err, "");
}

// ---- Right programs -----------------------------------------------------------------------------

class RightProgramTest : public testing::TestWithParam<const char*> {};

TEST_P(RightProgramTest, RunsCheckedInsideANode) {
  ExpectAllOk({.variables = Checked()}, {GetParam()});
}

INSTANTIATE_TEST_SUITE_P(, RightProgramTest,
                         testing::Values("atomics", "collectives", "heap", "locks", "puts",
                                         "statics", "teams", "threads", "waits"),
                         [](const auto& info) { return std::string(info.param); });

TEST(RightRemoteProgramTest, RunsCheckedBetweenNodes) {
  ExpectAllOk({.nodes = 2, .variables = Checked()}, {"puts"});
  ExpectAllOk({.nodes = 2, .variables = Checked()}, {"collectives"});
}

// ---- The environment ----------------------------------------------------------------------------

TEST(EnvironmentTest, UncheckedProgramsGoOn) {
  ExpectAllOk({}, {"mistakes", "freed", "p"});
  ExpectAllOk({.variables = {"FERRY_SHMEM_CHECK=0"}}, {"mistakes", "outside", "behind"});
}

TEST(EnvironmentTest, WhatPeZeroAsksForCounts) {
  const e2e::CommandResult result = RunJob({}, {"mistakes", "first"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, ContainsRegex("rank 1: shmem_long_p: 8 bytes .*memory" FREED));
}

TEST(EnvironmentTest, DebugSaysSoAndChecks) {
  const e2e::CommandResult result =
      RunJob({.variables = {"SHMEM_DEBUG=1"}}, {"mistakes", "freed", "p"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("SHMEM_DEBUG is set: the calls of OpenSHMEM are checked"));
  EXPECT_THAT(result.err, ContainsRegex("shmem_long_p: 8 bytes .*memory" FREED));
}

TEST(EnvironmentTest, VersionIsPrintedOnce) {
  const e2e::CommandResult result =
      RunJob({.variables = {"SHMEM_VERSION=yes"}}, {"mistakes", "nothing"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.err,
              testing::MatchesRegex("Ferry OpenSHMEM [0-9]+\\..* \\(OpenSHMEM 1\\.6\\)\n"));
}

TEST(EnvironmentTest, InfoListsVariablesMeaningsAndValues) {
  const e2e::CommandResult result = RunJob(
      {.variables = {"SHMEM_INFO=1", "SHMEM_SYMMETRIC_SIZE=2m", "SMA_VERSION=1"}}, {"mistakes"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.err, HasSubstr("(OpenSHMEM 1.6)\nEnvironment variables of OpenSHMEM"));
  EXPECT_THAT(result.err,
              HasSubstr("  SHMEM_SYMMETRIC_SIZE: 2m\n    How large the symmetric heap"));
  EXPECT_THAT(result.err, HasSubstr("  SHMEM_INFO: 1\n    Any value: shmem_init prints this list"));
  EXPECT_THAT(result.err, HasSubstr("  SHMEM_DEBUG: not set\n"));
  EXPECT_THAT(result.err, HasSubstr("  FERRY_SHMEM_STATICS: shared\n    Whether global"));
  EXPECT_THAT(result.err, HasSubstr("  FERRY_SHMEM_CHECK: 0\n    1: calls"));
  EXPECT_THAT(result.err, HasSubstr("The symmetric heap of each PE has 2097152 bytes.\n"));
}

}  // namespace
}  // namespace ferry::shmem_tests
