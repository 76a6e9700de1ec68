// A sender's heap blocks wait for a receiver that is killed (the sender gets them back), and for
// one that comes too late.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "tests/faults/fault_fixture.h"

namespace ferry::faults {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

class StagedSendTest : public testing::TestWithParam<int> {
 protected:
  int nodes() const { return GetParam(); }
};

TEST_P(StagedSendTest, BlocksOfADeadReceiverAreUsedAgain) {
  e2e::Command job(PrivateJob(3, nodes(), {}, {"tests/faults/ranks/staged"}));
  const e2e::CommandResult result = job.Wait();
  EXPECT_EQ(result.exit_code, 128 + SIGKILL) << result.err;
  EXPECT_THAT(result.out, HasSubstr("rank 0: all right"));
  EXPECT_THAT(result.out, HasSubstr("rank 1: all right"));
  EXPECT_THAT(job.Leftovers(), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Nodes, StagedSendTest, testing::Values(1, 3));

// This needs one node: a block of this size travels to another node at once.
TEST(LateReceiveTest, LearnsThatTheSenderHasLeft) {
  e2e::Command job(PrivateJob(3, 1, {}, {"tests/faults/ranks/late"}));
  const e2e::CommandResult result = job.Wait();
  EXPECT_EQ(result.exit_code, 128 + SIGKILL) << result.err;
  EXPECT_THAT(result.out, HasSubstr("rank 0: all right"));
  EXPECT_THAT(result.out, HasSubstr("rank 1: told: not found: the other rank has left the job"));
  EXPECT_THAT(job.Leftovers(), IsEmpty());
}

}  // namespace
}  // namespace ferry::faults
