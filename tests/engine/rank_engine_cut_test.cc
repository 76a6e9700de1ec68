// How a rank learns of a link that was cut, and goes on once the link is back.
#include <gtest/gtest.h>

#include "engine/request_end.h"
#include "shm/atomic.h"
#include "tests/engine/rank_fixture.h"

namespace ferry::engine {
namespace {

using shm::RequestState;

constexpr uint32_t kFar = 3;      // cut off
constexpr uint32_t kFarther = 4;  // on the same node as kFar
constexpr uint32_t kNear = 1;

class RankEngineCutTest : public testing::Test {
 protected:
  TestRank& rank() { return node_[0]; }
  shm::PeerWords& peer() { return node_.view(0).layout->peers[kFar]; }
  void Cut() {
    node_.MarkDead(0, kFar, ErrorCode::kLinkDown);
    rank().Progress();
  }
  void Return() {
    node_.MarkDead(0, kFar, ErrorCode::kOk);
    rank().Progress();
  }

  TestNode node_{NodeOptions{.local_ranks = 3, .remote_ranks = 2}};
  FakeDaemon daemon_{node_.view(0)};
};

TEST_F(RankEngineCutTest, FailsWhatNamesTheRankAndNothingElse) {
  const uint32_t named = rank().Irecv(kFar, 7, 16);
  const uint32_t other = rank().Irecv(kFarther, 7, 16);
  const uint32_t any = rank().Irecv(shm::kAnySource, 7, 16);
  const uint32_t offer = rank().Isend(kFar, 7, Pattern(20'000, 1));
  Cut();
  EXPECT_EQ(rank().Finish(named).error, ErrorCode::kLinkDown);
  EXPECT_EQ(rank().Finish(offer).error, ErrorCode::kLinkDown);
  EXPECT_EQ(rank().state(other), RequestState::kPosted);
  EXPECT_EQ(rank().state(any), RequestState::kPosted);
}

TEST_F(RankEngineCutTest, RefusesNewOperationsUntilTheLinkIsBack) {
  Cut();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(rank().Finish(rank().Isend(kFar, 7, "x")).error, ErrorCode::kLinkDown);
    EXPECT_EQ(rank().Finish(rank().Irecv(kFar, 7, 16)).error, ErrorCode::kLinkDown);
  }
  Return();
  EXPECT_EQ(rank().Finish(rank().Isend(kFar, 7, "x")).error, ErrorCode::kOk);
  const uint32_t receive = rank().Irecv(kFar, 7, 16);
  ASSERT_TRUE(daemon_.Eager(kFar, 7, "back"));
  EXPECT_EQ(rank().Wait(receive).data, "back");
}

TEST_F(RankEngineCutTest, TellsOnceOfACutThatPassedUnnoticed) {
  for (const bool sends : {true, false}) {
    Cut();
    Return();
    const uint32_t first = sends ? rank().Isend(kFar, 7, "x") : rank().Irecv(kFar, 7, 16);
    EXPECT_EQ(rank().Finish(first).error, ErrorCode::kLinkDown);
    EXPECT_EQ(rank().Finish(rank().Isend(kFar, 7, "x")).error, ErrorCode::kOk);
    const uint32_t receive = rank().Irecv(kFar, 7, 16);
    EXPECT_EQ(rank().state(receive), RequestState::kPosted);
    ASSERT_TRUE(daemon_.Eager(kFar, 7, "new"));
    EXPECT_EQ(rank().Wait(receive).data, "new");
  }
}

TEST_F(RankEngineCutTest, TellsBeforeItHandsOutAMessageOfAfterTheCut) {
  Cut();
  Return();
  ASSERT_TRUE(daemon_.Eager(kFar, 7, "not the next one"));
  EXPECT_EQ(rank().Finish(rank().IrecvDirect(kFar, 7, 16)).error, ErrorCode::kLinkDown);
  EXPECT_EQ(rank().Receive(kFar, 7, 16).data, "not the next one");
}

TEST_F(RankEngineCutTest, TellsAProbe) {
  Cut();
  Return();
  ProbeResult result;
  const shm::Envelope pattern{0, static_cast<int32_t>(kFar), 7};
  EXPECT_EQ(rank().engine().Probe(pattern, &result), ErrorCode::kLinkDown);
  EXPECT_EQ(rank().engine().Probe(pattern, &result), ErrorCode::kWouldBlock);
}

TEST_F(RankEngineCutTest, SaysNothingMoreToOneThatWasTold) {
  const uint32_t named = rank().Irecv(kFar, 7, 16);
  Cut();
  EXPECT_EQ(rank().Finish(named).error, ErrorCode::kLinkDown);
  Return();
  EXPECT_EQ(rank().Finish(rank().Isend(kFar, 7, "x")).error, ErrorCode::kOk);
}

// For the application such a send is over, so that nobody hears how it ends.
TEST_F(RankEngineCutTest, IsNotToldByTheEndOfAnUnwatchedSend) {
  const uint32_t unwatched = rank().IsendByRequest(kFar, 7, Pattern(20'000, 1), kRequestUnwatched);
  Cut();
  EXPECT_EQ(rank().Finish(unwatched).error, ErrorCode::kLinkDown);
  Return();
  const uint32_t another = rank().IsendByRequest(kFar, 7, Pattern(20'000, 1), kRequestUnwatched);
  EXPECT_EQ(rank().Finish(another).error, ErrorCode::kLinkDown);
  EXPECT_EQ(rank().Finish(rank().Isend(kFar, 7, "x")).error, ErrorCode::kLinkDown);
  EXPECT_EQ(rank().Finish(rank().Isend(kFar, 7, "x")).error, ErrorCode::kOk);
}

TEST_F(RankEngineCutTest, BeginsTheCreditsAnew) {
  for (uint32_t i = 0; i < kRemoteWindow; ++i) {
    EXPECT_EQ(rank().Finish(rank().Isend(kFar, 7, "x")).error, ErrorCode::kOk);
  }
  const uint32_t waits = rank().Isend(kFar, 7, "x");
  EXPECT_EQ(rank().state(waits), RequestState::kQueued);
  ASSERT_TRUE(daemon_.Eager(kFar, 8, "unexpected"));
  rank().Progress();
  EXPECT_EQ(peer().drained - peer().returned, 1U);
  Cut();
  EXPECT_EQ(rank().Finish(waits).error, ErrorCode::kLinkDown);
  EXPECT_EQ(peer().sent, peer().credited);
  EXPECT_EQ(peer().drained, peer().returned);
  Return();
  (void)daemon_.Take();
  for (uint32_t i = 0; i < kRemoteWindow; ++i) {
    EXPECT_EQ(rank().Finish(rank().Isend(kFar, 7, "x")).error, ErrorCode::kOk);
  }
  EXPECT_EQ(rank().Receive(kFar, 8, 16).data, "unexpected");
}

TEST_F(RankEngineCutTest, SaysThatItHasActed) {
  const uint32_t before = shm::LoadAcquire(node_.view(0).layout->deaths_applied);
  node_.MarkDead(0, kFar, ErrorCode::kLinkDown);
  EXPECT_EQ(shm::LoadAcquire(node_.view(0).layout->deaths_applied), before);
  rank().Progress();
  EXPECT_EQ(shm::LoadAcquire(node_.view(0).layout->deaths_applied), before + 1);
}

TEST_F(RankEngineCutTest, MayTurnOutToBeADeath) {
  Cut();
  node_.MarkDead(0, kFar, ErrorCode::kNodeUnreachable);
  rank().Progress();
  (void)rank().Finish(rank().Isend(kFar, 7, "x"));  // learns of the cut
  EXPECT_EQ(rank().Finish(rank().Isend(kFar, 7, "x")).error, ErrorCode::kNodeUnreachable);
  EXPECT_EQ(rank().Finish(rank().Irecv(shm::kAnySource, 7, 16)).error, ErrorCode::kNodeUnreachable);
}

TEST_F(RankEngineCutTest, LeavesRanksOfTheNodeAlone) {
  Cut();
  node_[kNear].Isend(0, 7, "near");
  EXPECT_EQ(rank().Receive(kNear, 7, 16).data, "near");
}

}  // namespace
}  // namespace ferry::engine
