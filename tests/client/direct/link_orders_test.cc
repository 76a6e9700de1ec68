// Ranks with all that a direct link takes, from the daemon's orders to the sockets, whose programs
// compute all the time: only their watchers, which are the test, and their link threads do
// anything.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/socket.h>

#include <cstring>
#include <memory>
#include <optional>
#include <string>

#include "client/links/link_keeper.h"
#include "common/clock.h"
#include "common/unique_fd.h"
#include "tests/client/direct/linked_rank.h"
#include "tests/client/lonely_rank.h"
#include "tests/client/order_socket.h"
#include "tests/support/patience.h"
#include "transports/tcp/tcp_address.h"

namespace ferry::client {
namespace {

using attach::LinkEvent;
using attach::LinkOp;
using attach::LinkOrder;
using attach::LinkReply;
using shm::PeerPath;
using testing::HasSubstr;

constexpr uint64_t kLink = 7;

class OrderedRank {
 public:
  explicit OrderedRank(uint32_t rank, uint64_t connect_timeout_ns = LinkKeeper::kConnectTimeoutNs)
      : rank_(rank) {
    attach::LinkRules rules{};
    rules.operation_timeout_ms = 10'000;
    std::strcpy(rules.provider, link_provider);
    std::strcpy(rules.source_address, "127.0.0.1");
    keeper_.emplace(LinkKeeper::Parts{
        .progress = &progress_,
        .attach = &socket_.attach(),
        .regions = &regions_,
        .job_id = "j",
        .rules = rules,
        .open_library = []() -> StatusOr<const DirectApi*> { return OpenDirectLibrary(); },
        .land = nullptr,  // no message comes
        .connect_timeout_ns = connect_timeout_ns});
    progress_.SetLinks(&*keeper_, [](const engine::Effects&) {});
  }
  // Gives an order about the link with `peer`, of whose address it tells.
  void Order(LinkOp op, uint32_t peer, const void* address = nullptr, uint32_t address_bytes = 0) {
    LinkOrder order{};
    order.op = static_cast<uint32_t>(op);
    order.peer = peer;
    order.link = kLink;
    order.address_bytes = address_bytes;
    if (address_bytes != 0) {
      std::memcpy(order.address, address, address_bytes);
    }
    order.send_key[0] = 1 + peer;
    order.receive_key[0] = 1 + rank_.view().rank;
    socket_.Send(order);
  }
  void Order(LinkOp op, uint32_t peer, const LinkReply& peer_opened) {
    Order(op, peer, peer_opened.address, peer_opened.address_bytes);
  }
  std::optional<LinkReply> Look() {
    (void)keeper_->Look();
    const std::vector<LinkReply> replies = socket_.TakeReplies();
    EXPECT_LE(replies.size(), 1U);
    return replies.empty() ? std::nullopt : std::optional(replies[0]);
  }
  PeerPath PathTo(uint32_t peer) { return progress_.paths().PathTo(peer); }
  bool has_links() const { return keeper_->has_links(); }

 private:
  OrderSocket socket_;
  RegionTable regions_;
  LonelyRank rank_;
  Progress progress_{Progress::Parts{.view = rank_.view(),
                                     .peers = &rank_.peers(),
                                     .engine = {},
                                     .own_lane = 0,
                                     .doorbell = -1,
                                     .wait_policy = {},
                                     .threads = false}};
  std::optional<LinkKeeper> keeper_;
};

// Looks until the rank answers.
LinkReply Await(OrderedRank& rank) {
  const uint64_t end_ns = MonotonicNs() + tests::kPatienceNs;
  while (MonotonicNs() < end_ns) {
    if (const std::optional<LinkReply> reply = rank.Look()) {
      return *reply;
    }
    sched_yield();
  }
  ADD_FAILURE() << "it does not answer";
  return {};
}

void ExpectEvent(const LinkReply& reply, LinkEvent event) {
  EXPECT_EQ(reply.event, static_cast<uint32_t>(event)) << reply.text;
  EXPECT_EQ(reply.link, kLink);
}

TEST(LinkOrdersTest, RanksThatComputeConnect) {
  OrderedRank caller(0), called(1);
  caller.Order(LinkOp::kOpen, 1);
  const LinkReply its_end = Await(caller);
  ExpectEvent(its_end, LinkEvent::kOpened);
  called.Order(LinkOp::kOpen, 0, its_end);
  const LinkReply other_end = Await(called);
  ExpectEvent(other_end, LinkEvent::kOpened);
  caller.Order(LinkOp::kUse, 1, other_end);
  ExpectEvent(Await(caller), LinkEvent::kUsed);
  EXPECT_EQ(caller.PathTo(1), PeerPath::kToLink);
  EXPECT_EQ(called.PathTo(0), PeerPath::kDaemon);
  called.Order(LinkOp::kUse, 0, its_end);
  ExpectEvent(Await(called), LinkEvent::kUsed);
  EXPECT_EQ(called.PathTo(0), PeerPath::kToLink);
}

// The other one has told of its end, and is gone.
TEST(LinkOrdersTest, APeerThatIsNotThereIsRefused) {
  OrderedRank caller(0);
  std::optional<OrderedRank> called(1);
  caller.Order(LinkOp::kOpen, 1);
  called->Order(LinkOp::kOpen, 0, Await(caller));
  const LinkReply other_end = Await(*called);
  called.reset();
  caller.Order(LinkOp::kUse, 1, other_end);
  const LinkReply reply = Await(caller);
  ExpectEvent(reply, LinkEvent::kRefused);
  EXPECT_THAT(reply.text, HasSubstr("Connection refused (127.0.0.1:"));
  EXPECT_EQ(caller.PathTo(1), PeerPath::kDaemon);
  EXPECT_FALSE(caller.has_links());
}

TEST(LinkOrdersTest, APeerThatDoesNotAnswerIsRefused) {
  OrderedRank caller(0, /*connect_timeout_ns=*/1'000'000'000);  // time to be connected when busy
  caller.Order(LinkOp::kOpen, 1);
  const LinkReply its_end = Await(caller);
  auto address = *transport::ParseTcpAddress(
      {reinterpret_cast<const std::byte*>(its_end.address), its_end.address_bytes});
  const UniqueFd silent(socket(address.family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  transport::SocketAddress at = transport::SocketAddressOf(address);
  reinterpret_cast<sockaddr_in*>(&at.storage)->sin_port = 0;
  ASSERT_EQ(bind(silent.get(), at.get(), at.bytes), 0);
  ASSERT_EQ(listen(silent.get(), 8), 0);
  ASSERT_EQ(getsockname(silent.get(), reinterpret_cast<sockaddr*>(&at.storage), &at.bytes), 0);
  address.port = ntohs(reinterpret_cast<const sockaddr_in*>(&at.storage)->sin_port);
  caller.Order(LinkOp::kUse, 1, &address, sizeof(address));
  const LinkReply reply = Await(caller);
  ExpectEvent(reply, LinkEvent::kRefused);
  EXPECT_EQ(std::string(reply.text), "tried for 1000 ms: " + transport::TcpAddressText(address) +
                                         " takes the connection, but does not answer the greeting");
  EXPECT_EQ(caller.PathTo(1), PeerPath::kDaemon);
}

}  // namespace
}  // namespace ferry::client
