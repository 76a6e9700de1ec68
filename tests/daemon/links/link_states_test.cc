// Whatever happens to two books of direct links, they agree in the end
// (daemon/links/link_book.h): every event in every state, and news that come again.
#include <random>
#include <tuple>

#include "tests/daemon/links/link_books.h"

namespace ferry::daemon {
namespace {

using attach::LinkEvent;
using control::LinkNews;

class LinkStatesTest : public LinkBooksTest,
                       public testing::WithParamInterface<std::tuple<int, bool>> {
 protected:
  // Takes so many steps of a whole life: it is asked for, made, used, returned by one, by both.
  void Reach(int stage, bool follower_asks) {
    int step = 0;
    const auto reached = [&] { return step++ == stage; };
    if (reached()) {
      return;
    }
    Ask(follower_asks ? 2 : 0, follower_asks ? 0 : 2);
    for (int round = 0; round < 6; ++round) {
      if (reached()) {
        return;
      }
      nodes[round % 2 == 0 ? 0 : 1]->Obey();
      if (reached()) {
        return;
      }
      DeliverOne();
    }
    Settle();
    if (reached()) {
      return;
    }
    Return(0, 2);
    Settle();
    if (reached()) {
      return;
    }
    Return(2, 0);
    DeliverOne();
  }
  // All that can be said to the two books, by number. False: there is no such event.
  bool Happen(int event) {
    for (const uint32_t rank : {0U, 2U}) {
      const uint32_t peer = 2 - rank;
      LinkNode& node = At(rank);
      for (const uint64_t link : {uint64_t{0}, uint64_t{1}, uint64_t{2}}) {
        for (uint32_t kind = 1; kind <= 6; ++kind) {
          // Of the link of now only what is so: the rank answers orders by itself.
          if (event-- == 0) {
            attach::LinkReply reply{};
            reply.event = kind;
            reply.peer = peer;
            reply.link = link;
            reply.address_bytes = 5;
            std::memcpy(reply.address, ("rank" + std::to_string(rank)).data(), 5);
            const LinkedRank::End* end = node.ranks[rank].EndTo(peer);
            const bool is_of_rank = end != nullptr && end->link == link;
            if (!is_of_rank && LinkOf(rank, peer) != link) {
              EXPECT_EQ(node.book.OnReply(rank, reply, 0).code(), ErrorCode::kOk);
            } else if (is_of_rank && kind == static_cast<uint32_t>(LinkEvent::kLost)) {
              Lose(rank, peer);
            } else if (is_of_rank && kind == static_cast<uint32_t>(LinkEvent::kReturned)) {
              Return(rank, peer);
            }
            return true;
          }
        }
      }
      if (event-- == 0) {
        Ask(rank, peer);
        return true;
      }
      if (event-- == 0) {
        node.book.TakeBack(rank, peer, true, 0);
        return true;
      }
      if (event-- == 0) {
        Kill(rank);
        return true;
      }
    }
    if (event-- == 0) {
      letters.clear();
      nodes[0]->book.OnNodeCut(1, 0);
      nodes[1]->book.OnNodeCut(0, 0);
      // The data planes then join all ranks anew.
      nodes[0]->parted.clear();
      nodes[1]->parted.clear();
      return true;
    }
    if (event-- == 0) {
      nodes[0]->book.OnTick(0);
      nodes[1]->book.OnTick(0);
      return true;
    }
    // The next letter comes twice, or is refused.
    if (event-- == 0) {
      if (!letters.empty()) {
        EXPECT_TRUE(Deliver(LinkNode::Letter(letters.front())).ok());
      }
      return true;
    }
    if (event-- == 0) {
      if (!letters.empty() && (letters.front().news.kind() == LinkNews::ASKED ||
                               letters.front().news.kind() == LinkNews::WANTED ||
                               letters.front().news.kind() == LinkNews::OPENED)) {
        const LinkNode::Letter letter = letters.front();
        letters.pop_front();
        nodes[letter.from]->book.OnRefused(letter.news, {ErrorCode::kInvalidArgument, "no"}, 0);
      }
      return true;
    }
    return false;
  }
  // Whatever has happened, the two books agree, and a link can be made (again).
  void ExpectWell() {
    Settle();
    const bool is_dead = nodes[0]->dead_ranks.contains(0) || nodes[1]->dead_ranks.contains(2);
    if (is_dead) {
      EXPECT_EQ(nodes[0]->quota_used() + nodes[1]->quota_used(), 0U);
      EXPECT_TRUE(nodes[0]->book.Views().empty() && nodes[1]->book.Views().empty());
      return;
    }
    // Twice, if a direction was wanted again before it was back.
    for (int i = 0; i < 2 && StateOf(0, 2) == LinkState::kUp; ++i) {
      ExpectUp(0, 2);
      Return(0, 2);
      Return(2, 0);
      Settle();
    }
    ExpectNone(0, 2);
    EXPECT_EQ(nodes[0]->quota_used() + nodes[1]->quota_used(), 0U);
    EXPECT_TRUE(nodes[0]->parted.empty() && nodes[1]->parted.empty());
    Ask(2, 0);
    Settle();
    ExpectUp(0, 2);
  }
};

TEST_P(LinkStatesTest, EveryEventLeavesTwoBooksThatAgree) {
  const auto [stage, follower_asks] = GetParam();
  for (int event = 0;; ++event) {
    Make();
    Reach(stage, follower_asks);
    if (!Happen(event)) {
      EXPECT_EQ(event, 2 * (18 + 3) + 4);
      break;
    }
    ExpectWell();
    ASSERT_FALSE(HasFailure()) << "stage " << stage << ", event " << event;
  }
}

TEST_P(LinkStatesTest, SoDoesEveryPairOfEvents) {
  const auto [stage, follower_asks] = GetParam();
  constexpr int kEvents = 2 * (18 + 3) + 4;
  for (int first = 0; first < kEvents; ++first) {
    for (int second = 0; second < kEvents; ++second) {
      Make();
      Reach(stage, follower_asks);
      Happen(first);
      nodes[first % 2]->Obey();
      if (second % 3 == 0) {
        DeliverOne();
      }
      Happen(second);
      ExpectWell();
      ASSERT_FALSE(HasFailure()) << "stage " << stage << ", events " << first << ", " << second;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(LinkBook, LinkStatesTest,
                         testing::Combine(testing::Range(0, 17), testing::Bool()));

// News are repeated until they are answered, so they may come again much later.
TEST_F(LinkBooksTest, OldNewsThatComeAgainDoNoHarm) {
  for (uint32_t seed = 1; seed <= 400; ++seed) {
    Make();
    std::mt19937 dice(seed);
    const auto below = [&](uint32_t n) { return static_cast<uint32_t>(dice() % n); };
    std::vector<LinkNode::Letter> said;
    for (int step = 0; step < 120; ++step) {
      const uint32_t rank = below(2) == 0 ? below(2) : 2 + below(2);
      const uint32_t peer = rank < 2 ? 2 + below(2) : below(2);
      switch (below(10)) {
        case 0:
          Ask(rank, peer);
          break;
        case 1:
          Return(rank, peer);
          break;
        case 2:
          if (below(4) == 0) {
            Lose(rank, peer);
          }
          break;
        case 3:
          if (!said.empty()) {
            (void)Deliver(said[below(static_cast<uint32_t>(said.size()))]);
          }
          break;
        case 4:
          if (below(8) == 0) {
            At(rank).book.TakeBack(rank, peer, true, 0);
          }
          break;
        case 5:
          nodes[0]->book.OnTick(0);
          nodes[1]->book.OnTick(0);
          break;
        case 6:
          nodes[below(2)]->Obey();
          break;
        default:
          if (!letters.empty()) {
            said.push_back(letters.front());
            DeliverOne();
          }
          break;
      }
      ASSERT_FALSE(HasFailure()) << "seed " << seed << ", step " << step;
    }
    Settle();
    for (const uint32_t rank : {0U, 1U}) {
      for (const uint32_t peer : {2U, 3U}) {
        if (StateOf(rank, peer) == LinkState::kUp) {
          ExpectUp(rank, peer);
        } else {
          ExpectNone(rank, peer);
        }
      }
    }
    EXPECT_TRUE(nodes[0]->parted.empty() && nodes[1]->parted.empty());
    EXPECT_EQ(nodes[0]->quota_used(), nodes[0]->book.links());
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace ferry::daemon
