// What happens to a rank's requests when another rank is gone.
#include <gtest/gtest.h>

#include "tests/engine/rank_fixture.h"

namespace ferry::engine {
namespace {

using shm::RequestState;

constexpr uint32_t kDead = 1;
constexpr uint32_t kAlive = 2;
constexpr uint32_t kFar = 3;  // on another node

class RankEngineDeathsTest : public testing::Test {
 protected:
  TestRank& rank() { return node_[0]; }
  void Die(ErrorCode error = ErrorCode::kPeerDied) {
    node_.MarkDead(0, kDead, error);
    rank().Progress();
  }

  TestNode node_{NodeOptions{.local_ranks = 3, .remote_ranks = 2}};
  FakeDaemon daemon_{node_.view(0)};
};

TEST_F(RankEngineDeathsTest, FailsPostedReceives) {
  const uint32_t dead = rank().Irecv(kDead, 7, 16);
  const uint32_t alive = rank().Irecv(kAlive, 7, 16);
  EXPECT_FALSE(rank().engine().HasWork());
  node_.MarkDead(0, kDead, ErrorCode::kNodeUnreachable);
  EXPECT_TRUE(rank().engine().HasWork());
  EXPECT_GT(rank().Progress(), 0U);
  EXPECT_EQ(rank().Finish(dead).error, ErrorCode::kNodeUnreachable);
  EXPECT_EQ(rank().state(alive), RequestState::kPosted);
  EXPECT_FALSE(rank().engine().HasWork());
  node_[kAlive].Isend(0, 7, "alive");
  EXPECT_EQ(rank().Wait(alive).data, "alive");
}

TEST_F(RankEngineDeathsTest, FailsReceivesFromAnySource) {
  const uint32_t any = rank().Irecv(shm::kAnySource, 7, 16);
  Die();
  EXPECT_EQ(rank().Finish(any).error, ErrorCode::kPeerDied);
  const uint32_t later = rank().Irecv(shm::kAnySource, 7, 16);
  EXPECT_EQ(rank().Finish(later).error, ErrorCode::kPeerDied);
}

TEST_F(RankEngineDeathsTest, AnOrderlyLeaveFailsOnlyWhatNamesTheRank) {
  const uint32_t any = rank().Irecv(shm::kAnySource, 7, 16);
  const uint32_t dead = rank().Irecv(kDead, 7, 16);
  Die(ErrorCode::kNotFound);
  EXPECT_EQ(rank().Finish(dead).error, ErrorCode::kNotFound);
  EXPECT_EQ(rank().state(any), RequestState::kPosted);
  node_[kAlive].Isend(0, 7, "alive");
  EXPECT_EQ(rank().Wait(any).data, "alive");
}

// The daemon reports the leave of a remote rank in line, behind everything that it has sent.
TEST_F(RankEngineDeathsTest, ALeaveInLineFailsWhatIsNotInFrontOfIt) {
  const uint32_t served = rank().Irecv(kFar, 7, 16);
  const uint32_t unserved = rank().Irecv(kFar, 7, 16);
  const uint32_t other = rank().Irecv(kFar + 1, 7, 16);
  daemon_.Eager(kFar, 7, "last words");
  daemon_.Eager(kFar, 8, "more of them");
  ASSERT_TRUE(daemon_.Left(kFar));
  rank().Progress();
  EXPECT_EQ(rank().Wait(served).data, "last words");
  EXPECT_EQ(rank().Finish(unserved).error, ErrorCode::kNotFound);
  EXPECT_EQ(rank().state(other), RequestState::kPosted);
  EXPECT_EQ(rank().Receive(kFar, 8, 16).data, "more of them");
  EXPECT_EQ(rank().Finish(rank().Irecv(kFar, 8, 16)).error, ErrorCode::kNotFound);
  EXPECT_EQ(rank().Finish(rank().Isend(kFar, 7, "x")).error, ErrorCode::kNotFound);
}

TEST_F(RankEngineDeathsTest, ALeaveInLineDoesNotHideADeath) {
  node_.MarkDead(0, kFar, ErrorCode::kPeerDied);
  ASSERT_TRUE(daemon_.Left(kFar));
  rank().Progress();
  EXPECT_EQ(rank().Finish(rank().Irecv(kFar, 7, 16)).error, ErrorCode::kPeerDied);
}

TEST_F(RankEngineDeathsTest, AReceiveFromAnySourceFailsWhenAllOthersHaveLeft) {
  const uint32_t any = rank().Irecv(shm::kAnySource, 7, 16);
  Die(ErrorCode::kNotFound);
  node_.MarkDead(0, kAlive, ErrorCode::kNotFound);
  daemon_.Left(kFar);
  rank().Progress();
  EXPECT_EQ(rank().state(any), RequestState::kPosted);
  daemon_.Left(kFar + 1);
  rank().Progress();
  EXPECT_EQ(rank().Finish(any).error, ErrorCode::kNotFound);
}

TEST_F(RankEngineDeathsTest, FailsQueuedSends) {
  Effects effects;
  for (const uint32_t peer : {kDead, kAlive}) {
    rank().engine().OpenLane(peer);
    while (rank().engine().TrySendInline({peer, 0, 7, 0}, "", effects)) {
    }
  }
  const uint32_t inline_send = rank().Isend(kDead, 7, "x");
  const uint32_t large_send = rank().Isend(kDead, 7, Pattern(20'000, 1));
  const uint32_t alive_send = rank().Isend(kAlive, 7, "x");
  Die();
  EXPECT_EQ(rank().Finish(inline_send).error, ErrorCode::kPeerDied);
  EXPECT_EQ(rank().Finish(large_send).error, ErrorCode::kPeerDied);
  EXPECT_EQ(rank().state(alive_send), RequestState::kQueued);
  EXPECT_EQ(node_.view(0).layout->queued_sends, 1U);
  EXPECT_EQ(node_.view(0).layout->peers[kDead].queue_first, 0U);
}

TEST_F(RankEngineDeathsTest, FailsNewSends) {
  Die();
  EXPECT_EQ(rank().Finish(rank().Isend(kDead, 7, "x")).error, ErrorCode::kPeerDied);
  EXPECT_EQ(rank().Finish(rank().Isend(kDead, 7, Pattern(5000, 1))).error, ErrorCode::kPeerDied);
  EXPECT_EQ(rank().Finish(rank().Isend(kDead, 7, Pattern(20'000, 1))).error, ErrorCode::kPeerDied);
  EXPECT_EQ(rank().Finish(rank().Isend(kAlive, 7, "x")).error, ErrorCode::kOk);
}

TEST_F(RankEngineDeathsTest, FailsProbes) {
  node_[kDead].Isend(0, 7, "last words");
  Die();
  ProbeResult result;
  EXPECT_EQ(rank().engine().Probe({0, static_cast<int32_t>(kDead), 7}, &result), ErrorCode::kOk);
  EXPECT_EQ(rank().engine().Probe({0, static_cast<int32_t>(kDead), 8}, &result),
            ErrorCode::kPeerDied);
  EXPECT_EQ(rank().engine().Probe({0, static_cast<int32_t>(kAlive), 8}, &result),
            ErrorCode::kWouldBlock);
}

TEST_F(RankEngineDeathsTest, FailsTransfersUnderWay) {
  const uint32_t send = rank().Isend(kDead, 7, Pattern(20'000, 1));
  const uint32_t alive = rank().Isend(kAlive, 7, Pattern(20'000, 2));
  Die();
  EXPECT_EQ(rank().Finish(send).error, ErrorCode::kPeerDied);
  EXPECT_EQ(rank().state(alive), RequestState::kTransferring);
  EXPECT_EQ(node_[kAlive].Receive(0, 7, 20'000).data, Pattern(20'000, 2));
  EXPECT_EQ(rank().Wait(alive).error, ErrorCode::kOk);
}

TEST_F(RankEngineDeathsTest, FailsAReceiveWhoseSenderDiedBeforeTheLastChunk) {
  const uint32_t receive = rank().Irecv(kDead, 7, 20'000);
  node_[kDead].Isend(0, 7, Pattern(20'000, 1));
  rank().Progress();
  EXPECT_EQ(rank().state(receive), RequestState::kTransferring);
  Die();
  EXPECT_EQ(rank().Finish(receive).error, ErrorCode::kPeerDied);
}

TEST_F(RankEngineDeathsTest, KeepsATransferThatWasDoneBefore) {
  const uint32_t receive = rank().Irecv(kDead, 7, 20'000);
  const uint32_t send = node_[kDead].Isend(0, 7, Pattern(20'000, 1));
  rank().Progress();
  EXPECT_TRUE(node_[kDead].Test(send)) << "the sender copies, then dies";
  Die();
  EXPECT_EQ(rank().state(receive), RequestState::kTransferring);
  EXPECT_EQ(rank().Wait(receive).data, Pattern(20'000, 1));
}

TEST_F(RankEngineDeathsTest, FailsAnOfferThatIsMatchedAfterTheDeath) {
  // The announcement came, and the data will not: the receive must not wait for it.
  node_[kDead].Isend(0, 7, Pattern(20'000, 1));
  rank().Progress();
  Die();
  EXPECT_EQ(rank().Finish(rank().Irecv(kDead, 7, 20'000)).error, ErrorCode::kPeerDied);
}

TEST_F(RankEngineDeathsTest, LeavesPullsToTheDaemon) {
  // The daemon may hold the data, or the NIC may be writing it: the daemon answers in both cases.
  daemon_.RemoteRts(kFar, 7, 20'000);
  daemon_.RemoteRts(kFar, 7, 20'000);
  const uint32_t before = rank().Irecv(kFar, 7, 20'000);
  rank().Progress();
  node_.MarkDead(0, kFar);
  rank().Progress();
  const uint32_t after = rank().Irecv(kFar, 7, 20'000);
  EXPECT_EQ(daemon_.Take().size(), 2U);
  for (const uint32_t receive : {before, after}) {
    EXPECT_EQ(rank().state(receive), RequestState::kRemoteWait);
    daemon_.Result(shm::DescriptorKind::kPullDone, receive, rank().slot(receive).generation,
                   ErrorCode::kPeerDied);
    rank().Progress();
    EXPECT_EQ(rank().Finish(receive).error, ErrorCode::kPeerDied);
  }
}

TEST_F(RankEngineDeathsTest, FailsSendsThatTheDaemonHasInHand) {
  const uint32_t send = rank().Isend(kFar, 7, Pattern(20'000, 1));
  const uint32_t receive = rank().Irecv(kFar, 7, 20'000);
  daemon_.RemoteRts(kFar, 7, 20'000);
  const uint32_t alive = rank().Isend(4, 7, Pattern(20'000, 1));
  rank().Progress();
  node_.MarkDead(0, kFar, ErrorCode::kNodeUnreachable);
  rank().Progress();
  EXPECT_EQ(rank().Finish(send).error, ErrorCode::kNodeUnreachable);
  EXPECT_EQ(rank().state(receive), RequestState::kRemoteWait) << "the NIC may still write to it";
  EXPECT_EQ(rank().state(alive), RequestState::kRemoteWait);
}

TEST_F(RankEngineDeathsTest, ReceivesWhatHadArrivedBefore) {
  for (const bool progressed : {false, true}) {
    TestNode node(NodeOptions{.local_ranks = 2});
    const uint32_t posted = node[0].Irecv(1, 1, 16);
    for (int32_t tag = 1; tag <= 200; ++tag) {
      node[1].Isend(0, tag, std::to_string(tag));
    }
    node.MarkDead(0, 1);
    if (progressed) {
      node[0].Progress();
    }
    EXPECT_EQ(node[0].Receive(1, 200, 16).data, "200");
    EXPECT_EQ(node[0].Wait(posted).data, "1");
    for (int32_t tag = 2; tag < 200; ++tag) {
      ASSERT_EQ(node[0].Receive(1, tag, 16).data, std::to_string(tag));
    }
    EXPECT_EQ(node[0].Receive(1, 1, 16).error, ErrorCode::kPeerDied);
  }
}

TEST_F(RankEngineDeathsTest, ReceivesWhatHadArrivedBeforeTheEpochIsThere) {
  // The daemon has marked the rank dead but not yet bumped the epoch.
  node_[kDead].Isend(0, 7, "last words");
  shm::StoreRelease(node_.view(0).layout->peers[kDead].dead,
                    static_cast<uint32_t>(ErrorCode::kPeerDied));
  EXPECT_EQ(rank().Receive(kDead, 7, 16).data, "last words");
  const uint32_t later = rank().Irecv(kDead, 7, 16);
  Die();
  EXPECT_EQ(rank().Finish(later).error, ErrorCode::kPeerDied);
}

TEST_F(RankEngineDeathsTest, EachEngineOfTheSessionLearnsOfTheDeath) {
  TestRank worker(node_, 0, Runner::kWorker);
  const uint32_t any = rank().Irecv(shm::kAnySource, 7, 16);
  node_.MarkDead(0, kDead);
  worker.Progress();
  EXPECT_EQ(rank().Finish(any).error, ErrorCode::kPeerDied);
  EXPECT_TRUE(rank().engine().HasWork()) << "or a receive posted now is never failed";
  const uint32_t later = rank().Irecv(shm::kAnySource, 7, 16);
  rank().Progress();
  EXPECT_EQ(rank().Finish(later).error, ErrorCode::kPeerDied);
}

TEST_F(RankEngineDeathsTest, NamesEveryNewTransferEvenWhenManyComeAtOnce) {
  // The worker copies the messages in Effects; no other thread may do it.
  constexpr uint32_t kMessages = 200;
  std::vector<uint32_t> receives;
  for (uint32_t i = 0; i < kMessages; ++i) {
    receives.push_back(rank().Irecv(kAlive, 7, 20'000));
  }
  for (uint32_t i = 0; i < kMessages; ++i) {
    node_[kAlive].Isend(0, 7, Pattern(20'000, i));
  }
  node_.MarkDead(0, kDead);
  uint32_t named = 0;
  while (rank().engine().HasWork()) {
    Effects effects;
    rank().engine().Progress(effects);
    named += effects.transfer_count;
  }
  EXPECT_EQ(named, kMessages);
}

}  // namespace
}  // namespace ferry::engine
