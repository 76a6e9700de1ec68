// Receives that are announced by an RTR to their source, and sends that use RTRs, one rank at a
// time: the test is its daemon.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "shm/atomic.h"
#include "tests/engine/rank_fixture.h"

namespace ferry::engine {
namespace {

using shm::Descriptor;
using shm::DescriptorKind;
using shm::RequestState;
using shm::RtrState;

constexpr uint32_t kFar = 1;    // elsewhere, as
constexpr uint32_t kOther = 2;  // this one
constexpr uint64_t kLarge = 100'000;
constexpr int32_t kTag = 7;

EngineOptions ReceiverFirst() {
  EngineOptions options;
  options.receiver_first_min_bytes = kLarge;
  return options;
}

// Only such receives are announced by an RTR.
uint32_t ReceiveInHeap(TestRank& rank, int32_t source, int32_t tag, uint64_t size_bytes = kLarge) {
  const uint32_t request =
      rank.NewRequest(shm::RequestKind::kReceive, source, tag, 0, std::string(size_bytes, '\0'));
  rank.slot(request).buffer.region = 3;
  Effects effects;
  EXPECT_EQ(rank.engine().receives().StartReceive(request, effects), ErrorCode::kOk);
  rank.Perform(effects);
  return request;
}

class RankEngineRtrsTest : public testing::Test {
 protected:
  TestRank& rank() { return node_[0]; }
  shm::RtrBook& book() { return node_.view(0).by_rank.rtrs[kFar]; }
  RtrState rtr(uint32_t request) { return static_cast<RtrState>(rank().slot(request).rtr); }

  uint32_t Receive(int32_t source, int32_t tag, uint64_t size_bytes = kLarge) {
    return ReceiveInHeap(rank(), source, tag, size_bytes);
  }
  uint32_t Send(int32_t tag, uint64_t size_bytes = kLarge, uint32_t region = 3) {
    const uint32_t request =
        rank().NewRequest(shm::RequestKind::kSend, kFar, tag, 0, std::string(size_bytes, 's'));
    rank().slot(request).buffer.region = region;
    Effects effects;
    rank().engine().sends().StartSend(request, effects);
    rank().Perform(effects);
    return request;
  }

  // The peer, or its daemon, says:
  void PeerAnnounces(uint32_t receive, int32_t tag, uint64_t seen, uint32_t generation = 1) {
    ASSERT_TRUE(daemon_.Push(DescriptorKind::kRtr, kFar, tag, kLarge,
                             shm::RtrWords{receive, generation, seen, {}}));
  }
  void PeerPuts(uint32_t receive, int32_t tag, uint64_t size_bytes, uint32_t generation) {
    ASSERT_TRUE(daemon_.Push(DescriptorKind::kPut, kFar, tag, size_bytes,
                             shm::PutCommand{9, 9, receive, generation, {}}));
  }
  void PeerPuts(uint32_t receive, uint64_t size_bytes = kLarge) {
    PeerPuts(receive, kTag, size_bytes, rank().slot(receive).generation);
  }
  void PutIsDone(uint32_t receive, ErrorCode error = ErrorCode::kOk) {
    ASSERT_TRUE(daemon_.Result(DescriptorKind::kRndvGetDone, receive,
                               rank().slot(receive).generation, error));
    rank().Progress();
  }
  void IsWithdrawn(uint32_t receive) {
    ASSERT_TRUE(
        daemon_.Result(DescriptorKind::kWithdrawn, receive, rank().slot(receive).generation));
    rank().Progress();
  }
  TestNode node_{NodeOptions{.local_ranks = 1, .remote_ranks = 2}, ReceiverFirst()};
  FakeDaemon daemon_{node_.view(0)};
};

// ---- Which receives --------------------------------------------------------------------------

TEST_F(RankEngineRtrsTest, AnnouncesAReceiveThatIsWaiting) {
  ASSERT_TRUE(daemon_.Eager(kFar, 1, "a"));
  ASSERT_TRUE(daemon_.Eager(kFar, 1, "b"));
  rank().Progress();
  const uint32_t receive = Receive(kFar, kTag);
  EXPECT_TRUE(rank().rang_daemon);
  const std::vector<Descriptor> said = daemon_.TakeOf(DescriptorKind::kRtr);
  ASSERT_EQ(said.size(), 1U);
  EXPECT_EQ(said[0].source, 0U);
  EXPECT_EQ(said[0].destination, kFar);
  EXPECT_EQ(said[0].tag, kTag);
  EXPECT_EQ(said[0].size_bytes, kLarge);
  const auto words = PayloadOf<shm::RtrWords>(said[0]);
  EXPECT_EQ(words.receive, receive);
  EXPECT_EQ(words.generation, rank().slot(receive).generation);
  EXPECT_EQ(words.seen, 2U);
  EXPECT_EQ(words.where.region, 3U);
  EXPECT_EQ(words.where.address, rank().slot(receive).buffer.address);
  EXPECT_EQ(rtr(receive), RtrState::kOut);
}

TEST_F(RankEngineRtrsTest, SaysNothingOfOthers) {
  Receive(shm::kAnySource, kTag);
  Receive(kFar, shm::kAnyTag);
  Receive(kFar, kTag);  // behind both of them
  Receive(kOther, 1, kLarge - 1);
  const uint32_t in_private = rank().Irecv(kOther, 2, kLarge);
  EXPECT_EQ(rtr(in_private), RtrState::kQuiet);
  ASSERT_TRUE(daemon_.RemoteRts(kOther, 3, kLarge));
  rank().Progress();
  Receive(kOther, 3);  // its message is there
  EXPECT_TRUE(daemon_.TakeOf(DescriptorKind::kRtr).empty());
  Receive(kOther, 4);
  EXPECT_EQ(daemon_.TakeOf(DescriptorKind::kRtr).size(), 1U);
  Receive(kOther, 4);  // behind that one
  EXPECT_TRUE(daemon_.TakeOf(DescriptorKind::kRtr).empty());
}

TEST_F(RankEngineRtrsTest, SaysNothingUnlessAskedTo) {
  TestNode node(NodeOptions{.local_ranks = 1, .remote_ranks = 1});
  FakeDaemon daemon(node.view(0));
  ReceiveInHeap(node[0], kFar, kTag);
  EXPECT_TRUE(daemon.Take().empty());
}

TEST_F(RankEngineRtrsTest, AFullLaneCostsTheRtrAndNothingElse) {
  daemon_.FillLane();
  const uint32_t receive = Receive(kFar, kTag);
  EXPECT_EQ(rtr(receive), RtrState::kQuiet);
  EXPECT_EQ(rank().state(receive), RequestState::kPosted);
  EXPECT_TRUE(rank().Cancel(receive));
  EXPECT_EQ(rank().Finish(receive).error, ErrorCode::kCancelled);
}

// ---- Being written ---------------------------------------------------------------------------

TEST_F(RankEngineRtrsTest, AMessageThatIsWrittenCompletesWithTheDaemonsWord) {
  const uint32_t receive = Receive(kFar, kTag);
  PeerPuts(receive, kLarge - 1);
  rank().Progress();
  EXPECT_EQ(rank().state(receive), RequestState::kRemoteWait);
  EXPECT_EQ(book().taken, 1U);
  EXPECT_TRUE(daemon_.TakeOf(DescriptorKind::kRndvGet).empty());
  PutIsDone(receive);
  const Outcome outcome = rank().Finish(receive);
  EXPECT_EQ(outcome.error, ErrorCode::kOk);
  EXPECT_EQ(outcome.source, static_cast<int32_t>(kFar));
  EXPECT_EQ(outcome.tag, kTag);
  EXPECT_EQ(outcome.message_bytes, kLarge - 1);
  const shm::Statistics statistics(node_.view(0).layout->counters);
  EXPECT_EQ(statistics.Read(shm::Statistic::kRtrs), 1U);
  EXPECT_EQ(statistics.Read(shm::Statistic::kWrittenMessages), 1U);
  EXPECT_EQ(statistics.Read(shm::Statistic::kWrittenBytes), kLarge - 1);
  EXPECT_EQ(rank().poison(), ErrorCode::kOk);
}

TEST_F(RankEngineRtrsTest, ALongerMessageIsTruncated) {
  const uint32_t receive = Receive(kFar, kTag);
  PeerPuts(receive, kLarge + 1);
  rank().Progress();
  PutIsDone(receive);
  const Outcome outcome = rank().Finish(receive);
  EXPECT_EQ(outcome.error, ErrorCode::kTruncated);
  EXPECT_EQ(outcome.message_bytes, kLarge + 1);
  EXPECT_EQ(outcome.data.size(), kLarge);
}

TEST_F(RankEngineRtrsTest, AnErrorOfTheWriteIsTheReceives) {
  const uint32_t receive = Receive(kFar, kTag);
  PeerPuts(receive);
  rank().Progress();
  PutIsDone(receive, ErrorCode::kTimeout);
  EXPECT_EQ(rank().Finish(receive).error, ErrorCode::kTimeout);
}

TEST_F(RankEngineRtrsTest, AMessageOfAnotherWayEndsTheRtr) {
  const uint32_t small = Receive(kFar, kTag);
  const uint32_t large = Receive(kFar, kTag + 1);
  (void)daemon_.Take();
  ASSERT_TRUE(daemon_.Eager(kFar, kTag, "small"));
  ASSERT_TRUE(daemon_.RemoteRts(kFar, kTag + 1, kLarge));
  rank().Progress();
  EXPECT_EQ(rank().Wait(small).data, "small");
  EXPECT_EQ(rtr(large), RtrState::kQuiet);
  const std::vector<Descriptor> said = daemon_.Take();
  ASSERT_EQ(said.size(), 2U);
  EXPECT_EQ(said[0].kind, static_cast<uint8_t>(DescriptorKind::kWithdraw));
  EXPECT_EQ(said[0].flags, shm::kFlagMatched);
  EXPECT_EQ(said[1].kind, static_cast<uint8_t>(DescriptorKind::kRndvGet)) << "says it by itself";
}

// The daemon lets no such packet through.
TEST_F(RankEngineRtrsTest, AWriteThatNobodyAskedForIsCorrupt) {
  for (int what = 0; what < 6; ++what) {
    TestNode node(NodeOptions{.local_ranks = 1, .remote_ranks = 2}, ReceiverFirst());
    FakeDaemon daemon(node.view(0));
    const uint32_t request = ReceiveInHeap(node[0], kFar, kTag);
    Descriptor descriptor{};
    descriptor.kind = static_cast<uint8_t>(DescriptorKind::kPut);
    descriptor.source = what == 0 ? kOther : kFar;
    descriptor.tag = what == 1 ? kTag + 1 : kTag;
    descriptor.context = what == 2 ? 1 : 0;
    descriptor.size_bytes = kLarge;
    const uint32_t generation = node[0].slot(request).generation;
    SetPayload(&descriptor, shm::PutCommand{9,
                                            9,
                                            what == 3   ? 0
                                            : what == 4 ? 1'000'000
                                                        : request,
                                            what == 5 ? generation - 1 : generation,
                                            {}});
    ASSERT_TRUE(daemon.Push(descriptor));
    node[0].Progress();
    EXPECT_EQ(node[0].poison(), ErrorCode::kCorrupt) << what;
    EXPECT_EQ(node[0].state(request), RequestState::kPosted) << what;
  }
}

// ---- Cancelling ------------------------------------------------------------------------------

TEST_F(RankEngineRtrsTest, CancellingWaitsForTheSourcesAgreement) {
  const uint32_t receive = Receive(kFar, kTag);
  (void)daemon_.Take();
  EXPECT_TRUE(rank().Cancel(receive));
  EXPECT_TRUE(rank().Cancel(receive)) << "once is enough, twice does no harm";
  EXPECT_EQ(rank().state(receive), RequestState::kPosted);
  const std::vector<Descriptor> said = daemon_.TakeOf(DescriptorKind::kWithdraw);
  ASSERT_EQ(said.size(), 1U);
  EXPECT_EQ(said[0].destination, kFar);
  EXPECT_EQ(said[0].flags, 0);
  EXPECT_EQ(PayloadOf<shm::RtrWords>(said[0]).receive, receive);
  IsWithdrawn(receive);
  EXPECT_EQ(rank().Finish(receive).error, ErrorCode::kCancelled);
  EXPECT_EQ(node_.view(0).match()->posted_count, 0U);
}

TEST_F(RankEngineRtrsTest, AMessageThatComesFirstWins) {
  for (const bool put : {true, false}) {
    const uint32_t receive = Receive(kFar, kTag);
    EXPECT_TRUE(rank().Cancel(receive));
    if (put) {
      PeerPuts(receive);
    } else {
      ASSERT_TRUE(daemon_.Eager(kFar, kTag, "first"));
    }
    rank().Progress();
    IsWithdrawn(receive);
    EXPECT_NE(rank().state(receive), RequestState::kPosted);
    if (put) {
      PutIsDone(receive);
    }
    EXPECT_EQ(rank().Wait(receive).error, ErrorCode::kOk);
  }
}

TEST_F(RankEngineRtrsTest, AnAnswerForAnEarlierUseIsIgnored) {
  const uint32_t receive = Receive(kFar, kTag);
  EXPECT_TRUE(rank().Cancel(receive));
  ASSERT_TRUE(
      daemon_.Result(DescriptorKind::kWithdrawn, receive, rank().slot(receive).generation - 1));
  ASSERT_TRUE(daemon_.Result(DescriptorKind::kWithdrawn, 0, 0));
  ASSERT_TRUE(daemon_.Result(DescriptorKind::kWithdrawn, ~0U, 0));
  rank().Progress();
  EXPECT_EQ(rank().state(receive), RequestState::kPosted);
}

TEST_F(RankEngineRtrsTest, WithdrawsLaterWhenTheLaneIsFull) {
  const uint32_t first = Receive(kFar, kTag);
  const uint32_t second = Receive(kFar, kTag + 1);
  daemon_.FillLane();
  EXPECT_TRUE(rank().Cancel(first));
  EXPECT_TRUE(rank().Cancel(second));
  EXPECT_EQ(rtr(first), RtrState::kToWithdraw);
  EXPECT_TRUE(rank().engine().WaitsForRoom());
  rank().Progress();
  EXPECT_EQ(rtr(first), RtrState::kToWithdraw);
  (void)daemon_.Take();
  // A message matches one of them meanwhile.
  ASSERT_TRUE(daemon_.Eager(kFar, kTag + 1, "first"));
  rank().Progress();
  rank().Progress();
  const std::vector<Descriptor> said = daemon_.TakeOf(DescriptorKind::kWithdraw);
  ASSERT_EQ(said.size(), 2U);
  EXPECT_EQ(rank().Wait(second).data, "first");
  EXPECT_EQ(rtr(first), RtrState::kWithdrawing);
  EXPECT_FALSE(rank().engine().WaitsForRoom());
  IsWithdrawn(first);
  EXPECT_EQ(rank().Finish(first).error, ErrorCode::kCancelled);
}

// ---- Sending by an RTR --------------------------------------------------------------------

TEST_F(RankEngineRtrsTest, ALargeSendUsesTheRtrForIt) {
  PeerAnnounces(5, kTag, 0, 3);
  const uint32_t send = Send(kTag);  // it looks into the lane first
  const std::vector<Descriptor> said = daemon_.Take();
  ASSERT_EQ(said.size(), 1U);
  EXPECT_EQ(said[0].kind, static_cast<uint8_t>(DescriptorKind::kPut));
  EXPECT_EQ(said[0].tag, kTag);
  EXPECT_EQ(said[0].size_bytes, kLarge);
  const auto put = PayloadOf<shm::PutCommand>(said[0]);
  EXPECT_EQ(put.send_request, send);
  EXPECT_EQ(put.send_generation, rank().slot(send).generation);
  EXPECT_EQ(put.receive, 5U);
  EXPECT_EQ(put.generation, 3U);
  EXPECT_EQ(put.where.region, 3U);
  EXPECT_EQ(rank().state(send), RequestState::kRemoteWait);
  EXPECT_EQ(book().held, 0U);
  Send(kTag);
  EXPECT_EQ(daemon_.TakeOf(DescriptorKind::kRemoteRts).size(), 1U) << "one message for each RTR";
  daemon_.Result(DescriptorKind::kSendDone, send, put.send_generation);
  rank().Progress();
  EXPECT_EQ(rank().Finish(send).error, ErrorCode::kOk);
}

TEST_F(RankEngineRtrsTest, OtherSendsGoTheirWayAndDropIt) {
  PeerAnnounces(5, kTag, 0);
  Send(kTag + 1);
  EXPECT_EQ(daemon_.TakeOf(DescriptorKind::kRemoteRts).size(), 1U);
  EXPECT_EQ(book().held, 1U);
  Send(kTag, kLarge, /*region=*/0);  // only heap buffers are written
  EXPECT_EQ(daemon_.TakeOf(DescriptorKind::kRemoteRts).size(), 1U);
  EXPECT_EQ(book().held, 0U);
  PeerAnnounces(5, kTag, 2);
  rank().Progress();
  rank().Isend(kFar, kTag, "small");
  EXPECT_EQ(book().held, 0U);
  Send(kTag);
  EXPECT_EQ(daemon_.TakeOf(DescriptorKind::kRemoteRts).size(), 1U);
}

// Both happen at once: the read wins.
TEST_F(RankEngineRtrsTest, AnRtrThatCrossesAnRtsIsDropped) {
  Send(kTag);
  PeerAnnounces(5, kTag, 0);
  rank().Progress();
  EXPECT_EQ(book().held, 0U);
  PeerAnnounces(6, kTag, 1);  // an RTR that knows of it is not dropped
  rank().Progress();
  EXPECT_EQ(book().held, 1U);
  PeerAnnounces(7, kTag, 2);  // an RTR that knows of more than was sent is
  rank().Progress();
  EXPECT_EQ(book().held, 1U);
  EXPECT_EQ(book().rtrs[0].receive, 6U);
}

TEST_F(RankEngineRtrsTest, ALaterRtrForTheSameMessagesTakesItsPlace) {
  PeerAnnounces(5, kTag, 0);
  PeerAnnounces(6, kTag, 0);
  rank().Progress();
  ASSERT_EQ(book().held, 1U);
  EXPECT_EQ(book().rtrs[0].receive, 6U);
}

TEST_F(RankEngineRtrsTest, WithoutRoomTheOldestGoes) {
  for (uint32_t i = 0; i < shm::kHeldRtrs + 2; ++i) {
    PeerAnnounces(10 + i, static_cast<int32_t>(i), 0);
  }
  rank().Progress();
  ASSERT_EQ(book().held, shm::kHeldRtrs);
  EXPECT_EQ(book().rtrs[0].receive, 12U);
}

TEST_F(RankEngineRtrsTest, AWithdrawnRtrIsNotUsed) {
  PeerAnnounces(5, kTag, 0, 3);
  ASSERT_TRUE(daemon_.Push(DescriptorKind::kWithdraw, kFar, 0, 0, shm::RtrWords{5, 3, 0, {}}));
  Send(kTag);
  EXPECT_EQ(daemon_.TakeOf(DescriptorKind::kRemoteRts).size(), 1U);
}

TEST_F(RankEngineRtrsTest, ASendThatWaitedForRoomUsesItToo) {
  PeerAnnounces(5, kTag, 0);
  rank().Progress();
  daemon_.FillLane();
  const uint32_t send = Send(kTag);
  EXPECT_EQ(rank().state(send), RequestState::kQueued);
  EXPECT_EQ(book().held, 1U);
  EXPECT_EQ(book().sent, 0U);
  (void)daemon_.Take();
  rank().Progress();
  EXPECT_EQ(daemon_.TakeOf(DescriptorKind::kPut).size(), 1U);
  EXPECT_EQ(book().sent, 1U);
}

TEST_F(RankEngineRtrsTest, ABookThatIsNotWhatItShouldBeLeadsNowhere) {
  book().held = 1000;
  Send(kTag);
  EXPECT_EQ(daemon_.TakeOf(DescriptorKind::kRemoteRts).size(), 1U);
  EXPECT_EQ(rank().poison(), ErrorCode::kOk);
}

// ---- Deaths and cuts -------------------------------------------------------------------------

TEST_F(RankEngineRtrsTest, TheSourcesEndIsHeardOnceNobodyWrites) {
  for (const ErrorCode error : {ErrorCode::kLinkDown, ErrorCode::kPeerDied}) {
    const uint32_t receive = Receive(kFar, kTag);
    (void)daemon_.Take();
    node_.MarkDead(0, kFar, error);
    rank().Progress();
    EXPECT_EQ(rank().state(receive), RequestState::kRemoteWait);
    EXPECT_EQ(node_.view(0).match()->posted_count, 0U) << "nothing else may come for it";
    EXPECT_EQ(daemon_.TakeOf(DescriptorKind::kWithdraw).size(), 1U);
    IsWithdrawn(receive);
    EXPECT_EQ(rank().Finish(receive).error, error);
    node_.MarkDead(0, kFar, ErrorCode::kOk);
    rank().Progress();
  }
}

TEST_F(RankEngineRtrsTest, AWriteThatWasUnderWayAtTheSourcesEndCounts) {
  const uint32_t receive = Receive(kFar, kTag);
  node_.MarkDead(0, kFar);
  rank().Progress();
  PeerPuts(receive);  // announced before
  rank().Progress();
  IsWithdrawn(receive);
  EXPECT_EQ(rank().state(receive), RequestState::kRemoteWait);
  PutIsDone(receive);
  EXPECT_EQ(rank().Finish(receive).error, ErrorCode::kOk);
}

TEST_F(RankEngineRtrsTest, AWriteUnderWayEndsWithTheDaemonsWordAfterACut) {
  const uint32_t receive = Receive(kFar, kTag);
  PeerPuts(receive);
  rank().Progress();
  node_.MarkDead(0, kFar, ErrorCode::kLinkDown);
  rank().Progress();
  EXPECT_EQ(rank().state(receive), RequestState::kRemoteWait) << "it may still be written";
  PutIsDone(receive, ErrorCode::kLinkDown);
  EXPECT_EQ(rank().Finish(receive).error, ErrorCode::kLinkDown);
}

// The announcement was lost with the link: the daemon's notice, and its answer, come in either
// order.
TEST_F(RankEngineRtrsTest, AWriteWhoseAnnouncementWasLostEndsOnce) {
  for (const bool first : {true, false}) {
    const uint32_t receive = Receive(kFar, kTag);
    node_.MarkDead(0, kFar, ErrorCode::kLinkDown);
    if (first) {
      PutIsDone(receive, ErrorCode::kLinkDown);
      IsWithdrawn(receive);
    } else {
      rank().Progress();
      IsWithdrawn(receive);
      PutIsDone(receive, ErrorCode::kLinkDown);
    }
    EXPECT_EQ(rank().Finish(receive).error, ErrorCode::kLinkDown);
    node_.MarkDead(0, kFar, ErrorCode::kOk);
    rank().Progress();
  }
}

TEST_F(RankEngineRtrsTest, WithdrawsAfterACutEvenWhenTheLaneIsFull) {
  const uint32_t receive = Receive(kFar, kTag);
  daemon_.FillLane();
  node_.MarkDead(0, kFar, ErrorCode::kLinkDown);
  rank().Progress();
  EXPECT_EQ(rtr(receive), RtrState::kToWithdraw);
  (void)daemon_.Take();
  rank().Progress();
  EXPECT_EQ(daemon_.TakeOf(DescriptorKind::kWithdraw).size(), 1U);
  IsWithdrawn(receive);
  EXPECT_EQ(rank().Finish(receive).error, ErrorCode::kLinkDown);
}

TEST_F(RankEngineRtrsTest, ACutBeginsAllCountsAnewOnce) {
  PeerAnnounces(5, kTag, 0);
  rank().Isend(kFar, 1, "x");
  ASSERT_TRUE(daemon_.Eager(kFar, 1, "y"));
  rank().Progress();
  EXPECT_EQ(book().held, 1U);
  EXPECT_EQ(book().sent, 1U);
  EXPECT_EQ(book().taken, 1U);
  node_.MarkDead(0, kFar, ErrorCode::kLinkDown);
  rank().Progress();
  EXPECT_EQ(book().held, 0U);
  EXPECT_EQ(book().sent, 0U);
  EXPECT_EQ(book().taken, 0U);
  // The peer's new life begins before this node takes it up; the worker notices the cut now.
  ASSERT_TRUE(daemon_.Eager(kFar, 1, "z"));
  rank().Progress();
  TestRank worker(node_, 0, Runner::kWorker);
  worker.Progress();
  EXPECT_EQ(book().taken, 1U) << "of the new life";
  EXPECT_EQ(node_.view(0).by_rank.peers[kFar].drained - node_.view(0).by_rank.peers[kFar].returned,
            1U);
}

// ---- Another engine of the session goes on ----------------------------------------------------

TEST_F(RankEngineRtrsTest, TheWorkerTakesOver) {
  TestRank worker(node_, 0, Runner::kWorker);
  const uint32_t receive = Receive(kFar, kTag);
  PeerPuts(receive);
  PeerAnnounces(5, kTag, 0);
  worker.Progress();
  EXPECT_EQ(rank().state(receive), RequestState::kRemoteWait);
  Send(kTag);
  EXPECT_EQ(daemon_.TakeOf(DescriptorKind::kPut).size(), 1U);
  ASSERT_TRUE(
      daemon_.Result(DescriptorKind::kRndvGetDone, receive, rank().slot(receive).generation));
  worker.Progress();
  EXPECT_EQ(rank().Finish(receive).error, ErrorCode::kOk);
}

}  // namespace
}  // namespace ferry::engine
