// When one rank wants a direct link, what it pushes and announces with one, and what it does when
// one is lost.
#include <tuple>

#include "tests/engine/rank_engine_paths_fixture.h"

namespace ferry::engine {
namespace {

using shm::Descriptor;
using shm::DescriptorKind;
using shm::LinkMatter;
using shm::LinkState;
using shm::PeerPath;
using shm::RequestState;

class RankEngineLinksTest : public RankEnginePathsTest {
 protected:
  // The core has lost the link, and lets go of the request.
  void CoreLoses(DescriptorKind kind, uint32_t request) {
    ASSERT_TRUE(core_.Result(kind, request, rank().slot(request).generation, ErrorCode::kLinkDown));
    rank().Progress();
  }
};

// ---- Asking -------------------------------------------------------------------------------------

TEST_F(RankEngineLinksTest, AsksNeverUnlessTold) {
  for (uint32_t i = 0; i < kRemoteWindow; ++i) {
    rank().Isend(kFar, kTag, "x");
  }
  rank().Progress();
  EXPECT_TRUE(TakeMatters().empty());
}

TEST_F(RankEngineLinksTest, AsksOnceAfterSoManyMessagesOrBytes) {
  for (const bool by_bytes : {false, true}) {
    link() = {};
    session().link_after_messages = by_bytes ? 0 : 10;
    session().link_after_bytes = by_bytes ? 10 * 20'000 : 0;
    for (uint32_t i = 1; i <= 15; ++i) {
      Rts();
      rank().Progress();
      EXPECT_EQ(TakeMatters().size(), i == 10 ? 1U : 0U) << i;
    }
    EXPECT_EQ(state(), LinkState::kAsked);
    EXPECT_EQ(state(kOther), LinkState::kNone);
  }
}

TEST_F(RankEngineLinksTest, AsksAgainAfterMoreIfItIsRefused) {
  session().link_after_messages = 2;
  uint32_t asked = 0;
  for (uint32_t i = 1; i <= 2 + 2 * kRefusedPatience; ++i) {
    rank().Isend(kFar, kTag, "x");
    rank().Progress();
    const bool is_due = i == 2 || i == 2 + 2 * kRefusedPatience;
    const size_t matters = TakeMatters().size();
    EXPECT_EQ(matters, is_due ? 1U : 0U) << i;
    asked += matters;
    if (matters != 0) {
      engine().paths().RefuseLink(kFar);
      EXPECT_EQ(state(), LinkState::kRefused);
    }
  }
  EXPECT_EQ(asked, 2U);
}

TEST_F(RankEngineLinksTest, AsksOnceThereIsRoom) {
  session().link_after_messages = 1;
  rank().Isend(kFar, kTag, "x");
  daemon_.FillLane();
  rank().Progress();
  EXPECT_EQ(state(), LinkState::kToAsk);
  EXPECT_TRUE(engine().WaitsForRoom());
  (void)daemon_.Take();
  rank().Progress();
  EXPECT_EQ(TakeMatters(), std::vector<LinkMatter>{LinkMatter::kWanted});
  EXPECT_FALSE(engine().WaitsForRoom());
}

TEST_F(RankEngineLinksTest, DoesNotAskForALinkThatItHas) {
  session().link_after_messages = 1;
  ASSERT_EQ(Use(), ErrorCode::kOk);
  Answer();
  rank().Isend(kFar, kTag, "x");
  rank().Progress();
  EXPECT_TRUE(TakeMatters().empty());
  Leave();
  Answer();
  rank().Isend(kFar, kTag, "x");
  rank().Progress();
  EXPECT_EQ(TakeMatters(), std::vector<LinkMatter>{LinkMatter::kWanted});
}

// ---- Pushed RTSs ------------------------------------------------------------------------------

TEST_F(RankEngineLinksTest, RtsByTheLinkArePushedUpToTheWindow) {
  constexpr uint64_t kSize = 100'000;
  const auto flags = [this](FakeDaemon& core) {
    std::vector<bool> pushed;
    for (const Descriptor& descriptor : core.TakeOf(DescriptorKind::kRemoteRts)) {
      pushed.push_back((descriptor.flags & shm::kFlagPushed) != 0);
    }
    return pushed;
  };
  Rts(kSize);
  EXPECT_EQ(flags(daemon_), std::vector<bool>{false});
  UseAndAnswer();
  Rts(kSize, shm::kRequestSynchronous);
  Rts(options_.push_max_bytes + 1);
  EXPECT_EQ(flags(core_), (std::vector<bool>{false, false}));
  for (int i = 0; i < 11; ++i) {
    Rts(kSize);
  }
  std::vector<bool> expected(11, true);
  expected[10] = false;
  EXPECT_EQ(flags(core_), expected);
  ASSERT_TRUE(core_.Push(DescriptorKind::kCredit, kFar, 0, 0,
                         shm::CreditReturn{peer().credited, 0, 3 * kSize, 0, {}}));
  rank().Progress();
  for (int i = 0; i < 4; ++i) {
    Rts(kSize);
  }
  EXPECT_EQ(flags(core_), (std::vector<bool>{true, true, true, false}));
  ASSERT_TRUE(core_.Push(DescriptorKind::kCredit, kFar, 0, 0,
                         shm::CreditReturn{peer().credited, 0, 1U << 30, 0, {}}));
  rank().Progress();
  EXPECT_EQ(peer().pushed - peer().pushed_credited, 10 * kSize) << "nobody gives back more";
}

// The room is for what waits before it.
TEST_F(RankEngineLinksTest, NothingIsPushedAtOnceBehindWhatWaits) {
  constexpr uint64_t kSize = 100'000;
  EXPECT_FALSE(engine().sends().PushesAtOnce(kFar, kSize)) << "by the daemons";
  UseAndAnswer();
  EXPECT_TRUE(engine().sends().PushesAtOnce(kFar, kSize));
  EXPECT_FALSE(engine().sends().PushesAtOnce(kFar, options_.push_max_bytes + 1));
  while (peer().queue_first == 0) {
    rank().Isend(kFar, kTag, "x");
  }
  EXPECT_TRUE(engine().sends().MayPush(kFar, kSize));
  EXPECT_FALSE(engine().sends().PushesAtOnce(kFar, kSize)) << "without credit";
  (void)core_.Take();
  ASSERT_TRUE(
      core_.Push(DescriptorKind::kCredit, kFar, 0, 0, shm::CreditReturn{peer().sent, 0, 0, 0, {}}));
  rank().Progress();
  (void)core_.Take();
  EXPECT_TRUE(engine().sends().PushesAtOnce(kFar, kSize));
  core_.FillLane();
  EXPECT_FALSE(engine().sends().PushesAtOnce(kFar, kSize)) << "no room in the lane";
}

TEST_F(RankEngineLinksTest, GivesPushedBytesBackOnceTheyAreMatchedOrRetracted) {
  constexpr uint64_t kSize = kPushWindow / 2 - 1;
  PeerSwitches(daemon_, 1);
  PeerRts(core_, 1, kSize, shm::kFlagPushed);
  PeerRts(core_, 2, 1000, shm::kFlagPushed);
  PeerRts(core_, 3, kSize);
  EXPECT_TRUE(core_.Take().empty()) << "nothing is matched yet";
  rank().Irecv(kFar, kTag, 16);
  rank().Progress();
  EXPECT_EQ(core_.TakeOf(DescriptorKind::kCredit).size(), 0U) << "not half of the window";
  ASSERT_TRUE(core_.Push(DescriptorKind::kRetract, kFar, kTag, 0, shm::RemoteRts{7, 3, 2, {}}));
  rank().Progress();
  const std::vector<Descriptor> said = core_.TakeOf(DescriptorKind::kCredit);
  ASSERT_EQ(said.size(), 1U);
  EXPECT_EQ(PayloadOf<shm::CreditReturn>(said[0]).bytes, kSize + 1000);
  rank().Irecv(kFar, kTag, kSize);
  rank().Irecv(kFar, kTag, kPushWindow);
  PeerRts(core_, 4, kPushWindow / 2, shm::kFlagPushed);  // matched as it comes
  const std::vector<Descriptor> again = core_.TakeOf(DescriptorKind::kCredit);
  ASSERT_EQ(again.size(), 1U);
  EXPECT_EQ(PayloadOf<shm::CreditReturn>(again[0]).bytes, kSize + 1000 + kPushWindow / 2);
  EXPECT_EQ(session().credits_owed, 0U);
}

// ---- RTRs ------------------------------------------------------------------------------------

TEST_F(RankEngineLinksTest, KeepsNoRtrsOfAPeerWithAnotherPath) {
  const auto announce = [this](uint32_t receive) {
    ASSERT_TRUE(
        daemon_.Push(DescriptorKind::kRtr, kFar, kTag, 100'000, shm::RtrWords{receive, 1, 0, {}}));
    rank().Progress();
  };
  announce(4);
  EXPECT_EQ(node_.view(0).by_rank.rtrs[kFar].held, 1U);
  ASSERT_EQ(Use(), ErrorCode::kOk);
  EXPECT_EQ(node_.view(0).by_rank.rtrs[kFar].held, 0U);
  announce(5);
  Answer();
  announce(6);
  EXPECT_EQ(node_.view(0).by_rank.rtrs[kFar].held, 0U);
  Leave();
  Answer();
  announce(7);
  EXPECT_EQ(node_.view(0).by_rank.rtrs[kFar].held, 1U);
}

TEST_F(RankEngineLinksTest, AnnouncesNothingToAPeerThatUsesTheLinkAndEndsWhatWasAnnounced) {
  const auto receive = [this] {
    const uint32_t request =
        rank().NewRequest(shm::RequestKind::kReceive, kFar, kTag, 0, std::string(100'000, ' '));
    rank().slot(request).buffer.region = 3;
    Effects effects;
    EXPECT_EQ(engine().receives().StartReceive(request, effects), ErrorCode::kOk);
    return request;
  };
  receive();
  EXPECT_EQ(daemon_.TakeOf(DescriptorKind::kRtr).size(), 1U);
  PeerSwitches(daemon_, 1);
  (void)daemon_.Take();
  PeerRts(core_, 1);
  const std::vector<Descriptor> said = daemon_.TakeOf(DescriptorKind::kWithdraw);
  ASSERT_EQ(said.size(), 1U) << "the rendezvous get does not tell ferryd";
  EXPECT_EQ(said[0].flags, shm::kFlagMatched);
  EXPECT_EQ(core_.TakeOf(DescriptorKind::kRndvGet).size(), 1U);
  receive();
  EXPECT_TRUE(daemon_.TakeOf(DescriptorKind::kRtr).empty());
}

// ---- Faults -------------------------------------------------------------------------------------

TEST_F(RankEngineLinksTest, ALostLinkStopsThePairUntilTheDaemonHasPartedIt) {
  const uint32_t receive = rank().Irecv(kFar, kTag, 16);
  PeerSwitches(daemon_, 1);
  UseAndAnswer();
  const uint32_t rts = Rts(20'000, shm::kRequestSynchronous);
  Fail();
  EXPECT_EQ(engine().paths().PathTo(kFar), PeerPath::kBroken);
  EXPECT_EQ(TakeMatters(), std::vector<LinkMatter>{LinkMatter::kBroken});
  EXPECT_EQ(Use(), ErrorCode::kLinkDown);
  Fail();
  const uint32_t queued = rank().Isend(kFar, kTag, "x");
  EXPECT_EQ(rank().state(queued), RequestState::kQueued);

  node_.MarkDead(0, kFar, ErrorCode::kLinkDown);
  rank().Progress();
  for (const uint32_t request : {receive, rts, queued}) {
    EXPECT_EQ(rank().Finish(request).error, ErrorCode::kLinkDown);
  }
  EXPECT_EQ(engine().paths().PathTo(kFar), PeerPath::kDaemon);
  EXPECT_EQ(state(), LinkState::kNone);
  EXPECT_FALSE(engine().paths().UsesLinks());
  node_.MarkDead(0, kFar, ErrorCode::kOk);
  ASSERT_TRUE(core_.Eager(kFar, kTag, "of before"));
  ASSERT_TRUE(daemon_.Eager(kFar, kTag, "new"));
  rank().Progress();
  EXPECT_EQ(rank().Receive(kFar, kTag, 16).data, "new");
}

// Its core has let go of the message, but why the link is lost only the daemon knows.
class RankEngineLossTest : public RankEngineLinksTest,
                           public testing::WithParamInterface<std::tuple<ErrorCode, bool>> {};

TEST_P(RankEngineLossTest, WhatIsUnderWayEndsWithTheWordOfTheDaemon) {
  const auto [word, knows_before] = GetParam();
  PeerSwitches(daemon_, 1);
  UseAndAnswer();
  const uint32_t rts = Rts(20'000, shm::kRequestSynchronous);
  PeerRts(core_, 1);
  const uint32_t receive = rank().Irecv(kFar, kTag, 20'000);
  ASSERT_EQ(core_.TakeOf(DescriptorKind::kRndvGet).size(), 1U);
  if (knows_before) {
    node_.MarkDead(0, kFar, word);
  }
  CoreLoses(DescriptorKind::kSendDone, rts);
  CoreLoses(DescriptorKind::kRndvGetDone, receive);
  Fail();
  if (!knows_before) {
    for (const uint32_t request : {rts, receive}) {
      EXPECT_EQ(rank().state(request), RequestState::kRemoteWait);
    }
    EXPECT_FALSE(rank().Cancel(rts));
    EXPECT_FALSE(engine().paths().IsLinkFree(kFar));
    EXPECT_EQ(TakeMatters(), std::vector<LinkMatter>{LinkMatter::kBroken});
    node_.MarkDead(0, kFar, word);
  }
  rank().Progress();
  for (const uint32_t request : {rts, receive}) {
    ASSERT_EQ(rank().state(request), RequestState::kComplete);
    EXPECT_EQ(rank().Finish(request).error, word);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Words, RankEngineLossTest,
    testing::Combine(testing::Values(ErrorCode::kPeerDied, ErrorCode::kLinkDown), testing::Bool()));

// Both directions had left it, but an RTS still waited: the daemon has to part the two.
TEST_F(RankEngineLinksTest, ALinkThatOnlyAnRtsTakesIsNotLostWithoutAWord) {
  UseAndAnswer();
  const uint32_t rts = Rts(20'000, shm::kRequestSynchronous);
  Leave();
  Answer();
  CoreLoses(DescriptorKind::kSendDone, rts);
  Fail();
  EXPECT_EQ(engine().paths().PathTo(kFar), PeerPath::kBroken);
  EXPECT_EQ(TakeMatters(), std::vector<LinkMatter>{LinkMatter::kBroken});
  node_.MarkDead(0, kFar, ErrorCode::kLinkDown);
  rank().Progress();
  EXPECT_EQ(rank().Finish(rts).error, ErrorCode::kLinkDown);
  EXPECT_EQ(engine().paths().PathTo(kFar), PeerPath::kDaemon);
}

// Its sender was through with it before the link was let go.
TEST_F(RankEngineLinksTest, APushedMessageThatWaitsOutlivesItsLink) {
  PeerSwitches(daemon_, 1);
  PeerRts(core_, 1, 20'000, shm::kFlagPushed);
  PeerRts(core_, 2, 20'000, shm::kFlagPushed);
  PeerSwitches(core_, 2);
  Fail();
  EXPECT_EQ(engine().paths().PathTo(kFar), PeerPath::kDaemon);
  EXPECT_TRUE(TakeMatters().empty());
  for (const ErrorCode error : {ErrorCode::kOk, ErrorCode::kLinkDown}) {  // the last one was cut
    const uint32_t receive = rank().Irecv(kFar, kTag, 20'000);
    ASSERT_EQ(core_.TakeOf(DescriptorKind::kRndvGet).size(), 1U);
    ASSERT_TRUE(core_.Result(DescriptorKind::kRndvGetDone, receive, rank().slot(receive).generation,
                             error));
    rank().Progress();
    EXPECT_EQ(rank().Finish(receive).error, error);
  }
}

// The core answers rendezvous gets of what an earlier link has brought, and no other answer
// follows.
TEST_F(RankEngineLinksTest, RndvGetsThatOutliveTheirLinkEndWithTheCoresAnswer) {
  PeerSwitches(daemon_, 1);
  PeerRts(core_, 1);
  PeerRts(core_, 2);
  const uint32_t early = rank().Irecv(kFar, kTag, 20'000);
  node_.MarkDead(0, kFar, ErrorCode::kLinkDown);
  rank().Progress();
  node_.MarkDead(0, kFar, ErrorCode::kOk);
  rank().Progress();
  (void)rank().Isend(kFar, kTag, "x");  // hears of the cut
  EXPECT_TRUE(engine().paths().IsLinkFree(kFar)) << "these are of no link that there is";
  const uint32_t late = rank().Irecv(kFar, kTag, 20'000);
  for (const uint32_t request : {early, late}) {
    EXPECT_EQ(rank().state(request), RequestState::kRemoteWait);
    CoreLoses(DescriptorKind::kRndvGetDone, request);
    EXPECT_EQ(rank().Finish(request).error, ErrorCode::kLinkDown);
  }
}

TEST_F(RankEngineLinksTest, CellsOfWhatAnEarlierLinkBringsAreGivenBack) {
  const uint32_t cell = core_.producer().TryTakeCell();
  ASSERT_NE(cell, shm::kNoCell);
  Descriptor descriptor{};
  descriptor.kind = static_cast<uint8_t>(DescriptorKind::kEager);
  descriptor.flags = shm::kFlagCell;
  descriptor.source = kFar;
  descriptor.cell = static_cast<uint16_t>(cell);
  descriptor.size_bytes = 100;
  ASSERT_TRUE(core_.Push(descriptor));
  rank().Progress();
  EXPECT_EQ(node_.view(0).inbox.lane(shm::LinkLane(1))->cell_state[cell],
            static_cast<uint8_t>(shm::CellState::kFree));
  EXPECT_EQ(node_.view(0).match()->unexpected_count, 0U);
  EXPECT_EQ(peer().drained, 0U);
}

TEST_F(RankEngineLinksTest, ALinkThatNothingTakesIsLostWithoutAWord) {
  Fail();
  UseAndAnswer();
  Leave();
  Answer();
  Fail();
  rank().Progress();
  EXPECT_EQ(engine().paths().PathTo(kFar), PeerPath::kDaemon);
  EXPECT_TRUE(TakeMatters().empty());
}

TEST_F(RankEngineLinksTest, WhatThePeerSaidByTheLinkBeforeItDiedCounts) {
  PeerSwitches(daemon_, 1);
  UseAndAnswer();
  const uint32_t first = rank().Irecv(kFar, kTag, 16);
  const uint32_t second = rank().Irecv(kFar, kTag, 16);
  ASSERT_TRUE(core_.Eager(kFar, kTag, "last"));
  node_.MarkDead(0, kFar);
  rank().Progress();
  EXPECT_EQ(rank().Wait(first).data, "last");
  EXPECT_EQ(rank().Finish(second).error, ErrorCode::kPeerDied);
  EXPECT_FALSE(engine().paths().SendsByLink());
  EXPECT_EQ(Use(), ErrorCode::kPeerDied);
  Fail();
  EXPECT_FALSE(engine().paths().UsesLinks());
  EXPECT_TRUE(TakeMatters().empty());
}

TEST_F(RankEngineLinksTest, NothingIsSwitchedAcrossACut) {
  node_.MarkDead(0, kFar, ErrorCode::kLinkDown);
  EXPECT_EQ(Use(), ErrorCode::kLinkDown) << "the cut is not applied yet, and would end this, too";
  rank().Progress();
  EXPECT_EQ(Use(), ErrorCode::kOk);
  EXPECT_TRUE(daemon_.Take().empty()) << "the peer is not back";
  node_.MarkDead(0, kFar, ErrorCode::kOk);
  rank().Progress();
  rank().Progress();
  EXPECT_EQ(daemon_.TakeOf(DescriptorKind::kSwitch).size(), 1U);
}

// The peer was back first, and has said its marker; then the link was lost.
TEST_F(RankEngineLinksTest, ALinkLostBetweenACutAndThePeersReturnIsToldThen) {
  node_.MarkDead(0, kFar, ErrorCode::kLinkDown);
  rank().Progress();
  PeerSwitches(daemon_, 1);
  Fail();
  EXPECT_TRUE(TakeMatters().empty());
  node_.MarkDead(0, kFar, ErrorCode::kOk);
  rank().Progress();
  rank().Progress();
  EXPECT_EQ(TakeMatters(), std::vector<LinkMatter>{LinkMatter::kBroken});
}

TEST_F(RankEngineLinksTest, MarkersAreAnsweredOnceThePeerIsBack) {
  node_.MarkDead(0, kFar, ErrorCode::kLinkDown);
  rank().Progress();
  PeerSwitches(daemon_, 1);  // the peer has heard first that both are back
  EXPECT_TRUE(daemon_.Take().empty());
  node_.MarkDead(0, kFar, ErrorCode::kOk);
  rank().Progress();
  rank().Progress();
  EXPECT_EQ(daemon_.TakeOf(DescriptorKind::kCredit).size(), 1U);
}

TEST_F(RankEngineLinksTest, RanksOfTheNodeHaveNoLinks) {
  EXPECT_EQ(Use(0), ErrorCode::kInvalidRank);
}

TEST_F(RankEngineLinksTest, ACoreThatSaysWhatOnlyTheDaemonMayIsAFault) {
  for (const DescriptorKind kind :
       {DescriptorKind::kRtr, DescriptorKind::kWithdraw, DescriptorKind::kWithdrawn,
        DescriptorKind::kPut, DescriptorKind::kLeft, DescriptorKind::kRts}) {
    TestNode node(NodeOptions{.local_ranks = 1, .remote_ranks = 1});
    FakeDaemon core(node.view(0), Core::kLink);
    ASSERT_TRUE(core.Push(kind, kFar, kTag, 8, shm::RtrWords{}));
    node[0].Progress();
    EXPECT_EQ(node[0].poison(), ErrorCode::kCorrupt);
    EXPECT_EQ(shm::ReadFault(node.view(0).layout->fault).kind, shm::FaultKind::kLinkLane);
  }
}

TEST_F(RankEngineLinksTest, ALeaverGoesBackToTheDaemonsForAll) {
  UseAndAnswer(kFar);
  UseAndAnswer(kOther);
  node_.MarkDead(0, kOther);
  rank().Progress();
  Effects effects;
  engine().paths().LeaveLinks(effects);
  EXPECT_TRUE(effects.to_link);
  EXPECT_TRUE(engine().paths().SendsByLink());
  Answer();
  EXPECT_FALSE(engine().paths().SendsByLink());
}

TEST_F(RankEngineLinksTest, SaysWhatTheRankHasToSayOfItsLink) {
  Effects effects;
  EXPECT_TRUE(engine().paths().TellOfLink(kFar, LinkMatter::kReturned, effects));
  EXPECT_TRUE(effects.to_daemon);
  EXPECT_EQ(TakeMatters(), std::vector<LinkMatter>{LinkMatter::kReturned});
  daemon_.FillLane();
  EXPECT_FALSE(engine().paths().TellOfLink(kFar, LinkMatter::kReturned, effects));
}

}  // namespace
}  // namespace ferry::engine
