// Two nodes' books of direct links of one job, with ranks that do as they are told. News between
// the books, and the orders and answers of ranks, travel when the test lets them.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "daemon/links/link_book.h"

namespace ferry::daemon {

// A rank's process, as far as links go. It fails the test if an order makes no sense.
class LinkedRank {
 public:
  struct End {
    uint64_t link = 0;
    bool connected = false;
    bool used = false;
    std::string address;  // of the peer
    std::vector<uint64_t> send_key, receive_key;
  };

  explicit LinkedRank(uint32_t rank) : rank_(rank) {}

  // It says nothing more of a link to that peer until it has heard what becomes of its wish.
  void Wish(uint32_t peer) { wishes_.insert(peer); }

  // Carries an order out, and returns what it answers.
  std::vector<attach::LinkReply> Obey(const attach::LinkOrder& order) {
    orders_.push_back(order);
    const auto op = static_cast<attach::LinkOp>(order.op);
    switch (op) {
      case attach::LinkOp::kOpen: {
        EXPECT_FALSE(ends_.contains(order.peer)) << "a second link to rank " << order.peer;
        End& end = ends_[order.peer];
        end.link = order.link;
        TakePeer(order, &end);
        if (refuses) {
          ends_.erase(order.peer);
          wishes_.erase(order.peer);
          attach::LinkReply reply = ReplyTo(order, attach::LinkEvent::kRefused);
          reply.code = static_cast<int32_t>(ErrorCode::kUnsupported);
          std::strcpy(reply.text, "no library");
          return {reply};
        }
        attach::LinkReply reply = ReplyTo(order, attach::LinkEvent::kOpened);
        const std::string address = "rank" + std::to_string(rank_);
        reply.address_bytes = static_cast<uint32_t>(address.size());
        std::memcpy(reply.address, address.data(), address.size());
        return {reply};
      }
      case attach::LinkOp::kUse: {
        End& end = ends_[order.peer];
        EXPECT_EQ(end.link, order.link) << "use of a link that was not opened";
        EXPECT_FALSE(end.used) << "it is used already";
        wishes_.erase(order.peer);
        if (refuses) {
          return {ReplyTo(order, attach::LinkEvent::kRefused)};
        }
        TakePeer(order, &end);
        EXPECT_TRUE(end.connected) << "use without an address";
        end.used = true;
        return {ReplyTo(order, attach::LinkEvent::kUsed)};
      }
      case attach::LinkOp::kReturn:
        return Return(order.peer);
      case attach::LinkOp::kEnd: {
        attach::LinkReply reply = ReplyTo(order, attach::LinkEvent::kEnded);
        if (const auto found = ends_.find(order.peer); found != ends_.end()) {
          if (found->second.used) {
            EXPECT_NE(order.code, 0) << "messages take the link that was ended in good order";
            reply.flags = attach::kLinkWasUsed;
          }
          if (order.code != 0) {
            wishes_.erase(order.peer);
          }
          ends_.erase(found);
        }
        return {reply};
      }
      case attach::LinkOp::kRefuse:
        refusals_.push_back(static_cast<ErrorCode>(order.code));
        wishes_.erase(order.peer);
        if (const auto found = ends_.find(order.peer);
            found != ends_.end() && found->second.link == order.link) {
          ends_.erase(found);
        }
        return {};
    }
    ADD_FAILURE() << "order " << order.op;
    return {};
  }
  // The direction goes back.
  std::vector<attach::LinkReply> Return(uint32_t peer) {
    const auto found = ends_.find(peer);
    if (found == ends_.end() || !std::exchange(found->second.used, false)) {
      return {};
    }
    return {Say(peer, attach::LinkEvent::kReturned)};
  }
  // The connection is gone.
  std::vector<attach::LinkReply> Lose(uint32_t peer) {
    const auto found = ends_.find(peer);
    if (found == ends_.end() || !found->second.connected) {
      return {};
    }
    return {Say(peer, attach::LinkEvent::kLost)};
  }
  attach::LinkReply Say(uint32_t peer, attach::LinkEvent event) {
    attach::LinkReply reply{};
    reply.event = static_cast<uint32_t>(event);
    reply.peer = peer;
    reply.link = ends_[peer].link;
    return reply;
  }
  const End* EndTo(uint32_t peer) const {
    const auto found = ends_.find(peer);
    return found == ends_.end() ? nullptr : &found->second;
  }
  const std::vector<attach::LinkOrder>& orders() const { return orders_; }
  const std::vector<ErrorCode>& refusals() const { return refusals_; }
  // Those of which it has not heard anything yet.
  const std::set<uint32_t>& wishes() const { return wishes_; }

  bool refuses = false;  // to open or use anything

 private:
  static attach::LinkReply ReplyTo(const attach::LinkOrder& order, attach::LinkEvent event) {
    attach::LinkReply reply{};
    reply.event = static_cast<uint32_t>(event);
    reply.peer = order.peer;
    reply.link = order.link;
    return reply;
  }
  static void TakePeer(const attach::LinkOrder& order, End* end) {
    if (order.address_bytes != 0) {
      end->connected = true;
      end->address.assign(reinterpret_cast<const char*>(order.address), order.address_bytes);
      end->send_key.assign(std::begin(order.send_key), std::end(order.send_key));
      end->receive_key.assign(std::begin(order.receive_key), std::end(order.receive_key));
    }
  }

  const uint32_t rank_;
  std::map<uint32_t, End> ends_;
  std::vector<attach::LinkOrder> orders_;
  std::vector<ErrorCode> refusals_;
  std::set<uint32_t> wishes_;
};

// One node: its book, and its ranks.
class LinkNode final : public LinkCalls {
 public:
  // Ranks 0 and 1 are of node 0, ranks 2 to 4 of node 1.
  static JobPlan PlanOf(uint32_t node) {
    JobPlan plan;
    plan.job_id = "j";
    plan.node = node;
    plan.node_of_rank = {0, 0, 1, 1, 1};
    plan.local_index = {0, 1, 0, 1, 2};
    return plan;
  }
  struct Letter {
    uint32_t from, to;
    control::LinkNews news;
  };

  LinkNode(uint32_t node, std::deque<Letter>* letters, LinkLimits limits, uint64_t quota)
      : plan_(PlanOf(node)),
        letters_(*letters),
        ledger_({.links = quota}),
        book(plan_, this, limits) {
    for (uint32_t rank = 0; rank < plan_.size(); ++rank) {
      ranks.emplace_back(rank);
    }
  }

  void Tell(uint32_t node, const control::LinkNews& news) override {
    letters_.push_back({plan_.node, node, news});
  }
  void Order(uint32_t rank, const attach::LinkOrder& order) override {
    EXPECT_EQ(plan_.node_of_rank[rank], plan_.node);
    if (!dead_ranks.contains(rank)) {
      orders_.emplace_back(rank, order);
    }
  }
  Status MayLink(uint32_t) const override { return may_link; }
  StatusOr<QuotaHold> TakeQuota() override { return ledger_.Take(1000, {.links = 1}); }
  uint64_t Traffic(uint32_t rank, uint32_t peer) const override {
    const auto found = traffic.find({rank, peer});
    return found == traffic.end() ? 0 : found->second;
  }
  bool HasTransfers(uint32_t rank, uint32_t peer) const override {
    return transfers.contains({rank, peer});
  }
  void Part(uint32_t rank, uint32_t peer) override {
    const LinkedRank::End* end = ranks[rank].EndTo(peer);
    EXPECT_EQ(end, nullptr) << "parted while rank " << rank << " has its end";
    EXPECT_TRUE(parted.insert({rank, peer}).second);
  }
  bool IsParted(uint32_t rank, uint32_t peer) override {
    return !parts_slowly && parted.contains({rank, peer});
  }
  bool AreRejoined(uint32_t rank, uint32_t peer) override {
    return parted.erase({rank, peer}) == 1;
  }

  // Lets the ranks obey what they were told, and gives the book their answers.
  bool Obey() {
    const bool any = !orders_.empty();
    while (!orders_.empty()) {
      const auto [rank, order] = orders_.front();
      orders_.pop_front();
      Answer(rank, ranks[rank].Obey(order));
    }
    return any;
  }
  void Answer(uint32_t rank, const std::vector<attach::LinkReply>& replies) {
    for (const attach::LinkReply& reply : replies) {
      EXPECT_EQ(book.OnReply(rank, reply, 0).code(), ErrorCode::kOk);
    }
  }
  uint64_t quota_used() const {
    const auto used = ledger_.Used();
    return used.empty() ? 0 : used.begin()->second.links;
  }
  LinkState StateOf(uint32_t rank, uint32_t peer) const {
    for (const LinkView& view : book.Views()) {
      if (view.rank == rank && view.peer == peer) {
        return view.state;
      }
    }
    return LinkState::kNone;
  }

 private:
  const JobPlan plan_;
  std::deque<Letter>& letters_;
  QuotaLedger ledger_;
  std::deque<std::pair<uint32_t, attach::LinkOrder>> orders_;

 public:
  LinkBook book;
  std::vector<LinkedRank> ranks;  // by rank of the job; only those of this node are used
  Status may_link;
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> traffic;
  std::set<std::pair<uint32_t, uint32_t>> transfers;
  std::set<std::pair<uint32_t, uint32_t>> parted;
  std::set<uint32_t> dead_ranks;  // they obey no more
  bool parts_slowly = false;      // until OnTick
};

class LinkBooksTest : public testing::Test {
 protected:
  void Make(LinkLimits limits = {}, uint64_t quota = 0) {
    letters.clear();
    for (uint32_t node = 0; node < 2; ++node) {
      nodes[node] = std::make_unique<LinkNode>(node, &letters, limits, quota);
    }
  }
  void SetUp() override { Make(); }

  static uint32_t NodeOf(uint32_t rank) { return rank < 2 ? 0 : 1; }
  LinkNode& At(uint32_t rank) { return *nodes[NodeOf(rank)]; }
  void Ask(uint32_t rank, uint32_t peer) {
    At(rank).ranks[rank].Wish(peer);
    At(rank).book.Ask(rank, peer, 0);
  }
  void Return(uint32_t rank, uint32_t peer) {
    At(rank).Answer(rank, At(rank).ranks[rank].Return(peer));
  }
  void Lose(uint32_t rank, uint32_t peer) {
    At(rank).Answer(rank, At(rank).ranks[rank].Lose(peer));
  }
  Status Deliver(const LinkNode::Letter& letter) {
    const Status status = nodes[letter.to]->book.OnNews(letter.from, letter.news, 0);
    if (!status.ok()) {
      nodes[letter.from]->book.OnRefused(letter.news, status, 0);
    }
    return status;
  }
  // Delivers the next letter.
  bool DeliverOne() {
    if (letters.empty()) {
      return false;
    }
    const LinkNode::Letter letter = letters.front();
    letters.pop_front();
    EXPECT_EQ(Deliver(letter).message(), "");
    return true;
  }
  // Lets everything happen that is under way.
  void Settle() {
    for (int steps = 0; steps < 10'000; ++steps) {
      const bool first = nodes[0]->Obey();
      const bool second = nodes[1]->Obey();
      if (DeliverOne() || first || second) {
        continue;
      }
      nodes[0]->book.OnTick(0);
      nodes[1]->book.OnTick(0);
      if (letters.empty()) {
        return;
      }
    }
    FAIL() << "it never settles";
  }
  // A rank dies: its daemon notices, and tells the other one.
  void Kill(uint32_t rank) {
    At(rank).dead_ranks.insert(rank);
    nodes[NodeOf(rank)]->book.OnRankEnded(rank, ErrorCode::kPeerDied, 0);
    nodes[1 - NodeOf(rank)]->book.OnRankEnded(rank, ErrorCode::kPeerDied, 0);
  }
  LinkState StateOf(uint32_t rank, uint32_t peer) { return At(rank).StateOf(rank, peer); }
  uint64_t LinkOf(uint32_t rank, uint32_t peer) {
    for (const LinkView& view : At(rank).book.Views()) {
      if (view.rank == rank && view.peer == peer) {
        return view.link;
      }
    }
    return 0;
  }
  // The ends fit together.
  void ExpectUp(uint32_t rank, uint32_t peer) {
    EXPECT_EQ(StateOf(rank, peer), LinkState::kUp);
    EXPECT_EQ(StateOf(peer, rank), LinkState::kUp);
    const LinkedRank::End* here = At(rank).ranks[rank].EndTo(peer);
    const LinkedRank::End* there = At(peer).ranks[peer].EndTo(rank);
    ASSERT_NE(here, nullptr);
    ASSERT_NE(there, nullptr);
    EXPECT_EQ(here->link, there->link);
    EXPECT_EQ(here->address, "rank" + std::to_string(peer));
    EXPECT_EQ(there->address, "rank" + std::to_string(rank));
    EXPECT_EQ(here->send_key, there->receive_key);
    EXPECT_EQ(here->receive_key, there->send_key);
    EXPECT_NE(here->send_key, here->receive_key);
  }
  void ExpectNone(uint32_t rank, uint32_t peer) {
    EXPECT_EQ(StateOf(rank, peer), LinkState::kNone);
    EXPECT_EQ(StateOf(peer, rank), LinkState::kNone);
    EXPECT_EQ(At(rank).ranks[rank].EndTo(peer), nullptr);
    EXPECT_EQ(At(peer).ranks[peer].EndTo(rank), nullptr);
    EXPECT_FALSE(At(rank).ranks[rank].wishes().contains(peer)) << "rank " << rank << " waits";
    EXPECT_FALSE(At(peer).ranks[peer].wishes().contains(rank)) << "rank " << peer << " waits";
  }

  std::deque<LinkNode::Letter> letters;
  std::unique_ptr<LinkNode> nodes[2];
};

}  // namespace ferry::daemon
