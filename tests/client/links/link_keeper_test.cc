// The link keeper opens the library when its daemon orders direct links, connects, and lets
// messages take the link, and go back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/resource.h>

#include <cstdint>
#include <string>
#include <utility>

#include "common/open_files.h"
#include "tests/client/links/link_keeper_fixture.h"

namespace ferry::client {
namespace {

TEST_F(LinkKeeperTest, TheLibraryIsOpenedAtTheFirstOrder) {
  LinkKeeper& keeper = Make();
  EXPECT_EQ(keeper.Look(), -1);
  EXPECT_EQ(loads_, 0);
  Order(LinkOp::kOpen, kPeer, 7);
  EXPECT_THAT(Events(), ElementsAre("opened 1 7"));
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(reply_.address), reply_.address_bytes),
            "me!");
  EXPECT_FALSE(keeper.has_links());
  Order(LinkOp::kOpen, kOther, 3, "other");  // whose end is known
  EXPECT_THAT(Events(), ElementsAre("opened 2 3"));
  EXPECT_THAT(FakeLinks::last->calls, ElementsAre("connect 2 3 other 11 12"));
  EXPECT_TRUE(keeper.has_links());
  EXPECT_EQ(loads_, 1);
}

TEST_F(LinkKeeperTest, WithoutTheLibraryItSaysSoOnceAndRefuses) {
  rules_.idle_ms = 0;  // they are wanted always
  Make();
  has_library_ = false;
  testing::internal::CaptureStderr();
  Order(LinkOp::kOpen, kPeer, 7);
  EXPECT_THAT(Events(), ElementsAre("refused 1 7"));
  EXPECT_STREQ(reply_.text, "no library");
  Order(LinkOp::kOpen, kOther, 8);
  EXPECT_THAT(Events(), ElementsAre("refused 2 8"));
  EXPECT_EQ(loads_, 1);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_EQ(said,
            "libferry: rank 0: no direct links, all messages to other nodes pass the daemons: "
            "no library\n");
}

TEST_F(LinkKeeperTest, WhereNobodyAskedForLinksTheirLackIsToldToTheDaemonAlone) {
  Make();
  has_library_ = false;
  testing::internal::CaptureStderr();
  Order(LinkOp::kOpen, kPeer, 7);
  EXPECT_THAT(Events(), ElementsAre("refused 1 7"));
  EXPECT_STREQ(reply_.text, "no library");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

// A link is a descriptor, and the program may need those that are left.
TEST_F(LinkKeeperTest, LinksLeaveTheProgramDescriptors) {
  Make();
  Use(kOther, 3);
  rlimit usual{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &usual), 0);
  rlimit files = usual;
  files.rlim_cur = CountOpenFiles().open * 4 / 3;  // three of four
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &files), 0);
  Order(LinkOp::kOpen, kPeer, 7);
  EXPECT_THAT(Events(), ElementsAre("refused 1 7"));
  EXPECT_EQ(reply_.code, static_cast<int32_t>(ErrorCode::kLimitExceeded));
  EXPECT_THAT(reply_.text, HasSubstr("ulimit -n"));
  files.rlim_cur += 4;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &files), 0);
  Order(LinkOp::kOpen, kPeer, 8);
  EXPECT_THAT(Events(), ElementsAre("opened 1 8"));
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &usual), 0);
}

// An endpoint is not opened, and given up for good, where there is no room for links anyway.
TEST_F(LinkKeeperTest, WithoutRoomTheLibraryIsNotOpened) {
  Make();
  rlimit usual{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &usual), 0);
  rlimit files = usual;
  files.rlim_cur = CountOpenFiles().open + 2;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &files), 0);
  Order(LinkOp::kOpen, kPeer, 7);
  EXPECT_THAT(Events(), ElementsAre("refused 1 7"));
  EXPECT_EQ(loads_, 0);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &usual), 0);
  Order(LinkOp::kOpen, kPeer, 8);
  EXPECT_THAT(Events(), ElementsAre("opened 1 8"));
}

TEST_F(LinkKeeperTest, AnEndpointThatCannotListenIsRefused) {
  rules_.idle_ms = 0;
  std::strcpy(rules_.source_address, "nowhere");
  Make();
  testing::internal::CaptureStderr();
  Order(LinkOp::kOpen, kPeer, 7);
  EXPECT_THAT(Events(), ElementsAre("refused 1 7"));
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("there is no such address"));
  EXPECT_EQ(Path(), PeerPath::kDaemon);
}

TEST_F(LinkKeeperTest, ADirectionTakesTheLinkAndGoesBack) {
  Make();
  Order(LinkOp::kOpen, kPeer, 7);
  Order(LinkOp::kUse, kPeer, 7, "peer");
  EXPECT_THAT(Events(), ElementsAre("opened 1 7", "used 1 7"));
  EXPECT_EQ(Path(), PeerPath::kToLink);
  AnswerMarker();
  EXPECT_EQ(Path(), PeerPath::kLink);
  Order(LinkOp::kReturn, kPeer, 7);
  EXPECT_EQ(Path(), PeerPath::kToDaemon);
  EXPECT_THAT(Events(), IsEmpty());
  EXPECT_GE(next_look_ms_, 1);  // it looks again
  AnswerMarker();
  EXPECT_EQ(Path(), PeerPath::kDaemon);
  while (Events().empty()) {
    (void)keeper_->Look();
  }
  EXPECT_EQ(reply_.event, static_cast<uint32_t>(attach::LinkEvent::kReturned));
  Order(LinkOp::kReturn, kPeer, 7);  // it has been
  EXPECT_THAT(Events(), IsEmpty());
  Order(LinkOp::kUse, kPeer, 7, "peer");  // again
  EXPECT_THAT(Events(), ElementsAre("used 1 7"));
  EXPECT_EQ(Path(), PeerPath::kToLink);
  EXPECT_THAT(FakeLinks::last->calls, ElementsAre("connect 1 7 peer 11 12"));
}

TEST_F(LinkKeeperTest, AnIdleDirectionGoesBackByItself) {
  rules_.idle_ms = 1;
  Make();
  Use();
  while (Path() == PeerPath::kLink) {
    next_look_ms_ = keeper_->Look();
  }
  EXPECT_GE(next_look_ms_, 0);
  AnswerMarker();
  std::vector<std::string> events;
  while ((events = Events()).empty()) {
    (void)keeper_->Look();
  }
  EXPECT_THAT(events, ElementsAre("returned 1 7"));
}

// The peer may close the link once it hears that the direction is back.
TEST_F(LinkKeeperTest, ADirectionIsBackOnceNoOneSidedOperationTakesTheLink) {
  Make();
  FakeLinks& links = Use();
  ASSERT_TRUE(progress_.TryHoldLink(kPeer));
  Order(LinkOp::kReturn, kPeer, 7);
  AnswerMarker();
  EXPECT_EQ(Path(), PeerPath::kDaemon);
  EXPECT_FALSE(progress_.TryHoldLink(kPeer)) << "messages do not take it any more";
  const auto look_well = [this] {
    for (int look = 0; look < 20; ++look) {
      EXPECT_NE(keeper_->Look(), -1);
      usleep(1000);  // looks follow each other more slowly
    }
  };
  look_well();
  EXPECT_THAT(Events(), IsEmpty()) << "an operation is about to take it";
  links.wanted = {kPeer};
  progress_.LetGoOfLink(kPeer);
  look_well();
  EXPECT_THAT(Events(), IsEmpty()) << "an operation is under way";
  links.wanted = {};
  std::vector<std::string> events;
  while ((events = Events()).empty()) {
    (void)keeper_->Look();
  }
  EXPECT_THAT(events, ElementsAre("returned 1 7"));
}

TEST_F(LinkKeeperTest, OneSidedOperationsKeepADirectionFromBeingIdle) {
  rules_.idle_ms = 4;
  Make();
  FakeLinks& links = Use();
  for (int look = 0; look < 20; ++look) {
    links.wanted = {kPeer};
    (void)keeper_->Look();
    usleep(1000);
  }
  EXPECT_EQ(Path(), PeerPath::kLink) << "one was always under way";
  links.wanted = {};
  for (int look = 0; look < 20; ++look) {
    shm::FetchAdd(rank_.view().by_rank.one_sided[kPeer].done, 1, std::memory_order_release);
    (void)keeper_->Look();
    usleep(1000);
  }
  EXPECT_EQ(Path(), PeerPath::kLink) << "some have ended between any two looks";
  while (Path() == PeerPath::kLink) {
    (void)keeper_->Look();
  }
}

TEST_F(LinkKeeperTest, ALongTransferKeepsADirectionFromBeingIdle) {
  rules_.idle_ms = 4;
  Make();
  FakeLinks& links = Use();
  for (int look = 0; look < 20; ++look) {
    UnderLease([&] { links.is_idle = false; });
    (void)keeper_->Look();
    usleep(1000);
  }
  EXPECT_EQ(Path(), PeerPath::kLink) << "it was always under way";
  UnderLease([&] { links.is_idle = true; });
  while (Path() == PeerPath::kLink) {
    (void)keeper_->Look();
  }
}

TEST_F(LinkKeeperTest, WhereNothingGoesBackItDoesNotLook) {
  rules_.idle_ms = 0;
  Make();
  Use();
  EXPECT_EQ(keeper_->Look(), -1);
  Order(LinkOp::kReturn, kPeer, 0);
  EXPECT_GE(next_look_ms_, 1);
  EXPECT_EQ(Path(), PeerPath::kToDaemon);
}

TEST_F(LinkKeeperTest, ALinkEndsOnceNothingTakesIt) {
  Make();
  Order(LinkOp::kOpen, kPeer, 7, "peer");
  FakeLinks& links = *FakeLinks::last;
  links.is_idle = false;
  Order(LinkOp::kEnd, kPeer, 7);
  EXPECT_THAT(Events(), ElementsAre("opened 1 7"));
  EXPECT_GE(next_look_ms_, 1);
  links.is_idle = true;
  std::vector<std::string> events;
  while ((events = Events()).empty()) {
    next_look_ms_ = keeper_->Look();
  }
  EXPECT_THAT(events, ElementsAre("ended 1 7"));
  EXPECT_EQ(links.calls.back(), "end 1 0");
  EXPECT_FALSE(keeper_->has_links());
  EXPECT_EQ(next_look_ms_, -1);
  Order(LinkOp::kEnd, kPeer, 7);  // it has been
  EXPECT_THAT(Events(), ElementsAre("ended 1 7"));
}

// ---- Connecting ----

TEST_F(LinkKeeperTest, ALinkIsUsedOnceItsConnectionStands) {
  Make();
  FakeLinks& links = OpenWith(ErrorCode::kWouldBlock, "nobody there");
  Order(LinkOp::kOpen, kPeer, 7);
  Order(LinkOp::kUse, kPeer, 7, "peer");
  EXPECT_THAT(Events(), ElementsAre("opened 1 7"));
  EXPECT_EQ(Path(), PeerPath::kDaemon);
  EXPECT_TRUE(keeper_->HasWork());  // a thread has to turn
  EXPECT_GE(next_look_ms_, 1);
  eventfd_t calls = 0;
  (void)eventfd_read(keeper_->call_fd(), &calls);
  UnderLease([&] { links.connection = ErrorCode::kOk; });
  Step();
  EXPECT_EQ(eventfd_read(keeper_->call_fd(), &calls), 0);  // without a wait for the next look
  (void)keeper_->Look();
  EXPECT_THAT(Events(), ElementsAre("used 1 7"));
  EXPECT_EQ(Path(), PeerPath::kToLink);
  UnderLease([&] { EXPECT_THAT(links.called, ElementsAre(std::pair(kPeer, true))); });
  Step();
  EXPECT_FALSE(keeper_->HasWork());
}

// It has heard of the other one's address first.
TEST_F(LinkKeeperTest, OneOfTheTwoWaitsToBeCalled) {
  Make();
  FakeLinks& links = OpenWith(ErrorCode::kWouldBlock, "nobody there");
  Order(LinkOp::kOpen, kPeer, 7, "peer");
  EXPECT_THAT(Events(), ElementsAre("opened 1 7"));
  EXPECT_TRUE(keeper_->HasWork());
  Order(LinkOp::kUse, kPeer, 7, "peer");
  EXPECT_THAT(Events(), IsEmpty());
  UnderLease([&] {
    EXPECT_THAT(links.called, ElementsAre(std::pair(kPeer, false)));
    links.connection = ErrorCode::kOk;
  });
  EXPECT_THAT(NextEvents(), ElementsAre("used 1 7"));
}

TEST_F(LinkKeeperTest, AConnectionThatIsRefusedCostsTheLinkAlone) {
  Make();
  FakeLinks& links = OpenWith(ErrorCode::kLinkDown, "Connection refused (10.1.2.3:9)");
  Order(LinkOp::kOpen, kPeer, 7);
  Order(LinkOp::kUse, kPeer, 7, "peer");
  EXPECT_THAT(Events(), ElementsAre("opened 1 7", "refused 1 7"));
  EXPECT_STREQ(reply_.text, "Connection refused (10.1.2.3:9)");
  EXPECT_EQ(Path(), PeerPath::kDaemon);
  EXPECT_TRUE(links.connected.empty());
  EXPECT_FALSE(keeper_->NeedsTurns());
  Order(LinkOp::kEnd, kPeer, 7, "", ErrorCode::kLinkDown);
  EXPECT_THAT(Events(), ElementsAre("ended 1 7"));
  EXPECT_EQ(Path(), PeerPath::kDaemon);
  // It does not try again at once.
  Order(LinkOp::kOpen, kPeer, 8);
  EXPECT_THAT(Events(), ElementsAre("refused 1 8"));
  EXPECT_STREQ(reply_.text,
               "it could not be connected a moment ago: Connection refused (10.1.2.3:9)");
  Order(LinkOp::kOpen, kPeer, 9, "peer");  // which this rank need not call
  EXPECT_THAT(Events(), ElementsAre("opened 1 9"));
}

TEST_F(LinkKeeperTest, AConnectionThatDoesNotComeCostsTheLinkAlone) {
  connect_timeout_ns_ = 3'000'000;
  Make();
  FakeLinks& links = OpenWith(ErrorCode::kWouldBlock, "10.1.2.3:9 does not answer");
  Order(LinkOp::kOpen, kPeer, 7);
  EXPECT_THAT(Events(), ElementsAre("opened 1 7"));
  Order(LinkOp::kUse, kPeer, 7, "peer");
  EXPECT_THAT(NextEvents(), ElementsAre("refused 1 7"));
  EXPECT_STREQ(reply_.text, "tried for 3 ms: 10.1.2.3:9 does not answer");
  EXPECT_EQ(Path(), PeerPath::kDaemon);
  EXPECT_TRUE(links.connected.empty());
  EXPECT_EQ(keeper_->Look(), -1);
}

TEST_F(LinkKeeperTest, AConnectionThatGoesBeforeItIsUsedCostsTheLinkAlone) {
  Make();
  (void)OpenWith(ErrorCode::kWouldBlock, "");
  Order(LinkOp::kOpen, kPeer, 7);
  EXPECT_THAT(Events(), ElementsAre("opened 1 7"));
  Order(LinkOp::kUse, kPeer, 7, "peer");
  Lose(kPeer);
  EXPECT_THAT(NextEvents(), ElementsAre("refused 1 7"));
  EXPECT_STREQ(reply_.text, "its connection is gone: reset");
  EXPECT_EQ(Path(), PeerPath::kDaemon);
}

TEST_F(LinkKeeperTest, TheDaemonMayEndALinkThatConnects) {
  Make();
  FakeLinks& links = OpenWith(ErrorCode::kWouldBlock, "");
  Order(LinkOp::kOpen, kPeer, 7);
  Order(LinkOp::kUse, kPeer, 7, "peer");
  Order(LinkOp::kEnd, kPeer, 7);
  EXPECT_THAT(Events(), ElementsAre("opened 1 7", "ended 1 7"));
  EXPECT_TRUE(links.connected.empty());
  EXPECT_EQ(next_look_ms_, -1);
}

// The one that was to call has not come through; the daemon only says that the link is over.
TEST_F(LinkKeeperTest, WhoHasAskedMayAskAgainAfterALinkThatWasNeverUsed) {
  Make();
  rank_.view().by_rank.links[kPeer].state = static_cast<uint32_t>(shm::LinkState::kAsked);
  Order(LinkOp::kOpen, kPeer, 7, "peer");
  EXPECT_EQ(AskedFor(), shm::LinkState::kAsked);
  Order(LinkOp::kEnd, kPeer, 7);
  EXPECT_THAT(NextEvents(), ElementsAre("opened 1 7", "ended 1 7"));
  EXPECT_EQ(AskedFor(), shm::LinkState::kRefused);
}

// Its core still has to do with the link before.
TEST_F(LinkKeeperTest, ACoreThatIsNotReadyIsAskedAgainSoon) {
  Make();
  FakeLinks& links = OpenWith(ErrorCode::kOk, "");
  links.busy = 2;
  Order(LinkOp::kOpen, kPeer, 7, "peer");
  EXPECT_THAT(Events(), IsEmpty());
  EXPECT_GE(next_look_ms_, 1);
  EXPECT_LE(next_look_ms_, 10);
  EXPECT_THAT(NextEvents(), ElementsAre("opened 1 7"));
  EXPECT_THAT(links.calls, ElementsAre("connect 1 7 peer 11 12"));
  Order(LinkOp::kOpen, kOther, 4);
  EXPECT_THAT(Events(), ElementsAre("opened 2 4"));
  UnderLease([&] { links.busy = 1; });
  Order(LinkOp::kUse, kOther, 4, "other");
  EXPECT_THAT(NextEvents(), ElementsAre("used 2 4"));
}

TEST_F(LinkKeeperTest, ARankThatLeavesUsesNoMoreLinks) {
  Make();
  Order(LinkOp::kOpen, kPeer, 7);
  UnderLease([&] {
    engine::Effects effects;
    keeper_->LeaveAll(effects);
  });
  Order(LinkOp::kUse, kPeer, 7, "peer");
  EXPECT_THAT(Events(), ElementsAre("opened 1 7", "refused 1 7"));
  EXPECT_EQ(Path(), PeerPath::kDaemon);
}

// The rank copies device memory itself, and sockets take host memory.
TEST_F(LinkKeeperTest, DeviceMemoryKeepsNoRankFromLinksOverSockets) {
  std::strcpy(rules_.provider, attach::kOwnSockets);
  LinkKeeper& keeper = Make();
  EXPECT_TRUE(keeper.CarryDeviceMemory());
  std::byte memory[64];
  regions_.Add({.base = memory, .size_bytes = sizeof(memory), .id = 5, .by_stream = true});
  Use();
  keeper.GiveUpLinks();
  EXPECT_FALSE(keeper.CarryDeviceMemory());
  EXPECT_EQ(Path(), PeerPath::kToDaemon);
  AnswerMarker();
  EXPECT_THAT(NextEvents(), ElementsAre("refused 1 7"));
  EXPECT_THAT(reply_.text, HasSubstr("device memory"));
  Order(LinkOp::kOpen, kOther, 9);
  EXPECT_THAT(Events(), ElementsAre("refused 2 9"));
}

TEST_F(LinkKeeperTest, ALinkThatThisRankRefusesNeedsNoTurns) {
  std::strcpy(rules_.provider, "verbs");
  EXPECT_FALSE(Make().CarryDeviceMemory());
  Order(LinkOp::kOpen, kPeer, 7, "peer");
  EXPECT_TRUE(keeper_->HasWork());
  std::byte memory[64];
  regions_.Add({.base = memory, .size_bytes = sizeof(memory), .id = 5, .by_stream = true});
  Order(LinkOp::kUse, kPeer, 7, "peer");
  EXPECT_THAT(Events(), ElementsAre("opened 1 7", "refused 1 7"));
  Step();
  EXPECT_FALSE(keeper_->HasWork());
}

}  // namespace
}  // namespace ferry::client
