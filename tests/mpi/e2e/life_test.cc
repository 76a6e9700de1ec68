// How MPI programs begin and end, well or not: exit codes, sentences, and that no rank waits for
// ever.
#include <gmock/gmock.h>

#include <regex>

#include "tests/mpi/e2e/mpi_job.h"

namespace ferry::mpi_tests {
namespace {

using testing::HasSubstr;

int CountOf(const std::string& text, const std::string& what) {
  int count = 0;
  for (size_t at = text.find(what); at != text.npos; at = text.find(what, at + 1)) {
    ++count;
  }
  return count;
}

// The number of further ranks that said the same, as ferryrun has counted them.
int MoreRanks(const std::string& text, const std::string& words) {
  const std::regex told("the same from (\\d+) more ranks? \\([-, 0-9]+\\): " + words + "\n");
  int more = 0;
  for (std::sregex_iterator it(text.begin(), text.end(), told), end; it != end; ++it) {
    more += std::stoi((*it)[1]);
  }
  return more;
}

class LifeTest : public testing::TestWithParam<Placement> {
 protected:
  static e2e::CommandResult Live(const std::string& what) {
    return RunJob(GetParam(), {"tests/mpi/ranks/life", what});
  }
};

TEST_P(LifeTest, IsWhole) {
  ExpectJob(GetParam(), {"tests/mpi/ranks/life", "whole"}, "a whole life");
}

TEST_P(LifeTest, RequestsThatWereNotFreedEndWithIt) {
  ExpectJob(GetParam(), {"tests/mpi/ranks/life", "requests"}, "nothing is missed");
}

TEST_P(LifeTest, BuffersThatWereNotDetachedEndWithIt) {
  ExpectJob(GetParam(), {"tests/mpi/ranks/life", "buffers"}, "nothing is missed");
}

TEST_P(LifeTest, OtherProcessesAreRefusedWithWhatToDo) {
  ExpectJob(GetParam(), {"tests/mpi/ranks/life", "spawn"}, "nobody else comes");
}

TEST_P(LifeTest, AbortEndsTheJobWithItsCode) {
  const e2e::CommandResult result = Live("abort");
  EXPECT_EQ(result.exit_code, 42) << result.err;
  EXPECT_THAT(result.err, HasSubstr("MPI_Abort was called with error code 42"));
}

// The shell sees the last eight bits of a code.
TEST_P(LifeTest, AnAbortIsNeverASuccess) {
  for (const std::string code : {"0", "256"}) {
    const e2e::CommandResult result = RunJob(GetParam(), {"tests/mpi/ranks/life", "abort", code});
    EXPECT_EQ(result.exit_code, 1) << result.err;
    EXPECT_THAT(result.err, HasSubstr("ferryrun: rank 1 aborted the job with exit code " + code +
                                      "; ferryrun exits with 1, since an aborted job has not "
                                      "ended well\n"));
  }
}

TEST_P(LifeTest, AFatalErrorEndsTheJobAndSaysWhy) {
  const e2e::CommandResult result = Live("fatal");
  EXPECT_EQ(result.exit_code, 6) << "MPI_ERR_RANK: " << result.err;
  EXPECT_THAT(result.err, HasSubstr("rank 0: MPI_Send: the destination 99 is no rank"));
}

TEST_P(LifeTest, CallsBeforeInitAreNamed) {
  const e2e::CommandResult result = Live("before");
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(result.err, HasSubstr("MPI_Send: call MPI_Init or MPI_Init_thread first"));
}

TEST_P(LifeTest, CallsAfterFinalizeAreNamed) {
  const e2e::CommandResult result = Live("after");
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(result.err, HasSubstr("MPI_Comm_rank: MPI_Finalize was called"));
}

TEST_P(LifeTest, ASecondInitIsNamed) {
  const e2e::CommandResult result = Live("again");
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(result.err, HasSubstr("MPI cannot be initialised again"));
}

TEST_P(LifeTest, ARankThatDiesIsAnErrorForWhoWaitsForIt) {
  const e2e::CommandResult result =
      RunJob(GetParam(), {"--keep-going", "tests/mpi/ranks/life", "dies"});
  EXPECT_THAT(result.out, HasSubstr("class 58\n")) << "MPI_ERR_PROC_ABORTED: " << result.err;
  // The other rank knows why it ends without MPI_Finalize.
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("ferryrun: rank 1 (pid "));
  EXPECT_THAT(result.err, HasSubstr(") exited with code 0 without MPI_Finalize\n"));
  EXPECT_THAT(result.err, testing::Not(HasSubstr("ferryrun: rank 0 ")));
}

INSTANTIATE_TEST_SUITE_P(Placements, LifeTest, testing::ValuesIn(Pairs()), NameOf);

// Each rank fails by itself, with the same words, and ferryrun reports the same of each.
TEST(CrowdTest, WhatAllRanksSayIsShownOnce) {
  const e2e::CommandResult result =
      RunJob({"", {"-n", "16", "--keep-going"}}, {"tests/mpi/ranks/life", "before"});
  EXPECT_NE(result.exit_code, 0);
  const std::string sentence = "MPI_Send: call MPI_Init or MPI_Init_thread first";
  EXPECT_EQ(CountOf(result.err, "libferry: " + sentence + "\n"), 1) << result.err;
  EXPECT_EQ(MoreRanks(result.err, sentence), 15) << result.err;
  EXPECT_EQ(CountOf(result.err, ") exited with code 16\n"), 1) << result.err;
  EXPECT_EQ(MoreRanks(result.err, "exited with code 16"), 15) << result.err;
}

// Without a launcher a program is a job of one rank, over its own daemon, which ends with it.
TEST(SingletonTest, LivesWithoutFerryrun) {
  e2e::Command command({"tests/mpi/ranks/life", "whole"}, {"PATH=tools/ferryrun:/usr/bin:/bin"});
  const e2e::CommandResult result = command.Wait();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "a whole life\n");
  EXPECT_THAT(command.Leftovers(), testing::IsEmpty());
}

TEST(ProfilingTest, AToolStandsBeforeTheLibrary) {
  ExpectJob({"", {"-n", "3"}}, {"tests/mpi/ranks/profiled"}, "the tool saw all sends");
}

}  // namespace
}  // namespace ferry::mpi_tests
