// A rank whose daemon orders direct links (client/links/link_keeper.h): the test is the daemon, the
// library, and the ranks at the other ends.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "client/links/link_keeper.h"
#include "common/version.h"
#include "shm/lane.h"
#include "tests/client/lonely_rank.h"
#include "tests/client/order_socket.h"

namespace ferry::client {

using attach::LinkOp;
using shm::PeerPath;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

inline constexpr uint32_t kPeer = 1;
inline constexpr uint32_t kOther = 2;

// The core of a rank, as far as links go.
class FakeLinks final : public DirectLinks {
 public:
  explicit FakeLinks(DirectHost* host) : host_(host) {
    last = this;
    address_.size_bytes = 3;
    std::memcpy(address_.bytes, "me!", 3);
  }
  ~FakeLinks() override { last = nullptr; }
  LinkAddress AddressFor(uint32_t) const override { return address_; }
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
  void ForgetRegion(const HostRegion& region) override {
    calls.push_back("forget " + std::to_string(region.size_bytes) + " bytes");
    for (const uint32_t peer : std::exchange(lost_when_forgotten, {})) {
      connected.erase(peer);
      host_->OnLinkDown(peer, ErrorCode::kLinkDown, "freed");
    }
  }
  uint32_t Turn(uint64_t) override {
    ++turns;
    for (const uint32_t peer : std::exchange(lost, {})) {
      connected.erase(peer);
      host_->OnLinkDown(peer, ErrorCode::kLinkDown, "reset");
    }
    return 0;
  }
  bool HasWork() const override { return false; }
  bool PrepareToSleep() override { return true; }
  int WaitFd() const override { return -1; }
  uint64_t NextTurnNs(uint64_t) const override { return UINT64_MAX; }

  static inline FakeLinks* last = nullptr;
  DirectHost* const host_;
  std::vector<std::string> calls;
  std::set<uint32_t> connected;
  // The members below are changed under the lease: the link thread may turn.
  ErrorCode connection = ErrorCode::kOk;  // of all
  std::string words;
  std::set<std::pair<uint32_t, bool>> called;  // peers, and whether this rank calls
  uint32_t busy = 0;                           // so many times Connect would block
  std::set<uint32_t> wanted;                   // by one-sided operations
  std::vector<uint32_t> lost;                  // in the next turn
  std::vector<uint32_t> lost_when_forgotten;   // with the next region
  std::function<void()> on_end;
  bool is_idle = true;
  uint32_t turns = 0;

 private:
  LinkAddress address_;
};

inline StatusOr<std::unique_ptr<DirectLinks>> OpenFake(const DirectSetup& setup, DirectHost* host) {
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
                                      .land = nullptr,  // what comes is none of its business
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
  PeerPath Path(uint32_t peer = kPeer) { return progress_.paths().PathTo(peer); }
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
    return static_cast<shm::LinkState>(rank_.view().by_rank.links[peer].state);
  }
  // The peer has drained the marker, and all before it.
  void AnswerMarker(uint32_t peer = kPeer) {
    const shm::PeerWords& words_of_peer = rank_.view().by_rank.peers[peer];
    shm::Descriptor credit{};
    credit.kind = static_cast<uint8_t>(shm::DescriptorKind::kCredit);
    credit.source = peer;
    credit.destination = 0;
    const shm::CreditReturn words{
        words_of_peer.sent, shm::kCreditAll, 0, words_of_peer.path_epoch, {}};
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
  // The nodes are cut off from each other, and the rank has still to act on it.
  void TellOfCut(uint32_t peer) {
    shm::FetchAdd(rank_.view().by_rank.rtrs[peer].cuts, 1U, std::memory_order_release);
    TellOfDeath(peer, ErrorCode::kLinkDown);
  }
  void TellOfDeath(uint32_t peer, ErrorCode error) {
    rank_.view().by_rank.StoreDead(peer, error);
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

}  // namespace ferry::client
