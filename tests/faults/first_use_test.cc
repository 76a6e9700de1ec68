// A rank maps the inboxes of those that it talks to, and no others, so that its start does not cost
// more on a node with many. A rank that dies before anybody has talked to it causes the usual
// error.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "tests/faults/fault_fixture.h"

namespace ferry::faults {
namespace {

TEST(FirstUseTest, NothingIsMappedBefore) {
  constexpr int kRanks = 8;
  e2e::Command job(PrivateJob(kRanks, 1, {}, {"tests/faults/ranks/first_use"}));
  const e2e::CommandResult result = job.Wait();
  EXPECT_EQ(result.exit_code, 128 + SIGKILL) << result.err;
  for (int rank = 0; rank < kRanks - 1; ++rank) {
    EXPECT_THAT(result.out, testing::HasSubstr("rank " + std::to_string(rank) + ": all right"))
        << result.err;
  }
  EXPECT_THAT(job.Leftovers(), testing::IsEmpty());
}

}  // namespace
}  // namespace ferry::faults
