// What a rank does when its daemon orders direct links (client/rank/link_keeper.h). The test is the
// daemon, the library, and the ranks at the other ends.
#include "client/rank/link_keeper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/resource.h>

#include <cstring>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/open_files.h"
#include "common/version.h"
#include "shm/lane.h"
#include "tests/client/lonely_rank.h"
#include "tests/client/order_socket.h"

namespace ferry::client {
namespace {

using attach::LinkEvent;
using attach::LinkOp;
using shm::PeerPath;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr uint32_t kPeer = 1;
constexpr uint32_t kOther = 2;

// The core of a rank, as far as links go.
class FakeLinks final : public DirectLinks {
 public:
  explicit FakeLinks(DirectHost* host) : host_(host) {
    last = this;
    address_.size_bytes = 3;
    std::memcpy(address_.bytes, "me!", 3);
  }
  ~FakeLinks() override { last = nullptr; }
  const LinkAddress& Address() const override { return address_; }
  Status Connect(uint32_t peer, const LinkRoute& route) override {
    if (busy != 0) {
      --busy;
      return {ErrorCode::kWouldBlock, "commands wait"};
    }
    calls.push_back(
        "connect " + std::to_string(peer) + " " + std::to_string(route.serial) + " " +
        std::string(reinterpret_cast<const char*>(route.address.bytes), route.address.size_bytes) +
        " " + std::to_string(route.send_key.words[1]) + " " +
        std::to_string(route.receive_key.words[0]));
    connected.insert(peer);
    return {};
  }
  ErrorCode ConnectionTo(uint32_t peer, bool calls_it, std::string* why) override {
    called.insert({peer, calls_it});
    if (why != nullptr && connection != ErrorCode::kOk) {
      *why = words;
    }
    return connection;
  }
  void End(uint32_t peer, ErrorCode error) override {
    calls.push_back("end " + std::to_string(peer) + " " + std::to_string(static_cast<int>(error)));
    connected.erase(peer);
    if (on_end) {
      on_end();
    }
  }
  bool IsIdle(uint32_t) const override { return is_idle; }
  bool WantsOf(uint32_t peer) const override { return wanted.contains(peer); }
  void ForgetRegion(uint32_t region) override {
    calls.push_back("forget " + std::to_string(region));
  }
  uint32_t Turn(uint64_t) override {
    ++turns;
    for (const uint32_t peer : std::exchange(lost, {})) {
      connected.erase(peer);
      host_->OnLinkLost(peer, ErrorCode::kLinkDown, "reset");
    }
    return 0;
  }
  bool HasWork() const override { return false; }
  bool PrepareToSleep() override { return true; }
  int WaitFd() const override { return -1; }
  uint64_t NextTurnNs(uint64_t) const override { return UINT64_MAX; }

  static FakeLinks* last;
  DirectHost* const host_;
  std::vector<std::string> calls;
  std::set<uint32_t> connected;
  // What follows is changed under the lease: the link thread may turn.
  ErrorCode connection = ErrorCode::kOk;  // of all
  std::string words;
  std::set<std::pair<uint32_t, bool>> called;  // peers, and whether this rank calls
  uint32_t busy = 0;                           // so many times Connect would block
  std::set<uint32_t> wanted;                   // by one-sided operations
  std::vector<uint32_t> lost;                  // in the next turn
  std::function<void()> on_end;
  bool is_idle = true;
  uint32_t turns = 0;

 private:
  LinkAddress address_;
};
FakeLinks* FakeLinks::last = nullptr;

StatusOr<std::unique_ptr<DirectLinks>> OpenFake(const DirectSetup& setup, DirectHost* host) {
  if (std::string(setup.source_address) == "nowhere") {
    return Status(ErrorCode::kInvalidArgument, "there is no such address");
  }
  return std::unique_ptr<DirectLinks>(new FakeLinks(host));
}

class LinkKeeperTest : public testing::Test {
 protected:
  void SetUp() override {
    rules_.idle_ms = 60'000;
    rules_.operation_timeout_ms = 1000;
    std::strcpy(rules_.source_address, "127.0.0.1");
  }
  LinkKeeper& Make() {
    keeper_.emplace(LinkKeeper::Parts{.progress = &progress_,
                                      .attach = &socket_.attach(),
                                      .regions = &regions_,
                                      .job_id = "j",
                                      .rules = rules_,
                                      .open_library = [this]() -> StatusOr<const DirectApi*> {
                                        ++loads_;
                                        if (!has_library_) {
                                          return Status(ErrorCode::kNotFound, "no library");
                                        }
                                        return &api_;
                                      },
                                      .connect_timeout_ns = connect_timeout_ns_});
    progress_.SetLinks(&*keeper_, [](const engine::Effects&) {});
    return *keeper_;
  }
  void Order(LinkOp op, uint32_t peer, uint64_t link, const std::string& address = "",
             ErrorCode code = ErrorCode::kOk) {
    attach::LinkOrder order{};
    order.op = static_cast<uint32_t>(op);
    order.peer = peer;
    order.link = link;
    order.code = static_cast<int32_t>(code);
    order.address_bytes = static_cast<uint32_t>(address.size());
    address.copy(reinterpret_cast<char*>(order.address), sizeof(order.address));
    order.send_key[1] = 11;
    order.receive_key[0] = 12;
    socket_.Send(order);
    next_look_ms_ = keeper_->Look();
  }
  // The events that the rank has told, such as "used 1 7"; the last reply is kept.
  std::vector<std::string> Events() {
    constexpr const char* kNames[] = {"", "opened", "refused", "used", "returned", "ended", "lost"};
    std::vector<std::string> events;
    for (const attach::LinkReply& reply : socket_.TakeReplies()) {
      reply_ = reply;
      events.push_back(std::string(kNames[reply.event]) + " " + std::to_string(reply.peer) + " " +
                       std::to_string(reply.link) + (reply.flags != 0 ? " was used" : ""));
    }
    return events;
  }
  PeerPath Path(uint32_t peer = kPeer) { return progress_.engine().PathTo(peer); }
  template <typename Action>
  void UnderLease(Action&& action) {
    ASSERT_TRUE(progress_.Enter());
    action();
    progress_.Exit();
  }
  void Step() {
    UnderLease([&] {
      engine::Effects effects;
      (void)progress_.Step(effects);
    });
  }
  void Lose(uint32_t peer) {
    UnderLease([&] { FakeLinks::last->lost = {peer}; });
    Step();
  }
  // An endpoint whose connections are like that from now on.
  FakeLinks& OpenWith(ErrorCode connection, const std::string& words) {
    Order(LinkOp::kOpen, kOther, 3);
    EXPECT_THAT(Events(), ElementsAre("opened 2 3"));
    Order(LinkOp::kRefuse, kOther, 3);
    FakeLinks::last->connection = connection;
    FakeLinks::last->words = words;
    return *FakeLinks::last;
  }
  // Looks until there are some.
  std::vector<std::string> NextEvents() {
    std::vector<std::string> events;
    while ((events = Events()).empty()) {
      next_look_ms_ = keeper_->Look();
    }
    return events;
  }
  shm::LinkState AskedFor(uint32_t peer = kPeer) {
    return static_cast<shm::LinkState>(rank_.view().layout->links[peer].state);
  }
  // The peer has drained the marker, and all before it.
  void AnswerMarker(uint32_t peer = kPeer) {
    shm::SessionLayout& session = *rank_.view().layout;
    shm::Descriptor credit{};
    credit.kind = static_cast<uint8_t>(shm::DescriptorKind::kCredit);
    credit.source = peer;
    credit.destination = 0;
    const shm::CreditReturn words{
        session.peers[peer].sent, shm::kCreditAll, 0, session.peers[peer].path_epoch, {}};
    std::memcpy(credit.payload, &words, sizeof(words));
    ASSERT_TRUE(lane_.TryPush(credit));
    shm::Wake(rank_.view().inbox.wake()).PublishLane(shm::DaemonLane(1));
    Step();
  }
  // A link that messages to the peer take.
  FakeLinks& Use(uint32_t peer = kPeer, uint64_t link = 7) {
    Order(LinkOp::kOpen, peer, link);
    Order(LinkOp::kUse, peer, link, "peer");
    AnswerMarker(peer);
    EXPECT_EQ(Path(peer), PeerPath::kLink);
    EXPECT_THAT(Events(), ElementsAre("opened " + std::to_string(peer) + " " + std::to_string(link),
                                      "used " + std::to_string(peer) + " " + std::to_string(link)));
    return *FakeLinks::last;
  }
  void TellOfDeath(uint32_t peer, ErrorCode error) {
    shm::StoreRelease(rank_.view().layout->peers[peer].dead, static_cast<uint32_t>(error));
    shm::FetchAdd(rank_.view().inbox.wake()->death_epoch, 1, std::memory_order_release);
  }

  OrderSocket socket_;
  attach::LinkRules rules_{};
  RegionTable regions_;
  LonelyRank rank_;
  shm::LaneProducer lane_ = [this] {
    shm::LaneProducer lane(rank_.view().inbox.lane(shm::DaemonLane(1)));
    lane.Open(0);
    return lane;
  }();
  Progress progress_{Progress::Parts{.view = rank_.view(),
                                     .peers = &rank_.peers(),
                                     .engine = {},
                                     .own_lane = 0,
                                     .doorbell = -1,
                                     .wait_policy = {},
                                     .threads = false}};
  DirectApi api_{kDirectApiVersion, kLayoutVersion, OpenFake};
  bool has_library_ = true;
  int loads_ = 0;
  int next_look_ms_ = 0;
  uint64_t connect_timeout_ns_ = LinkKeeper::kConnectTimeoutNs;
  attach::LinkReply reply_{};
  std::optional<LinkKeeper> keeper_;
};

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
  EXPECT_EQ(reply_.event, static_cast<uint32_t>(LinkEvent::kReturned));
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
    shm::FetchAdd(rank_.view().layout->one_sided[kPeer].done, 1, std::memory_order_release);
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
  EXPECT_TRUE(keeper_->HasWork());  // somebody has to turn
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
  rank_.view().layout->links[kPeer].state = static_cast<uint32_t>(shm::LinkState::kAsked);
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

TEST_F(LinkKeeperTest, ALinkThatThisRankRefusesNeedsNoTurns) {
  Make();
  Order(LinkOp::kOpen, kPeer, 7, "peer");
  EXPECT_TRUE(keeper_->HasWork());
  std::byte memory[64];
  regions_.Add({.base = memory, .size_bytes = sizeof(memory), .id = 5, .by_stream = true});
  Order(LinkOp::kUse, kPeer, 7, "peer");
  EXPECT_THAT(Events(), ElementsAre("opened 1 7", "refused 1 7"));
  Step();
  EXPECT_FALSE(keeper_->HasWork());
}

// ---- The lease ----

// Its holder was stopped, perhaps for good. The watcher has the daemon to look after.
// For device memory that no link carries. The daemon is to have the other directions returned, too.
TEST_F(LinkKeeperTest, ARankMayGiveItsLinksUp) {
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

TEST_F(LinkKeeperTest, ALeaseThatIsNotToBeHadHoldsNobodyUp) {
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

// ---- What breaks ----

TEST_F(LinkKeeperTest, ALostLinkThatMessagesTakeIsTold) {
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
TEST_F(LinkKeeperTest, ALostLinkThatOneSidedOperationsTakeIsABreak) {
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

// The same, but the other rank has noticed first.
TEST_F(LinkKeeperTest, TheDaemonMayEndWhatOneSidedOperationsTake) {
  Make();
  FakeLinks& links = Use();
  Order(LinkOp::kReturn, kPeer, 7);
  AnswerMarker();
  links.wanted = {kPeer};
  Order(LinkOp::kEnd, kPeer, 7, "", ErrorCode::kLinkDown);
  EXPECT_THAT(Events(), ElementsAre("ended 1 7 was used"));
  EXPECT_EQ(Path(), PeerPath::kBroken);
}

// The peer may have heard first that the link is over. If it has not, it cannot be used again.
TEST_F(LinkKeeperTest, ALostLinkThatNothingTakesFailsNothing) {
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

// What ends because the link ends is no loss.
TEST_F(LinkKeeperTest, AConnectionThatGoesWhileTheLinkEndsIsNotTold) {
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

TEST_F(LinkKeeperTest, TheCoreEndsItsWorkBeforeTheEngineHearsOfADeath) {
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

TEST_F(LinkKeeperTest, TheDaemonMayEndWhatMessagesTake) {
  Make();
  FakeLinks& links = Use();
  Order(LinkOp::kEnd, kPeer, 7, "", ErrorCode::kLinkDown);
  EXPECT_EQ(links.calls.back(), "end 1 " + std::to_string(static_cast<int>(ErrorCode::kLinkDown)));
  EXPECT_THAT(Events(), ElementsAre("ended 1 7 was used"));
  EXPECT_EQ(Path(), PeerPath::kBroken);
}

TEST_F(LinkKeeperTest, ANewLinkTakesThePlaceOfOneThatTheDaemonForgot) {
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

TEST_F(LinkKeeperTest, OrdersThatMakeNoSenseDoNothing) {
  Make();
  Order(LinkOp::kOpen, 0, 7);   // the rank itself
  Order(LinkOp::kOpen, 17, 7);  // nobody
  Order(static_cast<LinkOp>(99), kPeer, 7);
  Order(LinkOp::kReturn, kPeer, 7);
  Order(LinkOp::kRefuse, kPeer, 7);
  Order(LinkOp::kUse, kPeer, 7, "peer");
  EXPECT_THAT(Events(), ElementsAre("refused 1 7"));
  EXPECT_EQ(loads_, 0);
}

// ---- The rest ----

TEST_F(LinkKeeperTest, RegionsThatGoAreForgotten) {
  Make();
  keeper_->ForgetRegion(3);  // there are no links
  Order(LinkOp::kOpen, kPeer, 7, "peer");
  keeper_->ForgetRegion(3);
  EXPECT_EQ(FakeLinks::last->calls.back(), "forget 3");
}

// The table has it until it has gone.
TEST_F(LinkKeeperTest, ARegionThatIsForgottenIsNotFoundAnyMore) {
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

TEST_F(LinkKeeperTest, ItFindsTheRanksRegions) {
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

TEST_F(LinkKeeperTest, ARankWithoutLinksTurnsNothing) {
  Make();
  Order(LinkOp::kOpen, kPeer, 7);
  Step();
  EXPECT_EQ(FakeLinks::last->turns, 0U);
  Order(LinkOp::kUse, kPeer, 7, "peer");
  Step();
  EXPECT_NE(FakeLinks::last->turns, 0U);
}

// The daemon's worker leaves them to a rank that waits in the library.
TEST_F(LinkKeeperTest, CopiesThatTheLinkThreadHasFoundAreTheRanksToo) {
  Make();
  EXPECT_FALSE(progress_.TakeCopiesElsewhere());
  const uint32_t sequence = progress_.wake().PrepareToSleep();
  engine::Effects effects;
  effects.transfers[effects.transfer_count++] = 7;
  progress_.PerformElsewhere(effects);
  progress_.wake().Sleep(sequence, 0);  // for ever, had nobody been woken
  EXPECT_TRUE(progress_.has_copies_elsewhere());
  EXPECT_TRUE(progress_.TakeCopiesElsewhere());
  EXPECT_FALSE(progress_.TakeCopiesElsewhere());
}

}  // namespace
}  // namespace ferry::client
