// A rank's requests when another rank has ended, when a link is cut, and when the process that
// holds the lease dies.
#include <gtest/gtest.h>

#include <cstring>

#include "engine/request_end.h"
#include "shm/atomic.h"
#include "tests/engine/rank_fixture.h"

namespace ferry::engine {
namespace {

using shm::RequestState;

// ---- Deaths

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
    rank().engine().sends().OpenLane(peer);
    while (rank().engine().sends().TrySendInline({peer, 0, 7, 0}, "", effects)) {
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
  EXPECT_EQ(node_.view(0).by_rank.peers[kDead].queue_first, 0U);
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
  EXPECT_EQ(rank().engine().receives().Probe({0, static_cast<int32_t>(kDead), 7}, &result),
            ErrorCode::kOk);
  EXPECT_EQ(rank().engine().receives().Probe({0, static_cast<int32_t>(kDead), 8}, &result),
            ErrorCode::kPeerDied);
  EXPECT_EQ(rank().engine().receives().Probe({0, static_cast<int32_t>(kAlive), 8}, &result),
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

TEST_F(RankEngineDeathsTest, FailsAnRtsThatIsMatchedAfterTheDeath) {
  // The announcement came, and the data will not: the receive must not wait for it.
  node_[kDead].Isend(0, 7, Pattern(20'000, 1));
  rank().Progress();
  Die();
  EXPECT_EQ(rank().Finish(rank().Irecv(kDead, 7, 20'000)).error, ErrorCode::kPeerDied);
}

TEST_F(RankEngineDeathsTest, LeavesRndvGetsToTheDaemon) {
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
    daemon_.Result(shm::DescriptorKind::kRndvGetDone, receive, rank().slot(receive).generation,
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
  shm::StoreRelease(node_.view(0).by_rank.peers[kDead].dead,
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

// ---- Links that are cut: how a rank learns of it, and goes on once the link is back

constexpr uint32_t kCutOff = 3;   // cut off
constexpr uint32_t kFarther = 4;  // on the same node as kCutOff
constexpr uint32_t kNear = 1;

class RankEngineCutTest : public testing::Test {
 protected:
  TestRank& rank() { return node_[0]; }
  shm::PeerWords& peer() { return node_.view(0).by_rank.peers[kCutOff]; }
  void Cut() {
    node_.MarkDead(0, kCutOff, ErrorCode::kLinkDown);
    rank().Progress();
  }
  void Return() {
    node_.MarkDead(0, kCutOff, ErrorCode::kOk);
    rank().Progress();
  }

  TestNode node_{NodeOptions{.local_ranks = 3, .remote_ranks = 2}};
  FakeDaemon daemon_{node_.view(0)};
};

TEST_F(RankEngineCutTest, FailsWhatNamesTheRankAndNothingElse) {
  const uint32_t named = rank().Irecv(kCutOff, 7, 16);
  const uint32_t other = rank().Irecv(kFarther, 7, 16);
  const uint32_t any = rank().Irecv(shm::kAnySource, 7, 16);
  const uint32_t rts = rank().Isend(kCutOff, 7, Pattern(20'000, 1));
  Cut();
  EXPECT_EQ(rank().Finish(named).error, ErrorCode::kLinkDown);
  EXPECT_EQ(rank().Finish(rts).error, ErrorCode::kLinkDown);
  EXPECT_EQ(rank().state(other), RequestState::kPosted);
  EXPECT_EQ(rank().state(any), RequestState::kPosted);
}

TEST_F(RankEngineCutTest, RefusesNewOperationsUntilTheLinkIsBack) {
  Cut();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(rank().Finish(rank().Isend(kCutOff, 7, "x")).error, ErrorCode::kLinkDown);
    EXPECT_EQ(rank().Finish(rank().Irecv(kCutOff, 7, 16)).error, ErrorCode::kLinkDown);
  }
  Return();
  EXPECT_EQ(rank().Finish(rank().Isend(kCutOff, 7, "x")).error, ErrorCode::kOk);
  const uint32_t receive = rank().Irecv(kCutOff, 7, 16);
  ASSERT_TRUE(daemon_.Eager(kCutOff, 7, "back"));
  EXPECT_EQ(rank().Wait(receive).data, "back");
}

TEST_F(RankEngineCutTest, TellsOnceOfACutThatPassedUnnoticed) {
  for (const bool sends : {true, false}) {
    Cut();
    Return();
    const uint32_t first = sends ? rank().Isend(kCutOff, 7, "x") : rank().Irecv(kCutOff, 7, 16);
    EXPECT_EQ(rank().Finish(first).error, ErrorCode::kLinkDown);
    EXPECT_EQ(rank().Finish(rank().Isend(kCutOff, 7, "x")).error, ErrorCode::kOk);
    const uint32_t receive = rank().Irecv(kCutOff, 7, 16);
    EXPECT_EQ(rank().state(receive), RequestState::kPosted);
    ASSERT_TRUE(daemon_.Eager(kCutOff, 7, "new"));
    EXPECT_EQ(rank().Wait(receive).data, "new");
  }
}

TEST_F(RankEngineCutTest, TellsBeforeItHandsOutAMessageOfAfterTheCut) {
  Cut();
  Return();
  ASSERT_TRUE(daemon_.Eager(kCutOff, 7, "not the next one"));
  EXPECT_EQ(rank().Finish(rank().IrecvDirect(kCutOff, 7, 16)).error, ErrorCode::kLinkDown);
  EXPECT_EQ(rank().Receive(kCutOff, 7, 16).data, "not the next one");
}

TEST_F(RankEngineCutTest, TellsAProbe) {
  Cut();
  Return();
  ProbeResult result;
  const shm::Envelope pattern{0, static_cast<int32_t>(kCutOff), 7};
  EXPECT_EQ(rank().engine().receives().Probe(pattern, &result), ErrorCode::kLinkDown);
  EXPECT_EQ(rank().engine().receives().Probe(pattern, &result), ErrorCode::kWouldBlock);
}

TEST_F(RankEngineCutTest, SaysNothingMoreToOneThatWasTold) {
  const uint32_t named = rank().Irecv(kCutOff, 7, 16);
  Cut();
  EXPECT_EQ(rank().Finish(named).error, ErrorCode::kLinkDown);
  Return();
  EXPECT_EQ(rank().Finish(rank().Isend(kCutOff, 7, "x")).error, ErrorCode::kOk);
}

// For the application such a send is over, so its end is not reported.
TEST_F(RankEngineCutTest, IsNotToldByTheEndOfAnUnwatchedSend) {
  const uint32_t unwatched =
      rank().IsendByRequest(kCutOff, 7, Pattern(20'000, 1), kRequestUnwatched);
  Cut();
  EXPECT_EQ(rank().Finish(unwatched).error, ErrorCode::kLinkDown);
  Return();
  const uint32_t another = rank().IsendByRequest(kCutOff, 7, Pattern(20'000, 1), kRequestUnwatched);
  EXPECT_EQ(rank().Finish(another).error, ErrorCode::kLinkDown);
  EXPECT_EQ(rank().Finish(rank().Isend(kCutOff, 7, "x")).error, ErrorCode::kLinkDown);
  EXPECT_EQ(rank().Finish(rank().Isend(kCutOff, 7, "x")).error, ErrorCode::kOk);
}

TEST_F(RankEngineCutTest, BeginsTheCreditsAnew) {
  for (uint32_t i = 0; i < kRemoteWindow; ++i) {
    EXPECT_EQ(rank().Finish(rank().Isend(kCutOff, 7, "x")).error, ErrorCode::kOk);
  }
  const uint32_t waits = rank().Isend(kCutOff, 7, "x");
  EXPECT_EQ(rank().state(waits), RequestState::kQueued);
  ASSERT_TRUE(daemon_.Eager(kCutOff, 8, "unexpected"));
  rank().Progress();
  EXPECT_EQ(peer().drained - peer().returned, 1U);
  Cut();
  EXPECT_EQ(rank().Finish(waits).error, ErrorCode::kLinkDown);
  EXPECT_EQ(peer().sent, peer().credited);
  EXPECT_EQ(peer().drained, peer().returned);
  Return();
  (void)daemon_.Take();
  for (uint32_t i = 0; i < kRemoteWindow; ++i) {
    EXPECT_EQ(rank().Finish(rank().Isend(kCutOff, 7, "x")).error, ErrorCode::kOk);
  }
  EXPECT_EQ(rank().Receive(kCutOff, 8, 16).data, "unexpected");
}

TEST_F(RankEngineCutTest, NoticesASecondCutAlthoughItHasNotSeenTheLinkBackBetween) {
  Cut();
  node_.MarkDead(0, kCutOff, ErrorCode::kOk);
  EXPECT_EQ(rank().Finish(rank().Isend(kCutOff, 7, "x")).error, ErrorCode::kLinkDown);
  for (uint32_t i = 0; i < kRemoteWindow; ++i) {
    EXPECT_EQ(rank().Finish(rank().Isend(kCutOff, 7, "x")).error, ErrorCode::kOk);
  }
  Cut();
  EXPECT_EQ(peer().sent, peer().credited);
  Return();
  EXPECT_EQ(rank().Finish(rank().Isend(kCutOff, 7, "x")).error, ErrorCode::kLinkDown);
  EXPECT_EQ(rank().Finish(rank().Isend(kCutOff, 7, "x")).error, ErrorCode::kOk);
}

TEST_F(RankEngineCutTest, SaysThatItHasActed) {
  const uint32_t before = shm::LoadAcquire(node_.view(0).layout->deaths_applied);
  node_.MarkDead(0, kCutOff, ErrorCode::kLinkDown);
  EXPECT_EQ(shm::LoadAcquire(node_.view(0).layout->deaths_applied), before);
  rank().Progress();
  EXPECT_EQ(shm::LoadAcquire(node_.view(0).layout->deaths_applied), before + 1);
}

TEST_F(RankEngineCutTest, MayTurnOutToBeADeath) {
  Cut();
  node_.MarkDead(0, kCutOff, ErrorCode::kNodeUnreachable);
  rank().Progress();
  (void)rank().Finish(rank().Isend(kCutOff, 7, "x"));  // learns of the cut
  EXPECT_EQ(rank().Finish(rank().Isend(kCutOff, 7, "x")).error, ErrorCode::kNodeUnreachable);
  EXPECT_EQ(rank().Finish(rank().Irecv(shm::kAnySource, 7, 16)).error, ErrorCode::kNodeUnreachable);
}

TEST_F(RankEngineCutTest, LeavesRanksOfTheNodeAlone) {
  Cut();
  node_[kNear].Isend(0, 7, "near");
  EXPECT_EQ(rank().Receive(kNear, 7, 16).data, "near");
}

// ---- Recovery

// A successor takes over segments in which a transaction was partly applied: copies of the segments
// stand for those of a dead holder.

// The segments of one rank at some instant.
class Snapshot {
 public:
  explicit Snapshot(const TestNode& node, uint32_t rank)
      : session_(Bytes(node.session_memory(rank))), inbox_(Bytes(node.inbox_memory(rank))) {}

  void Restore(TestNode& node, uint32_t rank) const {
    std::memcpy(node.session_memory(rank).base(), session_.data(), session_.size());
    std::memcpy(node.inbox_memory(rank).base(), inbox_.data(), inbox_.size());
  }

 private:
  static std::vector<std::byte> Bytes(const shm::SharedMemory& memory) {
    return {memory.base(), memory.base() + memory.size_bytes()};
  }

  std::vector<std::byte> session_;
  std::vector<std::byte> inbox_;
};

// Publishes the words of the latest transaction in the journal again, and applies the first
// `applied` of them, as a holder that is killed then. The entries are still there from the
// transaction itself, which a run on the same state has shown.
void CutTransaction(const SessionView& view, const shm::JournalLayout& journal, uint32_t count,
                    uint32_t applied) {
  view.layout->journal = journal;
  view.layout->journal.count = count;
  for (uint32_t i = 0; i < applied; ++i) {
    const auto [place, value] = journal.entries[i];
    std::byte* const segment = (place & shm::kJournalInbox) != 0 ? view.inbox.base() : view.base();
    const uint64_t offset = place & ~(shm::kJournalInbox | shm::kJournalWide);
    std::memcpy(segment + offset, &value, (place & shm::kJournalWide) != 0 ? 8 : 4);
  }
}

TEST(RankEngineRecoveryTest, FinishesATransactionThatWasAppliedInPart) {
  TestNode node(NodeOptions{.request_limit = 16, .unexpected_limit = 16});
  const uint32_t awaited = node[1].Irecv(0, 7, 16);
  node[0].Isend(1, 7, "awaited");
  const Snapshot before(node, 1);
  // The rest of the run shows the stores of the transaction.
  node.view(1).layout->journal.entries[shm::kJournalEntries - 1] = {};
  std::memset(node.view(1).layout->journal.entries, 0,
              sizeof(node.view(1).layout->journal.entries));
  node[1].Progress();
  ASSERT_EQ(node[1].state(awaited), RequestState::kLanded);
  const shm::JournalLayout journal = node.view(1).layout->journal;
  const shm::RequestLayout landed = node[1].slot(awaited);
  uint32_t count = 0;
  while (count < shm::kJournalEntries && journal.entries[count].place != 0) {
    ++count;
  }
  ASSERT_GT(count, 3U);

  for (uint32_t applied = 0; applied <= count; ++applied) {
    SCOPED_TRACE(testing::Message() << applied << " of " << count << " stores");
    before.Restore(node, 1);
    // The request's plain words are stored before the transaction is published.
    shm::RequestLayout& slot = node[1].slot(awaited);
    const uint32_t posted = slot.state;
    slot = landed;
    slot.state = posted;
    CutTransaction(node.view(1), journal, count, applied);
    node.view(1).inbox.wake()->activity[0] = 0;  // taken by the dead holder
    TestRank successor(node, 1, Runner::kWorker);
    ASSERT_EQ(successor.engine().RecoverFromDeadHolder(), ErrorCode::kOk);
    EXPECT_EQ(node.view(1).layout->journal.recoveries, 1U);
    EXPECT_EQ(node[1].state(awaited), RequestState::kLanded);
    EXPECT_NE(shm::Wake(node.view(1).inbox.wake()).Activity(0), 0U)
        << "it must look at every lane once";
    EXPECT_EQ(successor.Progress(), 0U) << "the message was consumed";
    EXPECT_EQ(std::memcmp(node[1].slot(awaited).payload, "awaited", 7), 0);
  }
}

TEST(RankEngineRecoveryTest, ForgetsNoLaneThatTheDeadHolderHadTaken) {
  TestNode node(NodeOptions{.local_ranks = 3});
  node[0].Isend(2, 7, "a");
  node[1].Isend(2, 7, "b");
  shm::Wake(node.view(2).inbox.wake()).TakeActivity(0);  // and the holder dies
  EXPECT_FALSE(node[2].engine().HasWork());
  EXPECT_EQ(node[2].engine().RecoverFromDeadHolder(), ErrorCode::kOk);
  EXPECT_EQ(node[2].Receive(0, 7, 16).data, "a");
  EXPECT_EQ(node[2].Receive(1, 7, 16).data, "b");
}

TEST(RankEngineRecoveryTest, CorruptJournalPoisonsTheRank) {
  TestNode node;
  shm::JournalLayout& journal = node.view(0).layout->journal;
  journal.count = shm::kJournalEntries + 1;
  EXPECT_EQ(node[0].engine().RecoverFromDeadHolder(), ErrorCode::kCorrupt);
  EXPECT_EQ(node[0].poison(), ErrorCode::kCorrupt);
}

TEST(RankEngineRecoveryTest, IsHarmlessWhenNothingWasCut) {
  TestNode node;
  const uint32_t send = node[0].Isend(1, 7, Pattern(20'000, 1));
  const uint32_t receive = node[1].Irecv(0, 7, 20'000);
  node[1].Progress();
  for (uint32_t rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(node[rank].engine().RecoverFromDeadHolder(), ErrorCode::kOk);
  }
  EXPECT_EQ(node[1].Wait(receive).data, Pattern(20'000, 1));
  EXPECT_EQ(node[1].engine().RecoverFromDeadHolder(), ErrorCode::kOk);
  EXPECT_EQ(node[0].Wait(send).error, ErrorCode::kOk);
}

TEST(RankEngineRecoveryTest, PublishesATransferThatWasOnlyMatched) {
  TestNode node;
  const uint32_t receive = node[1].Irecv(0, 7, 20'000);
  const uint32_t send = node[0].Isend(1, 7, Pattern(20'000, 1));
  node[1].Progress();
  // The state is as if the holder had died before it published.
  shm::TransferLayout& transfer = *node.view(0).inbox.transfer(send);
  transfer.state = static_cast<uint32_t>(shm::TransferState::kAnnounced);
  transfer.destination = {};
  EXPECT_EQ(node[1].engine().RecoverFromDeadHolder(), ErrorCode::kOk);
  EXPECT_EQ(node[1].Wait(receive).data, Pattern(20'000, 1));
}

}  // namespace
}  // namespace ferry::engine
