// A rank that waits for one that has left learns of it, on its node and on others, although that
// one has not died: otherwise the ranks that one death makes leave early would hold up the others
// for ever.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "tests/faults/fault_fixture.h"

namespace ferry::faults {
namespace {

class LeaveTest : public testing::TestWithParam<int> {};

TEST_P(LeaveTest, WhoWaitsForARankThatHasLeftIsTold) {
  constexpr int kRanks = 6;
  e2e::Command job(PrivateJob(kRanks, GetParam(), {}, {"tests/faults/ranks/leave"}));
  const e2e::CommandResult result = job.Wait();
  EXPECT_EQ(result.exit_code, 128 + SIGKILL) << result.err;
  for (int rank = 0; rank < kRanks - 1; ++rank) {
    EXPECT_THAT(result.out, testing::HasSubstr("rank " + std::to_string(rank) + ": all right"))
        << result.err;
  }
  EXPECT_THAT(job.Leftovers(), testing::IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Nodes, LeaveTest, testing::Values(1, 2, 6));

}  // namespace
}  // namespace ferry::faults
