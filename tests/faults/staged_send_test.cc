// A receiver is killed while heap blocks of a sender wait for it: the sender gets them back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "tests/faults/fault_fixture.h"

namespace ferry::faults {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

TEST(StagedSendTest, BlocksOfADeadReceiverAreUsedAgain) {
  e2e::Command job(PrivateJob(3, 1, {}, {"tests/faults/ranks/staged"}));
  const e2e::CommandResult result = job.Wait();
  EXPECT_EQ(result.exit_code, 128 + SIGKILL) << result.err;
  EXPECT_THAT(result.out, HasSubstr("rank 0: all right"));
  EXPECT_THAT(result.out, HasSubstr("rank 1: all right"));
  EXPECT_THAT(job.Leftovers(), IsEmpty());
}

}  // namespace
}  // namespace ferry::faults
