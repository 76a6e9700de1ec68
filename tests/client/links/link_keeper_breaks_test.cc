// A rank's handling of trouble with its direct links: the lease is not to be had, links break,
// peers die, memory goes; and of the work that its link thread leaves to it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "shm/lease.h"
#include "tests/client/links/link_keeper_fixture.h"

namespace ferry::client {
namespace {

class LinkKeeperBreaksTest : public LinkKeeperTest {};

// ---- The lease ----

// For device memory that no link carries. The daemon is to have the other directions returned, too.
TEST_F(LinkKeeperBreaksTest, ARankMayGiveItsLinksUp) {
  LinkKeeper& keeper = Make();
  Use();
  Use(kOther, 3);
  Order(LinkOp::kReturn, kOther, 3);
  AnswerMarker(kOther);
  EXPECT_THAT(NextEvents(), ElementsAre("returned 2 3"));
  keeper.GiveUpLinks();
  EXPECT_EQ(Path(), PeerPath::kToDaemon);
  EXPECT_THAT(NextEvents(), ElementsAre("refused 2 3"));  // this direction is back
  AnswerMarker();
  EXPECT_THAT(NextEvents(), ElementsAre("refused 1 7"));
  EXPECT_THAT(reply_.text, HasSubstr("device memory"));
  keeper.GiveUpLinks();
  (void)keeper.Look();
  EXPECT_THAT(Events(), IsEmpty());
  EXPECT_TRUE(keeper.has_links());  // until the peers' directions are back
  for (const auto& [peer, link] : {std::pair(kPeer, 7), std::pair(kOther, 3)}) {
    Order(LinkOp::kEnd, peer, static_cast<uint64_t>(link));
  }
  EXPECT_FALSE(keeper.has_links());
  (void)Events();
  Order(LinkOp::kOpen, kPeer, 9, "peer");
  EXPECT_THAT(Events(), ElementsAre("refused 1 9"));
  EXPECT_FALSE(keeper.has_links());
}

// Its holder was stopped, perhaps for good. The watcher has the daemon to look after.
TEST_F(LinkKeeperBreaksTest, ALeaseThatIsNotToBeHadHoldsNobodyUp) {
  Make();
  FakeLinks& links = Use();
  shm::Lease other(&rank_.view().layout->lease);
  ASSERT_TRUE(other.Acquire(shm::kLeaseWorker));
  Order(LinkOp::kReturn, kPeer, 7);
  EXPECT_GE(next_look_ms_, 1);
  EXPECT_LE(next_look_ms_, 50);
  Order(LinkOp::kOpen, kOther, 8, "other");
  EXPECT_THAT(Events(), IsEmpty());
  EXPECT_EQ(links.connected, std::set<uint32_t>{kPeer});
  other.Release(shm::kLeaseWorker);
  (void)keeper_->Look();  // in order
  EXPECT_THAT(Events(), ElementsAre("opened 2 8"));
  EXPECT_EQ(Path(), PeerPath::kToDaemon);
}

// ---- Breaks ----

TEST_F(LinkKeeperBreaksTest, ALostLinkThatMessagesTakeIsTold) {
  Make();
  (void)Use();
  Lose(kPeer);
  EXPECT_EQ(Path(), PeerPath::kBroken);
  EXPECT_FALSE(keeper_->has_links());
  eventfd_t calls = 0;
  EXPECT_EQ(eventfd_read(keeper_->call_fd(), &calls), 0);
  (void)keeper_->Look();
  EXPECT_THAT(Events(), ElementsAre("lost 1 7"));
  Order(LinkOp::kEnd, kPeer, 7, "", ErrorCode::kLinkDown);
  EXPECT_THAT(Events(), ElementsAre("ended 1 7 was used"));
}

// Their direction is back, and only one-sided operations still take the link: the daemon finds out
// why it was lost before they end.
TEST_F(LinkKeeperBreaksTest, ALostLinkThatOneSidedOperationsTakeIsABreak) {
  Make();
  FakeLinks& links = Use();
  Order(LinkOp::kReturn, kPeer, 7);
  AnswerMarker();
  EXPECT_EQ(Path(), PeerPath::kDaemon);
  links.wanted = {kPeer};
  Lose(kPeer);
  EXPECT_EQ(Path(), PeerPath::kBroken);
  (void)keeper_->Look();
  EXPECT_THAT(Events(), ElementsAre("lost 1 7"));
}

// A lost link that one-sided operations take ends, where the other rank has noticed the loss first.
TEST_F(LinkKeeperBreaksTest, TheDaemonMayEndWhatOneSidedOperationsTake) {
  Make();
  FakeLinks& links = Use();
  Order(LinkOp::kReturn, kPeer, 7);
  AnswerMarker();
  links.wanted = {kPeer};
  Order(LinkOp::kEnd, kPeer, 7, "", ErrorCode::kLinkDown);
  EXPECT_THAT(Events(), ElementsAre("ended 1 7 was used"));
  EXPECT_EQ(Path(), PeerPath::kBroken);
}

// The cut has reported the operations' losses. The daemon does not part the two once more, so the
// rank must not wait for that.
TEST_F(LinkKeeperBreaksTest, ACutThatWasToldOfIsNoBreakOnceMore) {
  Make();
  FakeLinks& links = Use();
  links.wanted = {kPeer};
  TellOfCut(kPeer);
  Order(LinkOp::kEnd, kPeer, 7, "", ErrorCode::kLinkDown);
  EXPECT_THAT(Events(), ElementsAre("ended 1 7"));
  EXPECT_EQ(Path(), PeerPath::kDaemon);
}

TEST_F(LinkKeeperBreaksTest, NorIsALinkThatIsLostAfterACut) {
  Make();
  FakeLinks& links = Use();
  links.wanted = {kPeer};
  TellOfCut(kPeer);
  Step();
  EXPECT_EQ(Path(), PeerPath::kDaemon);
  Lose(kPeer);
  EXPECT_EQ(Path(), PeerPath::kDaemon);
}

// The peer may have heard first that the link is over. If it has not, it cannot be used again.
TEST_F(LinkKeeperBreaksTest, ALostLinkThatNothingTakesFailsNothing) {
  Make();
  Order(LinkOp::kOpen, kPeer, 7, "peer");
  Lose(kPeer);
  EXPECT_EQ(Path(), PeerPath::kDaemon);
  (void)keeper_->Look();
  EXPECT_THAT(Events(), ElementsAre("opened 1 7"));
  Order(LinkOp::kUse, kPeer, 7, "peer");
  EXPECT_THAT(Events(), ElementsAre("refused 1 7"));
  EXPECT_STREQ(reply_.text, "its connection is gone: reset");
  Order(LinkOp::kEnd, kPeer, 7);
  (void)keeper_->Look();
  EXPECT_THAT(Events(), ElementsAre("ended 1 7"));
}

// A connection that ends because the link ends is no loss.
TEST_F(LinkKeeperBreaksTest, AConnectionThatGoesWhileTheLinkEndsIsNotTold) {
  Make();
  Order(LinkOp::kOpen, kPeer, 7, "peer");
  FakeLinks& links = *FakeLinks::last;
  links.is_idle = false;
  Order(LinkOp::kEnd, kPeer, 7);
  (void)Events();
  Lose(kPeer);
  (void)keeper_->Look();
  EXPECT_THAT(Events(), ElementsAre("ended 1 7"));
}

TEST_F(LinkKeeperBreaksTest, TheCoreEndsItsWorkBeforeTheEngineHearsOfADeath) {
  Make();
  FakeLinks& links = Use();
  const uint32_t applied = rank_.view().layout->deaths_applied;
  bool was_first = false;
  links.on_end = [&] { was_first = rank_.view().layout->deaths_applied == applied; };
  TellOfDeath(kPeer, ErrorCode::kPeerDied);
  Step();
  EXPECT_TRUE(was_first);
  EXPECT_NE(rank_.view().layout->deaths_applied, applied);
  EXPECT_EQ(links.calls.back(), "end 1 " + std::to_string(static_cast<int>(ErrorCode::kPeerDied)));
  EXPECT_EQ(Path(), PeerPath::kDaemon);
  Order(LinkOp::kEnd, kPeer, 7, "", ErrorCode::kPeerDied);
  EXPECT_THAT(Events(), ElementsAre("ended 1 7"));
}

TEST_F(LinkKeeperBreaksTest, TheDaemonMayEndWhatMessagesTake) {
  Make();
  FakeLinks& links = Use();
  Order(LinkOp::kEnd, kPeer, 7, "", ErrorCode::kLinkDown);
  EXPECT_EQ(links.calls.back(), "end 1 " + std::to_string(static_cast<int>(ErrorCode::kLinkDown)));
  EXPECT_THAT(Events(), ElementsAre("ended 1 7 was used"));
  EXPECT_EQ(Path(), PeerPath::kBroken);
}

TEST_F(LinkKeeperBreaksTest, ANewLinkTakesThePlaceOfOneThatTheDaemonForgot) {
  Make();
  Order(LinkOp::kOpen, kPeer, 7, "peer");
  Order(LinkOp::kOpen, kPeer, 8, "anew");
  EXPECT_THAT(FakeLinks::last->calls,
              ElementsAre("connect 1 7 peer 11 12",
                          "end 1 " + std::to_string(static_cast<int>(ErrorCode::kLinkDown)),
                          "connect 1 8 anew 11 12"));
  Order(LinkOp::kUse, kPeer, 7, "peer");  // of the old one
  EXPECT_THAT(Events(), ElementsAre("opened 1 7", "opened 1 8", "refused 1 7"));
}

TEST_F(LinkKeeperBreaksTest, OrdersThatMakeNoSenseDoNothing) {
  Make();
  Order(LinkOp::kOpen, 0, 7);   // the rank itself
  Order(LinkOp::kOpen, 17, 7);  // no rank
  Order(static_cast<LinkOp>(99), kPeer, 7);
  Order(LinkOp::kReturn, kPeer, 7);
  Order(LinkOp::kRefuse, kPeer, 7);
  Order(LinkOp::kUse, kPeer, 7, "peer");
  EXPECT_THAT(Events(), ElementsAre("refused 1 7"));
  EXPECT_EQ(loads_, 0);
}

// ---- The rest ----

TEST_F(LinkKeeperBreaksTest, RegionsThatGoAreForgotten) {
  Make();
  std::byte memory[64];
  regions_.Add({.base = memory, .size_bytes = 64, .id = 3});
  regions_.Add({.base = memory, .size_bytes = 48, .id = 4});
  keeper_->ForgetRegion(3);  // there are no links
  Order(LinkOp::kOpen, kPeer, 7, "peer");
  keeper_->ForgetRegion(4);
  EXPECT_EQ(FakeLinks::last->calls.back(), "forget 48 bytes");
  keeper_->Unexpose(keeper_->Expose(memory, 32, nullptr));
  EXPECT_EQ(FakeLinks::last->calls.back(), "forget 32 bytes");
}

TEST_F(LinkKeeperBreaksTest, ALinkThatAForgottenRegionCostsIsTakenDown) {
  Make();
  FakeLinks& links = Use();
  std::byte memory[64];
  regions_.Add({.base = memory, .size_bytes = 64, .id = 3});
  links.lost_when_forgotten = {kPeer};
  keeper_->ForgetRegion(3);
  EXPECT_TRUE(keeper_->HasWork()) << "the next turn has to see to it";
  Step();
  EXPECT_EQ(Path(), PeerPath::kBroken);
}

// The table has it until it has gone.
TEST_F(LinkKeeperBreaksTest, ARegionThatIsForgottenIsNotFoundAnyMore) {
  Make();
  std::byte memory[64];
  regions_.Add({.base = memory, .size_bytes = sizeof(memory), .id = 5});
  Order(LinkOp::kOpen, kPeer, 7, "peer");
  HostRegion found;
  EXPECT_TRUE(FakeLinks::last->host_->FindRegion(5, &found));
  EXPECT_FALSE(found.lent);
  keeper_->ForgetRegion(5);
  EXPECT_FALSE(FakeLinks::last->host_->FindRegion(5, &found));
  regions_.Add({.base = memory, .size_bytes = sizeof(memory), .id = 6, .lent = true});
  EXPECT_TRUE(FakeLinks::last->host_->FindRegion(6, &found));
  EXPECT_TRUE(found.lent);
}

TEST_F(LinkKeeperBreaksTest, WhatIsExposedIsFoundUntilItIsNot) {
  Make();
  Order(LinkOp::kOpen, kPeer, 7, "peer");
  std::byte memory[64];
  shm::ElementLock lock;
  const uint32_t segment = keeper_->Expose(memory, sizeof(memory), &lock);
  const uint32_t second = keeper_->Expose(memory, 8, &lock);
  EXPECT_NE(segment & shm::kSegmentPrivate, 0U) << "regions have other numbers";
  EXPECT_NE(segment, second);
  HostRegion found;
  EXPECT_TRUE(FakeLinks::last->host_->FindRegion(segment, &found));
  EXPECT_EQ(found.base, memory);
  EXPECT_EQ(found.size_bytes, sizeof(memory));
  EXPECT_EQ(found.lock, &lock);
  keeper_->Unexpose(segment);
  EXPECT_FALSE(FakeLinks::last->host_->FindRegion(segment, &found));
  EXPECT_TRUE(FakeLinks::last->host_->FindRegion(second, &found));
}

TEST_F(LinkKeeperBreaksTest, ItFindsTheRanksRegions) {
  Make();
  std::byte memory[64];
  regions_.Add({.base = memory, .size_bytes = sizeof(memory), .id = 5});
  Order(LinkOp::kOpen, kPeer, 7, "peer");
  HostRegion found;
  EXPECT_TRUE(FakeLinks::last->host_->FindRegion(5, &found));
  EXPECT_EQ(found.base, memory);
  EXPECT_EQ(found.size_bytes, 64U);
  EXPECT_FALSE(FakeLinks::last->host_->FindRegion(6, &found));
}

TEST_F(LinkKeeperBreaksTest, ARankWithoutLinksTurnsNothing) {
  Make();
  Order(LinkOp::kOpen, kPeer, 7);
  Step();
  EXPECT_EQ(FakeLinks::last->turns, 0U);
  Order(LinkOp::kUse, kPeer, 7, "peer");
  Step();
  EXPECT_NE(FakeLinks::last->turns, 0U);
}

// The daemon's worker leaves them to a rank that waits in the library.
TEST_F(LinkKeeperBreaksTest, CopiesThatTheLinkThreadHasFoundAreTheRanksToo) {
  Make();
  EXPECT_FALSE(progress_.TakeCopiesElsewhere());
  const uint32_t sequence = progress_.wake().PrepareToSleep();
  engine::Effects effects;
  effects.transfers[effects.transfer_count++] = 7;
  progress_.PerformElsewhere(effects);
  progress_.wake().Sleep(sequence, 0);  // for ever, had no thread been woken
  EXPECT_TRUE(progress_.has_copies_elsewhere());
  EXPECT_TRUE(progress_.TakeCopiesElsewhere());
  EXPECT_FALSE(progress_.TakeCopiesElsewhere());
}

}  // namespace
}  // namespace ferry::client
