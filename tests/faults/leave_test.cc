// Ranks that die or leave while others need them. The programs check what these are told.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/faults/fault_fixture.h"

namespace ferry::faults {
namespace {

// Runs tests/faults/ranks/leave, whose last rank is killed; returns its output.
std::string Leave(int ranks, int nodes, const char* how, const e2e::Words& flags = {}) {
  const e2e::CommandResult result =
      e2e::RunCleanly(PrivateJob(ranks, nodes, flags, {"tests/faults/ranks/leave", how}));
  EXPECT_EQ(result.exit_code, kRankKilled) << result.err;
  return result.out;
}

// A rank that waits for one that has left learns of it, on its node and on others, although that
// one has not died: otherwise the ranks that one death makes leave early would hold up the others
// for ever.
class LeaveTest : public testing::TestWithParam<int> {};

TEST_P(LeaveTest, WhoWaitsForARankThatHasLeftIsTold) {
  ExpectAllRight(Leave(6, GetParam(), "early"), 5);
}

INSTANTIATE_TEST_SUITE_P(Nodes, LeaveTest, testing::Values(1, 2, 6));

// A rank maps the inboxes of those that it talks to, and no others, so that its start does not cost
// more on a node with many. A rank that dies before anybody has talked to it causes the usual
// error.
TEST(FirstUseTest, NothingIsMappedBefore) { ExpectAllRight(Leave(8, 1, "unused"), 7); }

// A sender's heap blocks wait for a receiver that is killed: the sender gets them back.
class StagedSendTest : public testing::TestWithParam<int> {};

TEST_P(StagedSendTest, BlocksOfADeadReceiverAreUsedAgain) {
  ExpectAllRight(Leave(3, GetParam(), "staged"), 2);
}

INSTANTIATE_TEST_SUITE_P(Nodes, StagedSendTest, testing::Values(1, 3));

// By a link a receiver takes so much data that it has not asked for, and no more.
TEST(SendByLinkTest, MoreThanTheReceiverTakesWaitsInTheSendersHeap) {
  ExpectAllRight(Leave(3, 3, "staged", {"--direct_links=always"}), 2);
}

// Messages that wait before a blocking send take the room that the receiver has, and leave none.
TEST(SendByLinkTest, WaitsForNoReceiveBehindWhatIsStarted) {
  ExpectAllRight(Leave(2, 2, "stopped", {"--direct_links=always"}), 1);
}

// This needs one node: a block of this size travels to another node at once.
TEST(LateReceiveTest, LearnsThatTheSenderHasLeft) {
  const std::string out = Leave(3, 1, "late");
  ExpectAllRight(out, 1);
  EXPECT_THAT(out, testing::HasSubstr("rank 1: told: not found: the other rank has left the job"));
}

// A rank whose barrier fails says so to those that wait for it there already.
class BrokenBarrierTest : public testing::TestWithParam<int> {};

TEST_P(BrokenBarrierTest, FailsOnEveryRank) {
  ExpectAllRight(Leave(3, GetParam(), "barrier", {e2e::kByDaemons}), 2);
}

INSTANTIATE_TEST_SUITE_P(Nodes, BrokenBarrierTest, testing::Values(1, 3));

}  // namespace
}  // namespace ferry::faults
