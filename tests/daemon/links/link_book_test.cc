// How direct links are granted, used, taken back and broken (daemon/links/link_book.h).
#include <gmock/gmock.h>

#include "tests/daemon/links/link_books.h"

namespace ferry::daemon {
namespace {

using attach::LinkEvent;
using attach::LinkOp;
using control::LinkNews;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// The orders that a rank was given, such as "open", "use+" (with the address of the peer).
std::vector<std::string> OrdersOf(const LinkedRank& rank) {
  std::vector<std::string> texts;
  for (const attach::LinkOrder& order : rank.orders()) {
    constexpr const char* kNames[] = {"", "open", "use", "return", "end", "refuse"};
    texts.push_back(kNames[order.op] + std::string(order.address_bytes != 0 ? "+" : "") +
                    (order.code != 0 ? " " + std::to_string(order.code) : ""));
  }
  return texts;
}

std::string Number(ErrorCode code) { return std::to_string(static_cast<int>(code)); }

TEST_F(LinkBooksTest, NothingComesToAnEndThatDoesNotKnowItsPeer) {
  Ask(0, 2);
  EXPECT_EQ(StateOf(0, 2), LinkState::kOpening);
  nodes[0]->Obey();
  ASSERT_EQ(letters.size(), 1U);
  EXPECT_EQ(letters[0].news.kind(), LinkNews::WANTED);
  DeliverOne();
  nodes[1]->Obey();
  ASSERT_EQ(letters.size(), 1U);
  EXPECT_EQ(letters[0].news.kind(), LinkNews::OPENED);
  EXPECT_THAT(OrdersOf(nodes[1]->ranks[2]), ElementsAre("open+"));
  DeliverOne();
  EXPECT_TRUE(letters.empty());  // it has not connected yet
  nodes[0]->Obey();
  EXPECT_THAT(OrdersOf(nodes[0]->ranks[0]), ElementsAre("open", "use+"));
  ASSERT_EQ(letters.size(), 1U);
  EXPECT_EQ(letters[0].news.kind(), LinkNews::USED);
  Settle();
  EXPECT_THAT(OrdersOf(nodes[1]->ranks[2]), ElementsAre("open+", "use+"));
  ExpectUp(0, 2);
  EXPECT_EQ(nodes[0]->quota_used(), 1U);
  EXPECT_EQ(nodes[1]->quota_used(), 1U);
}

TEST_F(LinkBooksTest, TheOtherRankMayAskAndBothMay) {
  Ask(2, 0);
  EXPECT_EQ(StateOf(2, 0), LinkState::kAsked);
  Ask(0, 2);
  Ask(2, 0);
  Settle();
  ExpectUp(0, 2);
  EXPECT_THAT(OrdersOf(nodes[1]->ranks[2]), ElementsAre("open+", "use+"));
  EXPECT_THAT(OrdersOf(nodes[0]->ranks[0]), ElementsAre("open", "use+"));
}

TEST_F(LinkBooksTest, OnceBothDirectionsAreBackItEndsAndTheNextOneIsAnother) {
  for (uint64_t link = 1; link <= 3; ++link) {
    Ask(link == 2 ? 2 : 0, link == 2 ? 0 : 2);
    Settle();
    ExpectUp(0, 2);
    EXPECT_EQ(nodes[0]->ranks[0].EndTo(2)->link, link);
    Return(0, 2);
    Settle();
    ExpectUp(0, 2);  // the other direction still takes it
    Return(2, 0);
    Settle();
    ExpectNone(0, 2);
    EXPECT_EQ(nodes[0]->quota_used(), 0U);
    EXPECT_EQ(nodes[1]->book.links(), 0U);
  }
}

TEST_F(LinkBooksTest, ADirectionThatIsBackMayTakeItAgain) {
  Ask(0, 2);
  Settle();
  Return(0, 2);
  Ask(0, 2);  // this daemon leads
  Settle();
  EXPECT_TRUE(nodes[0]->ranks[0].EndTo(2)->used);
  Return(2, 0);
  Ask(2, 0);  // this one asks the leader, behind the news that it was back
  Settle();
  EXPECT_TRUE(nodes[1]->ranks[2].EndTo(0)->used);
  ExpectUp(0, 2);
  // The wish may also come ahead of the return, for it goes another way.
  for (const auto& [rank, peer] : {std::pair(0U, 2U), std::pair(2U, 0U)}) {
    Ask(rank, peer);
    Return(rank, peer);
    Settle();
    EXPECT_TRUE(At(rank).ranks[rank].EndTo(peer)->used);
  }
  Return(0, 2);
  Return(2, 0);
  Settle();
  ExpectNone(0, 2);
}

// Its connection was closed while nothing took it, say.
TEST_F(LinkBooksTest, ALinkThatCannotBeUsedAgainEnds) {
  for (const uint32_t rank : {0U, 2U}) {
    const uint32_t peer = 2 - rank;
    Ask(0, 2);
    Settle();
    Return(rank, peer);
    Settle();
    At(rank).ranks[rank].refuses = true;
    Ask(rank, peer);
    Settle();
    ExpectNone(0, 2);
    At(rank).ranks[rank].refuses = false;
    Ask(rank, peer);
    Settle();
    ExpectUp(0, 2);
    Return(0, 2);
    Return(2, 0);
    Settle();
  }
}

// For device memory that it cannot carry, though its connection stands: whether its direction takes
// it just now or not, the other one's does.
TEST_F(LinkBooksTest, ARankMayGiveALinkUp) {
  for (const uint32_t rank : {0U, 2U}) {
    for (const bool was_back : {false, true}) {
      const uint32_t peer = 2 - rank;
      Ask(0, 2);
      Settle();
      std::vector<attach::LinkReply> replies = At(rank).ranks[rank].Return(peer);
      if (was_back) {
        At(rank).Answer(rank, replies);
        Settle();
        ExpectUp(0, 2);
      }
      replies[0].event = static_cast<uint32_t>(LinkEvent::kRefused);
      At(rank).Answer(rank, replies);
      Settle();
      ExpectNone(0, 2);
    }
  }
}

TEST_F(LinkBooksTest, AWishThatComesWhileItEndsBringsTheNextOne) {
  for (const uint32_t rank : {0U, 2U}) {
    const uint32_t peer = 2 - rank;
    Ask(0, 2);
    Settle();
    Return(0, 2);
    Return(2, 0);
    if (rank == 0) {
      DeliverOne();  // RETURNED: the leader ends it
      EXPECT_EQ(StateOf(0, 2), LinkState::kEnding);
    }
    Ask(rank, peer);
    Settle();
    ExpectUp(0, 2);
    Return(0, 2);
    Return(2, 0);
    Settle();
  }
}

// The other daemon may hear that the leader wants the next link before its own rank has let go of
// the last one.
TEST_F(LinkBooksTest, TheNextLinkWaitsForTheEndOfTheLastOne) {
  for (const bool is_wanted : {false, true}) {
    for (const bool has_ended : {false, true}) {
      Make();
      Ask(0, 2);
      Settle();
      Return(0, 2);
      Return(2, 0);
      DeliverOne();  // RETURNED
      DeliverOne();  // ENDED
      nodes[0]->Obey();
      EXPECT_EQ(StateOf(2, 0), LinkState::kEnding);
      Ask(0, 2);
      nodes[0]->Obey();
      DeliverOne();  // WANTED
      EXPECT_EQ(StateOf(2, 0), LinkState::kEnding);
      if (is_wanted) {
        Ask(2, 0);
      }
      if (has_ended) {  // the leader has changed its mind
        control::LinkNews news;
        news.set_kind(control::LinkNews::ENDED);
        news.set_rank(0);
        news.set_peer(2);
        news.set_link(2);
        EXPECT_TRUE(Deliver({0, 1, news}).ok());
        nodes[1]->Obey();
        EXPECT_EQ(StateOf(2, 0), is_wanted ? LinkState::kAsked : LinkState::kNone);
        continue;
      }
      Settle();
      ExpectUp(0, 2);
      EXPECT_EQ(LinkOf(2, 0), 2U);
      EXPECT_EQ(nodes[1]->quota_used(), 1U);
      Return(0, 2);
      Return(2, 0);
      Settle();
      ExpectNone(0, 2);
    }
  }
}

// It was used until its end: then messages may be lost.
TEST_F(LinkBooksTest, TheNextLinkIsRefusedIfTheLastOneBreaksAtItsEnd) {
  Ask(0, 2);
  Settle();
  Return(0, 2);
  Return(2, 0);
  DeliverOne();  // RETURNED
  DeliverOne();  // ENDED
  nodes[0]->Obey();
  Ask(0, 2);
  nodes[0]->Obey();
  DeliverOne();  // WANTED
  attach::LinkReply reply{};
  reply.event = static_cast<uint32_t>(attach::LinkEvent::kEnded);
  reply.peer = 0;
  reply.link = 1;
  reply.flags = attach::kLinkWasUsed;
  (void)At(2).ranks[2].Obey([] {
    attach::LinkOrder end{};
    end.op = static_cast<uint32_t>(attach::LinkOp::kEnd);
    end.link = 1;
    return end;
  }());
  At(2).Answer(2, {reply});
  Settle();
  ExpectNone(0, 2);
  EXPECT_EQ(LinkOf(0, 2), LinkOf(2, 0));
  for (const uint32_t rank : {0U, 2U}) {
    EXPECT_EQ(At(rank).ranks[rank].refusals().back(), ErrorCode::kLinkDown);
  }
  Ask(2, 0);
  Settle();
  ExpectUp(0, 2);
}

// ---- Refusals ----

// It has returned its direction, wants to use the link again, and hears that there is none.
TEST_F(LinkBooksTest, WhoeverAsksAgainIsToldIfThereIsNoLinkAnyMore) {
  for (const bool may_link_here : {false, true}) {
    Make();
    Ask(0, 2);
    Settle();
    Return(2, 0);
    Settle();
    EXPECT_EQ(nodes[0]->book.TakeBack(0, 2, true, 0), 1U);  // which the other one does not know yet
    Ask(2, 0);
    nodes[may_link_here ? 1 : 0]->may_link = {ErrorCode::kUnsupported, "no"};
    Settle();
    ExpectNone(0, 2);
    EXPECT_THAT(nodes[1]->ranks[2].refusals(), ElementsAre(ErrorCode::kUnsupported));
    nodes[0]->may_link = nodes[1]->may_link = {};
    Ask(2, 0);
    Settle();
    ExpectUp(0, 2);
  }
}

// The leader's own rank wants the next link, too.
TEST_F(LinkBooksTest, BothAreToldIfBothAsk) {
  Ask(0, 2);
  Settle();
  Return(0, 2);
  Return(2, 0);
  DeliverOne();  // RETURNED: the leader ends it
  Ask(0, 2);
  Ask(2, 0);
  nodes[0]->may_link = {ErrorCode::kUnsupported, "no"};
  DeliverOne();  // ENDED
  DeliverOne();  // ASKED
  Settle();
  ExpectNone(0, 2);
  EXPECT_THAT(nodes[0]->ranks[0].refusals(), ElementsAre(ErrorCode::kUnsupported));
  EXPECT_THAT(nodes[1]->ranks[2].refusals(), ElementsAre(ErrorCode::kUnsupported));
}

TEST_F(LinkBooksTest, ARankIsToldWhyNot) {
  nodes[0]->may_link = {ErrorCode::kConfiguration, "the option direct_links is off"};
  Ask(0, 2);
  Ask(2, 1);
  Settle();
  EXPECT_THAT(nodes[0]->ranks[0].refusals(), ElementsAre(ErrorCode::kConfiguration));
  EXPECT_THAT(nodes[1]->ranks[2].refusals(), ElementsAre(ErrorCode::kConfiguration));
  for (const LinkView& view : nodes[1]->book.Views()) {
    EXPECT_EQ(view.why, "the option direct_links is off");
    EXPECT_EQ(view.asked, 1U);
  }
  nodes[0]->may_link = {};
  Ask(2, 1);
  Settle();
  ExpectUp(2, 1);
}

TEST_F(LinkBooksTest, TheOtherDaemonMayRefuse) {
  nodes[1]->may_link = {ErrorCode::kUnsupported, "no"};
  Ask(0, 2);
  Settle();
  EXPECT_THAT(nodes[0]->ranks[0].refusals(), ElementsAre(ErrorCode::kUnsupported));
  ExpectNone(0, 2);
  EXPECT_EQ(nodes[0]->quota_used(), 0U);
}

TEST_F(LinkBooksTest, ARankMayHaveNoLibrary) {
  nodes[1]->ranks[2].refuses = true;
  Ask(0, 2);
  Ask(2, 1);
  Settle();
  ExpectNone(0, 2);
  ExpectNone(2, 1);
  EXPECT_THAT(nodes[0]->ranks[0].refusals(), ElementsAre(ErrorCode::kUnsupported));
  nodes[1]->ranks[2].refuses = false;
  nodes[0]->ranks[0].refuses = true;
  Ask(2, 0);
  Settle();
  EXPECT_EQ(nodes[1]->ranks[2].refusals().back(), ErrorCode::kUnsupported);
  EXPECT_EQ(nodes[0]->quota_used() + nodes[1]->quota_used(), 0U);
}

TEST_F(LinkBooksTest, AtItsLimitARankReturnsWhatIsIdle) {
  Make({.per_rank = 1});
  Ask(0, 2);
  Settle();
  Ask(0, 3);
  Settle();
  EXPECT_THAT(nodes[0]->ranks[0].refusals(), ElementsAre(ErrorCode::kLimitExceeded));
  ExpectNone(0, 2);  // both its directions were returned
  Ask(0, 3);
  Settle();
  ExpectUp(0, 3);
  EXPECT_EQ(nodes[0]->book.LinksOf(0), 1U);
}

TEST_F(LinkBooksTest, TheIdlestLinkGivesWayButNoBusyOne) {
  Make({.per_rank = 2, .idle_ns = 100});
  Ask(0, 2);
  Ask(0, 3);
  Settle();
  LinkBook& book = nodes[0]->book;
  auto& traffic = nodes[0]->traffic;
  const auto ask = [&](uint64_t now_ns) {
    book.Ask(0, 4, now_ns);
    std::string why;
    for (const LinkView& view : book.Views()) {
      why = view.peer == 4 ? view.why : why;
    }
    Settle();
    return why;
  };
  traffic[{0, 2}] = traffic[{0, 3}] = 1;
  EXPECT_THAT(ask(1000), HasSubstr("none is idle"));
  traffic[{0, 2}] = 2;
  book.OnTick(1050);
  EXPECT_THAT(ask(1099), HasSubstr("none is idle"));
  ExpectUp(0, 2);
  ExpectUp(0, 3);
  EXPECT_THAT(ask(1200), HasSubstr("one goes back"));
  ExpectUp(0, 2);
  ExpectNone(0, 3);
  (void)ask(1200);
  ExpectUp(0, 4);
  EXPECT_EQ(nodes[0]->ranks[0].refusals().size(), 3U);
}

// A message of many gigabytes is counted when it begins, and moves for seconds.
TEST_F(LinkBooksTest, ALinkWithALongTransferIsBusy) {
  Make({.per_rank = 1, .idle_ns = 100});
  Ask(0, 2);
  Settle();
  LinkBook& book = nodes[0]->book;
  nodes[0]->transfers = {{0, 2}};
  book.Ask(0, 3, 1000);
  nodes[0]->transfers.clear();
  Settle();
  ExpectUp(0, 2);
  book.Ask(0, 3, 1099);  // it has just ended
  Settle();
  ExpectUp(0, 2);
  book.Ask(0, 3, 1100);
  Settle();
  ExpectNone(0, 2);
}

TEST_F(LinkBooksTest, LimitsOfTheJobAndOfTheUser) {
  Make({.per_rank = 64, .per_job = 1}, 0);
  Ask(0, 2);
  Settle();
  Ask(1, 3);
  Settle();
  EXPECT_THAT(nodes[0]->ranks[1].refusals(), ElementsAre(ErrorCode::kLimitExceeded));
  Make({}, 1);
  Ask(0, 2);
  Settle();
  Ask(3, 1);  // of the asker's user there is no limit left here either
  Settle();
  EXPECT_THAT(nodes[1]->ranks[3].refusals(), ElementsAre(ErrorCode::kLimitExceeded));
  EXPECT_EQ(nodes[1]->quota_used(), 1U);
}

// ---- Taken back ----

TEST_F(LinkBooksTest, TheAdministratorTakesItBackForGoodOrForNow) {
  for (const uint32_t rank : {0U, 2U}) {
    Ask(0, 2);
    Settle();
    EXPECT_EQ(At(rank).book.TakeBack(kAnyRank, kAnyRank, true, 0), 1U);
    EXPECT_EQ(At(rank).book.TakeBack(rank, 2 - rank, true, 0), 0U);  // it is on its way
    Settle();
    ExpectNone(0, 2);
  }
  Ask(0, 2);
  Settle();
  EXPECT_EQ(nodes[1]->book.TakeBack(2, 0, false, 0), 1U);
  Settle();
  Ask(0, 2);
  Settle();
  ExpectNone(0, 2);
  EXPECT_THAT(nodes[0]->ranks[0].refusals(), ElementsAre(ErrorCode::kPermissionDenied));
}

TEST_F(LinkBooksTest, PairsThatHaveNotAskedYetAreBarredToo) {
  EXPECT_EQ(nodes[0]->book.TakeBack(0, kAnyRank, false, 0), 0U);
  EXPECT_EQ(nodes[0]->book.TakeBack(1, 3, false, 0), 0U);
  for (const uint32_t rank : {0U, 1U}) {
    for (const uint32_t peer : {2U, 3U}) {
      Ask(peer, rank);
      Settle();
      if (rank == 1 && peer == 2) {
        ExpectUp(rank, peer);
        continue;
      }
      ExpectNone(rank, peer);
      EXPECT_EQ(nodes[1]->ranks[peer].refusals().back(), ErrorCode::kPermissionDenied);
    }
  }
}

TEST_F(LinkBooksTest, TheLastOrderThatNamesAPairCounts) {
  LinkBook& book = nodes[0]->book;
  const auto barred = [&] {
    std::string pairs;
    for (const uint32_t rank : {0U, 1U}) {
      for (const uint32_t peer : {2U, 3U}) {
        pairs += book.CheckBars(rank, peer).ok() ? '-' : 'x';
      }
    }
    return pairs;
  };
  EXPECT_EQ(barred(), "----");
  book.TakeBack(kAnyRank, 3, false, 0);
  EXPECT_EQ(barred(), "-x-x");
  book.TakeBack(1, kAnyRank, true, 0);
  EXPECT_EQ(barred(), "-x--");
  book.TakeBack(1, 2, false, 0);
  EXPECT_EQ(barred(), "-xx-");
  book.TakeBack(kAnyRank, 2, true, 0);
  EXPECT_EQ(barred(), "-x--");
  book.TakeBack(kAnyRank, kAnyRank, false, 0);
  EXPECT_EQ(barred(), "xxxx");
  book.TakeBack(kAnyRank, kAnyRank, true, 0);
  EXPECT_EQ(barred(), "----");
}

TEST_F(LinkBooksTest, ALinkThatIsNotUpYetIsTakenBackWhenItIs) {
  Ask(0, 2);
  EXPECT_EQ(nodes[0]->book.TakeBack(0, 2, true, 0), 1U);
  Settle();
  ExpectNone(0, 2);
  EXPECT_THAT(OrdersOf(nodes[1]->ranks[2]), ElementsAre("open+", "use+", "return", "end"));
}

// ---- Breaks ----

TEST_F(LinkBooksTest, TwoRanksWhoseLinkBreaksArePartedAndJoined) {
  Ask(0, 2);
  Settle();
  Lose(0, 2);
  EXPECT_EQ(StateOf(0, 2), LinkState::kBroken);
  nodes[0]->Obey();
  EXPECT_TRUE(nodes[0]->parted.empty());  // perhaps the other rank is dead
  nodes[1]->parts_slowly = true;
  DeliverOne();
  nodes[1]->Obey();
  EXPECT_EQ(nodes[1]->parted.size(), 1U);
  EXPECT_TRUE(letters.empty());
  nodes[1]->parts_slowly = false;
  nodes[1]->book.OnTick(0);
  ASSERT_EQ(letters.size(), 1U);
  EXPECT_EQ(letters[0].news.kind(), LinkNews::PARTED);
  DeliverOne();
  nodes[0]->Obey();
  Settle();
  EXPECT_TRUE(nodes[0]->parted.empty());
  EXPECT_TRUE(nodes[1]->parted.empty());
  ExpectNone(0, 2);
  EXPECT_THAT(OrdersOf(nodes[1]->ranks[2]),
              ElementsAre("open+", "use+", "end " + Number(ErrorCode::kLinkDown),
                          "refuse " + Number(ErrorCode::kLinkDown)));
  Ask(2, 0);
  Settle();
  ExpectUp(0, 2);
}

TEST_F(LinkBooksTest, BothMayLoseIt) {
  Ask(0, 2);
  Settle();
  Lose(2, 0);
  Lose(0, 2);
  Settle();
  ExpectNone(0, 2);
  EXPECT_TRUE(nodes[0]->parted.empty() && nodes[1]->parted.empty());
  EXPECT_EQ(nodes[0]->quota_used(), 0U);
}

TEST_F(LinkBooksTest, ThePeerOfADeadRankHearsOfItsDeathAlone) {
  Ask(0, 2);
  Settle();
  nodes[1]->dead_ranks.insert(2);
  Lose(0, 2);
  Settle();
  EXPECT_TRUE(nodes[0]->parted.empty());
  EXPECT_EQ(StateOf(0, 2), LinkState::kBroken);
  Kill(2);
  Settle();
  EXPECT_EQ(nodes[0]->ranks[0].orders().back().code, static_cast<int32_t>(ErrorCode::kPeerDied));
  EXPECT_EQ(nodes[0]->quota_used(), 0U);
  EXPECT_TRUE(nodes[0]->parted.empty());
  EXPECT_TRUE(nodes[0]->book.Views().empty());
}

// The news of a link's end may overtake a rank's own report that it lost the connection.
TEST_F(LinkBooksTest, AConnectionThatEndsWithTheLinkIsNoBreak) {
  Ask(0, 2);
  Settle();
  Return(0, 2);
  Return(2, 0);
  DeliverOne();      // the leader ends the link,
  nodes[0]->Obey();  // and its rank closes the connection,
  Lose(2, 0);        // which the other one sees first
  Settle();
  ExpectNone(0, 2);
  EXPECT_TRUE(nodes[0]->parted.empty() && nodes[1]->parted.empty());
  EXPECT_EQ(nodes[0]->quota_used() + nodes[1]->quota_used(), 0U);
}

// ---- What no correct rank or daemon says ----

TEST_F(LinkBooksTest, BadRepliesAreRefused) {
  Ask(0, 2);
  attach::LinkReply reply{};
  reply.link = 1;
  reply.peer = 1;  // a rank of this node
  reply.event = static_cast<uint32_t>(LinkEvent::kOpened);
  EXPECT_EQ(nodes[0]->book.OnReply(0, reply, 0).code(), ErrorCode::kCorrupt);
  reply.peer = 5;
  EXPECT_EQ(nodes[0]->book.OnReply(0, reply, 0).code(), ErrorCode::kCorrupt);
  reply.peer = 2;
  for (const uint32_t bytes : {0U, attach::kLinkAddressBytes + 1, UINT32_MAX}) {
    reply.address_bytes = bytes;
    EXPECT_EQ(nodes[0]->book.OnReply(0, reply, 0).code(), ErrorCode::kCorrupt) << bytes;
  }
  reply.address_bytes = 8;
  for (const uint32_t event : {0U, 7U, UINT32_MAX}) {
    reply.event = event;
    EXPECT_EQ(nodes[0]->book.OnReply(0, reply, 0).code(), ErrorCode::kCorrupt) << event;
  }
  reply.link = 7;  // of another link: not looked at
  EXPECT_EQ(nodes[0]->book.OnReply(0, reply, 0).code(), ErrorCode::kOk);
  EXPECT_EQ(StateOf(0, 2), LinkState::kOpening);
}

TEST_F(LinkBooksTest, BadNewsAreRefused) {
  const auto refused = [&](uint32_t rank, uint32_t peer, LinkNews::Kind kind,
                           const std::string& address = "a", int keys = 2) {
    LinkNews news;
    news.set_rank(rank);
    news.set_peer(peer);
    news.set_kind(kind);
    news.set_link(1);
    news.set_address(address);
    for (int i = 0; i < keys; ++i) {
      news.add_key(7);
    }
    return nodes[1]->book.OnNews(0, news, 0).code() == ErrorCode::kInvalidArgument;
  };
  EXPECT_TRUE(refused(5, 2, LinkNews::WANTED));
  EXPECT_TRUE(refused(0, 5, LinkNews::WANTED));
  EXPECT_TRUE(refused(0, 1, LinkNews::WANTED));
  EXPECT_TRUE(refused(3, 2, LinkNews::WANTED));
  EXPECT_TRUE(refused(0, 2, LinkNews::ASKED));  // rank 2's daemon does not lead
  EXPECT_TRUE(refused(0, 2, LinkNews::OPENED));
  EXPECT_TRUE(refused(0, 2, LinkNews::RETURNED));
  EXPECT_TRUE(refused(0, 2, LinkNews::WANTED, ""));
  EXPECT_TRUE(refused(0, 2, LinkNews::WANTED, std::string(65, 'a')));
  EXPECT_TRUE(refused(0, 2, LinkNews::WANTED, "a", 1));
  EXPECT_FALSE(refused(0, 2, LinkNews::WANTED));
  EXPECT_TRUE(refused(0, 2, static_cast<LinkNews::Kind>(99)));
  EXPECT_EQ(nodes[1]->book.links(), 1U);
}

}  // namespace
}  // namespace ferry::daemon
