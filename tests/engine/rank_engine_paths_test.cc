// The path of one rank's messages to another node, and what stays with the core that began it.
// path_switch_test has two ranks that change their paths.
#include <cstring>

#include "tests/engine/rank_engine_paths_fixture.h"

namespace ferry::engine {
namespace {

using shm::Descriptor;
using shm::DescriptorKind;
using shm::PeerPath;
using shm::RequestState;

// ---- Switching ---------------------------------------------------------------------------------

TEST_F(RankEnginePathsTest, MessagesWaitForTheAnswerAndGoByTheOtherPath) {
  rank().Isend(kFar, kTag, "before");
  ASSERT_EQ(Use(), ErrorCode::kOk);
  EXPECT_EQ(engine().paths().PathTo(kFar), PeerPath::kToLink);
  EXPECT_TRUE(engine().paths().SendsByLink());
  const uint32_t first = rank().Isend(kFar, kTag, "first");
  const uint32_t second = rank().Isend(kFar, kTag, std::string(100, 'c'));
  const uint32_t elsewhere = rank().Isend(kOther, kTag, "x");
  EXPECT_EQ(rank().state(first), RequestState::kQueued);
  EXPECT_EQ(rank().state(second), RequestState::kQueued);
  EXPECT_EQ(rank().state(elsewhere), RequestState::kComplete);
  const std::vector<Descriptor> old_path = daemon_.Take();
  ASSERT_EQ(old_path.size(), 3U);
  EXPECT_EQ(TextOf(old_path[0]), "before");
  EXPECT_EQ(old_path[1].kind, static_cast<uint8_t>(DescriptorKind::kSwitch));
  EXPECT_EQ(old_path[1].destination, kFar);
  EXPECT_EQ(PayloadOf<shm::SwitchMarker>(old_path[1]).epoch, 1U);
  EXPECT_TRUE(core_.Take().empty());

  Answer();
  EXPECT_EQ(engine().paths().PathTo(kFar), PeerPath::kLink);
  EXPECT_EQ(peer().sent - peer().credited, 2U) << "all of before was given back";
  rank().Isend(kFar, kTag, "third");
  const std::vector<Descriptor> new_path = core_.Take();
  ASSERT_EQ(new_path.size(), 3U);
  EXPECT_EQ(TextOf(new_path[0]), "first");
  EXPECT_EQ(new_path[1].kind, static_cast<uint8_t>(DescriptorKind::kRemoteRts));
  EXPECT_EQ(TextOf(new_path[2]), "third");
  EXPECT_TRUE(daemon_.Take().empty());

  Leave();
  EXPECT_EQ(engine().paths().PathTo(kFar), PeerPath::kToDaemon);
  EXPECT_EQ(KindsOf(core_.Take()),
            std::vector<uint8_t>{static_cast<uint8_t>(DescriptorKind::kSwitch)});
  rank().Isend(kFar, kTag, "back");
  Answer();
  EXPECT_EQ(engine().paths().PathTo(kFar), PeerPath::kDaemon);
  EXPECT_FALSE(engine().paths().SendsByLink());
  ASSERT_EQ(daemon_.Take().size(), 1U);
  EXPECT_FALSE(engine().paths().UsesLinks());
}

TEST_F(RankEnginePathsTest, OnlyTheAnswerToTheLastMarkerCounts) {
  ASSERT_EQ(Use(), ErrorCode::kOk);
  for (const shm::CreditReturn& other :
       {shm::CreditReturn{0, shm::kCreditAll, 0, peer().path_epoch + 1, {}},
        shm::CreditReturn{0, shm::kCreditAll, 0, 0, {}},
        shm::CreditReturn{0, 0, 0, peer().path_epoch, {}}}) {
    ASSERT_TRUE(daemon_.Push(DescriptorKind::kCredit, kFar, 0, 0, other));
    rank().Progress();
    EXPECT_EQ(engine().paths().PathTo(kFar), PeerPath::kToLink);
  }
  Answer();
  ASSERT_TRUE(daemon_.Push(DescriptorKind::kCredit, kFar, 0, 0,
                           shm::CreditReturn{0, shm::kCreditAll, 0, peer().path_epoch, {}}));
  rank().Progress();
  EXPECT_EQ(engine().paths().PathTo(kFar), PeerPath::kLink) << "it was answered before";
}

TEST_F(RankEnginePathsTest, GoesBackOnceItIsThereIfTheLinkWasLeftMeanwhile) {
  ASSERT_EQ(Use(), ErrorCode::kOk);
  Leave();
  EXPECT_EQ(engine().paths().PathTo(kFar), PeerPath::kToLink);
  Answer();
  EXPECT_EQ(engine().paths().PathTo(kFar), PeerPath::kToDaemon);
  Answer();
  EXPECT_EQ(engine().paths().PathTo(kFar), PeerPath::kDaemon);
}

TEST_F(RankEnginePathsTest, MarkersWaitForRoomBehindMessages) {
  daemon_.FillLane();
  const uint32_t queued = rank().Isend(kFar, kTag, "queued");
  ASSERT_EQ(Use(), ErrorCode::kOk);
  EXPECT_EQ(engine().paths().PathTo(kFar), PeerPath::kDaemon);
  EXPECT_TRUE(engine().WaitsForRoom());
  (void)daemon_.Take();
  rank().Progress();
  EXPECT_EQ(rank().state(queued), RequestState::kComplete);
  EXPECT_EQ(KindsOf(daemon_.Take()),
            (std::vector<uint8_t>{static_cast<uint8_t>(DescriptorKind::kEager),
                                  static_cast<uint8_t>(DescriptorKind::kSwitch)}));
  EXPECT_FALSE(engine().WaitsForRoom());
}

TEST_F(RankEnginePathsTest, AnswersMarkersByTheDaemonsAndCreditsByThePathOfTheMessages) {
  ASSERT_TRUE(daemon_.Eager(kFar, kTag, "a"));
  PeerSwitches(daemon_, 5);
  std::vector<Descriptor> said = daemon_.Take();
  ASSERT_EQ(said.size(), 1U);
  auto credit = PayloadOf<shm::CreditReturn>(said[0]);
  EXPECT_EQ(said[0].destination, kFar);
  EXPECT_EQ(credit.count, 1U);
  EXPECT_EQ(credit.flags, shm::kCreditAll);
  EXPECT_EQ(credit.epoch, 5U);
  EXPECT_TRUE(engine().paths().UsesLinks());
  EXPECT_FALSE(engine().paths().SendsByLink());
  for (uint32_t i = 0; i < kRemoteWindow / 2; ++i) {
    ASSERT_TRUE(core_.Eager(kFar, kTag, "b"));
  }
  while (rank().Progress() != 0) {
  }
  EXPECT_TRUE(daemon_.Take().empty());
  said = core_.Take();
  ASSERT_EQ(said.size(), 1U);
  credit = PayloadOf<shm::CreditReturn>(said[0]);
  EXPECT_EQ(credit.count, kRemoteWindow / 2 + 1);
  EXPECT_EQ(credit.flags, 0U);

  PeerSwitches(core_, 6);
  EXPECT_TRUE(core_.Take().empty());
  said = daemon_.Take();
  ASSERT_EQ(said.size(), 1U);
  EXPECT_EQ(PayloadOf<shm::CreditReturn>(said[0]).epoch, 6U);
  EXPECT_FALSE(engine().paths().UsesLinks());
}

TEST_F(RankEnginePathsTest, LooksForMessagesInTheLaneThatTheyComeBy) {
  EXPECT_EQ(engine().LaneOf(kFar), shm::DaemonLane(1));
  PeerSwitches(daemon_, 1);
  EXPECT_EQ(engine().LaneOf(kFar), shm::LinkLane(1));
  EXPECT_EQ(engine().LaneOf(kOther), shm::DaemonLane(1));
  ASSERT_TRUE(core_.Eager(kFar, kTag, "by link"));
  EXPECT_EQ(rank().Wait(rank().IrecvDirect(kFar, kTag, 16)).data, "by link");
}

TEST_F(RankEnginePathsTest, ACellOfTheOldLaneIsGivenBack) {
  const std::string data(1000, 'd');
  const SendArguments send{kFar, 0, kTag, data.size()};
  engine().sends().OpenLane(kFar);
  const uint32_t cell = engine().sends().TryTakeCell(kFar);
  ASSERT_NE(cell, shm::kNoCell);
  UseAndAnswer();
  (void)daemon_.Take();
  Effects effects;
  EXPECT_EQ(engine().sends().CellBytes(kFar, cell), session().to_daemon.cells[cell]);
  EXPECT_FALSE(engine().sends().TrySendCell(send, cell, effects));
  EXPECT_EQ(session().to_daemon.cell_state[cell], static_cast<uint8_t>(shm::CellState::kFree));

  const uint32_t by_link = engine().sends().TryTakeCell(kFar);
  std::memcpy(engine().sends().CellBytes(kFar, by_link), data.data(), data.size());
  EXPECT_TRUE(engine().sends().TrySendCell(send, by_link, effects));
  EXPECT_TRUE(effects.to_link);
  EXPECT_FALSE(effects.to_daemon);
  const std::vector<Descriptor> said = core_.Take();
  ASSERT_EQ(said.size(), 1U);
  EXPECT_EQ(std::memcmp(session().to_link.cells[said[0].cell], data.data(), data.size()), 0);
  EXPECT_TRUE(daemon_.Take().empty());
}

// ---- RTSs stay with their core ----------------------------------------------------------------

TEST_F(RankEnginePathsTest, RndvGetsGoToTheCoreThatBroughtTheRts) {
  PeerRts(daemon_, 11);
  PeerSwitches(daemon_, 1);
  PeerRts(core_, 11);
  (void)daemon_.Take();
  const uint32_t first = rank().Irecv(kFar, kTag, 20'000);
  const uint32_t second = rank().Irecv(kFar, kTag, 20'000);
  const std::vector<Descriptor> from_daemon = daemon_.Take();
  const std::vector<Descriptor> from_core = core_.Take();
  ASSERT_EQ(from_daemon.size(), 1U);
  ASSERT_EQ(from_core.size(), 1U);
  EXPECT_EQ(PayloadOf<shm::RndvGetCommand>(from_daemon[0]).transfer, first);
  EXPECT_EQ(PayloadOf<shm::RndvGetCommand>(from_core[0]).transfer, second);
}

TEST_F(RankEnginePathsTest, RndvGetsOfOneCoreDoNotWaitForRoomInTheOthersLane) {
  PeerSwitches(daemon_, 1);
  core_.FillLane();
  PeerRts(core_, 1);
  ASSERT_TRUE(daemon_.RemoteRts(kOther, kTag, 1000));
  rank().Progress();
  (void)daemon_.Take();
  const uint32_t waits = rank().Irecv(kFar, kTag, 20'000);
  rank().Irecv(kOther, kTag, 1000);
  EXPECT_EQ(KindsOf(daemon_.Take()),
            std::vector<uint8_t>{static_cast<uint8_t>(DescriptorKind::kRndvGet)});
  EXPECT_TRUE(engine().WaitsForRoom());
  (void)core_.Take();
  rank().Progress();
  const std::vector<Descriptor> said = core_.Take();
  ASSERT_EQ(said.size(), 1U);
  EXPECT_EQ(PayloadOf<shm::RndvGetCommand>(said[0]).transfer, waits);
}

TEST_F(RankEnginePathsTest, ARetractionTakesTheRtsOfItsOwnCore) {
  PeerRts(daemon_, 11, 1000);
  PeerSwitches(daemon_, 1);
  PeerRts(core_, 11, 2000);
  (void)daemon_.Take();
  ASSERT_TRUE(core_.Push(DescriptorKind::kRetract, kFar, kTag, 0, shm::RemoteRts{7, 3, 11, {}}));
  rank().Progress();
  EXPECT_EQ(KindsOf(core_.Take()),
            std::vector<uint8_t>{static_cast<uint8_t>(DescriptorKind::kRetracted)});
  EXPECT_TRUE(daemon_.Take().empty());
  ProbeResult found;
  ASSERT_EQ(engine().receives().Probe({0, kFar, kTag}, &found), ErrorCode::kOk);
  EXPECT_EQ(found.size_bytes, 1000U);
}

TEST_F(RankEnginePathsTest, ASendIsRetractedByThePathThatItWasAnnouncedOn) {
  const uint32_t by_daemon = Rts();
  UseAndAnswer();
  const uint32_t by_link = Rts();
  Leave();
  Answer();
  (void)daemon_.Take();
  (void)core_.Take();
  EXPECT_TRUE(rank().Cancel(by_link));
  EXPECT_TRUE(daemon_.Take().empty());
  std::vector<Descriptor> said = core_.Take();
  ASSERT_EQ(said.size(), 1U);
  EXPECT_EQ(PayloadOf<shm::RemoteRts>(said[0]).send_request, by_link);
  EXPECT_TRUE(rank().Cancel(by_daemon));
  said = daemon_.Take();
  ASSERT_EQ(said.size(), 1U);
  EXPECT_EQ(PayloadOf<shm::RemoteRts>(said[0]).send_request, by_daemon);
}

TEST_F(RankEnginePathsTest, TheLinkIsFreeOnceNothingTakesIt) {
  EXPECT_TRUE(engine().paths().IsLinkFree(kFar));
  UseAndAnswer();
  EXPECT_FALSE(engine().paths().IsLinkFree(kFar));
  const uint32_t rts = Rts(20'000, shm::kRequestSynchronous);
  Leave();
  Answer();
  EXPECT_FALSE(engine().paths().IsLinkFree(kFar)) << "an RTS waits for its receiver";
  ASSERT_TRUE(core_.Result(DescriptorKind::kSendDone, rts, rank().slot(rts).generation));
  rank().Progress();
  EXPECT_TRUE(engine().paths().IsLinkFree(kFar));

  PeerSwitches(daemon_, 1);
  PeerRts(core_, 3);
  EXPECT_FALSE(engine().paths().IsLinkFree(kFar));
  PeerSwitches(core_, 2);
  EXPECT_FALSE(engine().paths().IsLinkFree(kFar)) << "an RTS of the peer's waits";
  const uint32_t receive = rank().Irecv(kFar, kTag, 20'000);
  EXPECT_FALSE(engine().paths().IsLinkFree(kFar)) << "it is being fetched";
  EXPECT_TRUE(engine().paths().IsLinkFree(kOther));
  ASSERT_TRUE(core_.Result(DescriptorKind::kRndvGetDone, receive, rank().slot(receive).generation));
  rank().Progress();
  EXPECT_TRUE(engine().paths().IsLinkFree(kFar));
}

// ---- The worker ---------------------------------------------------------------------------------

TEST_F(RankEnginePathsTest, AWorkerLeavesTheLinkToTheRank) {
  TestRank worker(node_, 0, Runner::kWorker);
  PeerSwitches(daemon_, 1);
  (void)daemon_.Take();
  ASSERT_EQ(Use(), ErrorCode::kOk);
  const uint32_t send = rank().Isend(kFar, kTag, "x");
  EXPECT_TRUE(engine().paths().AwaitsLink());
  ASSERT_TRUE(daemon_.Push(DescriptorKind::kCredit, kFar, 0, 0,
                           shm::CreditReturn{0, shm::kCreditAll, 0, peer().path_epoch, {}}));
  for (uint32_t i = 0; i < kRemoteWindow / 2; ++i) {
    ASSERT_TRUE(core_.Eager(kFar, 9, "y"));
  }
  while (worker.Progress() != 0) {
  }
  EXPECT_EQ(engine().paths().PathTo(kFar), PeerPath::kLink) << "the answer came by the daemons";
  EXPECT_EQ(rank().state(send), RequestState::kQueued);
  EXPECT_TRUE(core_.Take().empty());
  EXPECT_TRUE(engine().paths().AwaitsLink());
  EXPECT_TRUE(engine().HasArrivals());
  while (rank().Progress() != 0) {
  }
  EXPECT_EQ(KindsOf(core_.Take()),
            (std::vector<uint8_t>{static_cast<uint8_t>(DescriptorKind::kCredit),
                                  static_cast<uint8_t>(DescriptorKind::kEager)}));
  EXPECT_FALSE(engine().paths().AwaitsLink());
}

}  // namespace
}  // namespace ferry::engine
