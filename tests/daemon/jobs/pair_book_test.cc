// How persistent requests find their partners: the books of two daemons of one job, whose news
// travel when the test lets them.
#include "daemon/jobs/pair_book.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "shm/counter.h"
#include "shm/pair_move.h"
#include "shm/segment.h"
#include "tests/daemon/fake_data_plane.h"

namespace ferry::daemon {
namespace {

using control::PairKey;
using control::PairNews;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr uint64_t kHeapBytes = 1 << 16;
constexpr uint32_t kHeap = 1;
constexpr uint32_t kLent = 2;    // peers must not write there
constexpr uint32_t kDevice = 3;  // only streams reach it
constexpr uint64_t kDeviceBytes = 1 << 20;

JobPlan PlanOf(uint32_t node) {
  JobPlan plan;
  plan.job_id = "j";
  plan.node = node;
  plan.node_of_rank = {0, 0, 1};
  plan.local_index = {0, 1, 0};
  return plan;
}

// A rank with a heap, in which the n-th end it offers lies at n KiB.
struct RankForTest {
  explicit RankForTest(uint32_t rank) : session(std::make_shared<Session>()) {
    session->job_id = "j";
    session->rank = rank;
    session->request_limit = 16;
    session->inbox_map = Map(sizeof(shm::InboxLayout));
    auto heap = std::make_shared<Region>();
    heap->id = kHeap;
    heap->mapping = Map(kHeapBytes);
    base = heap->mapping.base();
    EXPECT_TRUE(session->AddRegion(heap).ok());
    auto lent = std::make_shared<Region>();
    lent->id = kLent;
    lent->mapping = Map(kHeapBytes);
    lent->lent = true;
    EXPECT_TRUE(session->AddRegion(lent).ok());
    auto device = std::make_shared<Region>();
    device->id = kDevice;
    device->by_stream = true;
    device->kind = RegionKind::kDevice;
    device->device_bytes = kDeviceBytes;
    EXPECT_TRUE(session->AddRegion(device).ok());
  }
  static shm::Mapping Map(uint64_t bytes) {
    auto fd = shm::CreateSegment("test", shm::RoundUpToPage(bytes));
    return std::move(*shm::MapSegment(fd->get(), 0));
  }
  shm::PairLayout& end(uint64_t place) const {
    return *reinterpret_cast<shm::PairLayout*>(base + place * 1024);
  }
  shm::PairState state(uint64_t place) const {
    return static_cast<shm::PairState>(end(place).pair.state);
  }
  ErrorCode error(uint64_t place) const { return static_cast<ErrorCode>(end(place).pair.error); }
  ErrorCode failure(uint64_t place) const { return shm::Counter(&end(place).done).error(); }

  std::shared_ptr<Session> session;
  std::byte* base = nullptr;
};

PairKey KeyOf(uint32_t source, uint32_t destination, uint64_t ordinal, uint32_t context = 0) {
  PairKey key;
  key.set_context(context);
  key.set_source(source);
  key.set_destination(destination);
  key.set_tag(7);
  key.set_ordinal(ordinal);
  return key;
}

attach::PairKey SaidKey(const PairKey& key) {
  return {key.context(), key.source(), key.destination(), key.tag(), key.ordinal()};
}

// Requests that a rank offers at once.
struct Offers {
  bool sends = false;
  std::vector<attach::PairOffer> offers;
};

Offers OfferOf(const PairKey& key, bool send, uint64_t place, uint64_t bytes = 64) {
  attach::PairOffer offer{};
  offer.key = SaidKey(key);
  offer.size_bytes = bytes;
  offer.end = {kHeap, 0, place * 1024};
  offer.window = {kHeap, 0, 32 * 1024};
  return {send, {offer}};
}

Status Offer(PairBook& book, const std::shared_ptr<Session>& session, const Offers& offered) {
  return book.Offer(session, offered.sends, offered.offers);
}

attach::WithdrawRequest WithdrawalOf(const PairKey& key, bool send, uint64_t rounds = 0) {
  attach::WithdrawRequest request{};
  request.key = SaidKey(key);
  request.send = send ? 1 : 0;
  request.rounds = rounds;
  return request;
}

class PairBookTest : public testing::Test {
 protected:
  struct Node {
    explicit Node(PairBookTest* test, uint32_t index)
        : plan(PlanOf(index)),
          book(plan, data_plane, last_channel, [test, index](uint32_t to, const PairNews& news) {
            test->under_way_.push_back({index, to, news});
          }) {}
    const JobPlan plan;
    FakeDataPlane data_plane;
    uint64_t last_channel = 0;
    PairBook book;
  };
  struct Letter {
    uint32_t from, to;
    PairNews news;
  };

  // Delivers the news under way, and what follows from it.
  void Deliver() {
    while (!under_way_.empty()) {
      const Letter letter = under_way_.front();
      under_way_.pop_front();
      const Status status = nodes_[letter.to]->book.OnNews(letter.from, letter.news);
      nodes_[letter.from]->book.OnTold(letter.to, letter.news, status);
    }
  }
  PairBook& book(uint32_t node) { return nodes_[node]->book; }
  // The calls of the node's data plane since the last time.
  std::vector<std::string> Calls(uint32_t node) {
    std::vector<std::string> calls = nodes_[node]->data_plane.calls();
    calls.erase(calls.begin(), calls.begin() + static_cast<ptrdiff_t>(seen_[node]));
    seen_[node] += calls.size();
    return calls;
  }

  size_t seen_[2] = {};
  uint64_t next_ordinal_ = 0;
  std::deque<Letter> under_way_;
  std::vector<std::unique_ptr<Node>> nodes_ = [this] {
    std::vector<std::unique_ptr<Node>> nodes;
    nodes.push_back(std::make_unique<Node>(this, 0));
    nodes.push_back(std::make_unique<Node>(this, 1));
    return nodes;
  }();
  RankForTest a_{0}, b_{1}, c_{2};  // c is on the other node
};

TEST_F(PairBookTest, InsideTheNodeBothLearnWhereTheOtherIs) {
  ASSERT_TRUE(Offer(book(0), a_.session, OfferOf(KeyOf(0, 1, 0), true, 1, 48)).ok());
  EXPECT_EQ(a_.state(1), shm::PairState::kOffered);
  ASSERT_TRUE(Offer(book(0), b_.session, OfferOf(KeyOf(0, 1, 0), false, 2, 64)).ok());
  EXPECT_EQ(a_.state(1), shm::PairState::kMatched);
  EXPECT_EQ(b_.state(2), shm::PairState::kMatched);
  EXPECT_EQ(a_.end(1).pair.end.address, 2048U);
  EXPECT_EQ(b_.end(2).pair.end.address, 1024U);
  EXPECT_EQ(a_.end(1).pair.window.address, 32U * 1024);
  EXPECT_EQ(a_.end(1).pair.size_bytes, 48U);
  EXPECT_EQ(b_.end(2).pair.size_bytes, 48U);
  EXPECT_THAT(Calls(0), IsEmpty());
  EXPECT_THAT(under_way_, IsEmpty());
}

// Two communicators over the same ranks, with the same tag, matched crosswise.
TEST_F(PairBookTest, ContextsAndOrdinalsDoNotMix) {
  ASSERT_TRUE(Offer(book(0), a_.session, OfferOf(KeyOf(0, 1, 0, 4), true, 1)).ok());
  ASSERT_TRUE(Offer(book(0), a_.session, OfferOf(KeyOf(0, 1, 0, 5), true, 2)).ok());
  ASSERT_TRUE(Offer(book(0), a_.session, OfferOf(KeyOf(0, 1, 1, 5), true, 3)).ok());
  ASSERT_TRUE(Offer(book(0), b_.session, OfferOf(KeyOf(0, 1, 1, 5), false, 11)).ok());
  ASSERT_TRUE(Offer(book(0), b_.session, OfferOf(KeyOf(0, 1, 0, 4), false, 12)).ok());
  EXPECT_EQ(a_.end(3).pair.end.address, 11U * 1024);
  EXPECT_EQ(a_.end(1).pair.end.address, 12U * 1024);
  EXPECT_EQ(a_.state(2), shm::PairState::kOffered);
}

TEST_F(PairBookTest, BetweenNodesTheReceiverIsMatchedLast) {
  ASSERT_TRUE(Offer(book(0), a_.session, OfferOf(KeyOf(0, 2, 0), true, 1)).ok());
  auto receive = OfferOf(KeyOf(0, 2, 0), false, 2);
  receive.offers[0].cell_count = 3;
  receive.offers[0].cells.region = kHeap;
  ASSERT_TRUE(Offer(book(1), c_.session, receive).ok());
  ASSERT_EQ(under_way_.size(), 1U);
  const Letter offered = under_way_.front();
  under_way_.pop_front();
  ASSERT_TRUE(book(1).OnNews(0, offered.news).ok());
  ASSERT_TRUE(book(1).OnNews(0, offered.news).ok()) << "said again";
  EXPECT_THAT(Calls(1), ElementsAre("AddPair j 2 1 receive peer_number 1 bytes 64 cells 3"));
  ASSERT_EQ(under_way_.size(), 1U);
  const Letter paired = under_way_.front();
  under_way_.pop_front();
  EXPECT_EQ(c_.state(2), shm::PairState::kOffered);
  ASSERT_TRUE(book(0).OnNews(1, paired.news).ok());
  EXPECT_THAT(Calls(0), ElementsAre("AddPair j 0 1 send peer_number 1 bytes 64 cells 3"));
  EXPECT_EQ(a_.state(1), shm::PairState::kMatched);
  EXPECT_EQ(a_.end(1).pair.end.region, 0U);
  EXPECT_EQ(c_.state(2), shm::PairState::kOffered) << "the answer is not there yet";
  book(1).OnTold(0, paired.news, {});
  EXPECT_EQ(c_.state(2), shm::PairState::kMatched);
}

// A sender sends and frees its request before its daemon's answer is here.
TEST_F(PairBookTest, WhatWasSentBeforeTheAnswerCameIsReceived) {
  for (const uint64_t rounds : {2, 0}) {
    const uint64_t place = rounds + 1;
    const PairKey key = KeyOf(0, 2, rounds);
    ASSERT_TRUE(Offer(book(0), a_.session, OfferOf(key, true, place)).ok());
    ASSERT_TRUE(Offer(book(1), c_.session, OfferOf(key, false, place)).ok());
    ASSERT_TRUE(book(1).OnNews(0, under_way_.front().news).ok());
    under_way_.pop_front();
    const Letter paired = under_way_.front();
    under_way_.pop_front();
    ASSERT_TRUE(book(0).OnNews(1, paired.news).ok());
    ASSERT_EQ(a_.state(place), shm::PairState::kMatched);
    (void)Calls(1);
    book(0).Withdraw(*a_.session, WithdrawalOf(key, true, rounds));
    ASSERT_TRUE(book(1).OnNews(0, under_way_.front().news).ok());
    under_way_.clear();
    // Where nothing was sent, nothing is lost.
    EXPECT_EQ(c_.state(place), rounds > 0 ? shm::PairState::kMatched : shm::PairState::kFailed);
    EXPECT_THAT(Calls(1), testing::Contains(testing::ContainsRegex(
                              "EndPair j 2 [0-9]+ " + std::to_string(rounds) + " 23")));
    book(1).OnTold(0, paired.news, {});
    EXPECT_EQ(c_.state(place), rounds > 0 ? shm::PairState::kMatched : shm::PairState::kFailed);
  }
}

// Between nodes the network card has to have it first. Packets bring short messages, so a receive
// has a cell for them.
TEST_F(PairBookTest, DeviceMemoryBetweenNodesIsForLongMessages) {
  const auto offer = [](uint32_t destination, bool send, uint64_t ordinal, uint64_t bytes,
                        uint32_t cells) {
    Offers offered = OfferOf(KeyOf(0, destination, ordinal), send, 1 + ordinal, bytes);
    offered.offers[0].window.region = kDevice;
    offered.offers[0].cell_count = cells;
    offered.offers[0].cells = {kHeap, 0, 0};
    return offered;
  };
  const auto windows_of = [&](const Offers& offered) {
    return book(0).NicWindows(*a_.session, offered.sends, offered.offers);
  };
  const Offers sent = offer(2, true, 0, 100'000, 0);
  const auto windows = windows_of(sent);
  ASSERT_EQ(windows.size(), 1U);
  EXPECT_EQ(windows[0].region, kDevice);
  EXPECT_EQ(windows[0].offset, 32U * 1024);
  EXPECT_EQ(windows[0].size_bytes, 100'000U);
  EXPECT_THAT(windows_of(offer(1, true, 1, 100'000, 0)), IsEmpty());
  EXPECT_THAT(windows_of(OfferOf(KeyOf(0, 2, 2), true, 3)), IsEmpty());
  EXPECT_TRUE(Offer(book(0), a_.session, sent).ok());
  EXPECT_EQ(Offer(book(0), a_.session, offer(2, true, 3, 8192, 0)).code(),
            ErrorCode::kInvalidBuffer);
  for (const uint32_t cells : {0U, 2U}) {
    EXPECT_EQ(Offer(book(1), c_.session, offer(2, false, 0, 200'000, cells)).code(),
              ErrorCode::kInvalidBuffer);
  }
  EXPECT_TRUE(Offer(book(1), c_.session, offer(2, false, 0, 200'000, 1)).ok());
  Deliver();
  EXPECT_EQ(a_.state(1), shm::PairState::kMatched);
  EXPECT_EQ(c_.state(1), shm::PairState::kMatched);
}

TEST_F(PairBookTest, WhatDoesNotFitFailsOnBothSides) {
  ASSERT_TRUE(Offer(book(0), a_.session, OfferOf(KeyOf(0, 1, 0), true, 1, 65)).ok());
  ASSERT_TRUE(Offer(book(0), b_.session, OfferOf(KeyOf(0, 1, 0), false, 2, 64)).ok());
  EXPECT_EQ(a_.error(1), ErrorCode::kTruncated);
  EXPECT_EQ(b_.error(2), ErrorCode::kTruncated);
  ASSERT_TRUE(Offer(book(0), a_.session, OfferOf(KeyOf(0, 2, 0), true, 3, 65)).ok());
  ASSERT_TRUE(Offer(book(1), c_.session, OfferOf(KeyOf(0, 2, 0), false, 4, 64)).ok());
  Deliver();
  EXPECT_EQ(a_.error(3), ErrorCode::kTruncated);
  EXPECT_EQ(c_.error(4), ErrorCode::kTruncated);
}

TEST_F(PairBookTest, WhoFreesEndsTheOther) {
  // The ends are not matched yet, inside the node and between nodes, before and after the other
  // side came.
  ASSERT_TRUE(Offer(book(0), a_.session, OfferOf(KeyOf(0, 1, 0), true, 1)).ok());
  book(0).Withdraw(*a_.session, WithdrawalOf(KeyOf(0, 1, 0), true));
  ASSERT_TRUE(Offer(book(0), b_.session, OfferOf(KeyOf(0, 1, 0), false, 2)).ok());
  EXPECT_EQ(b_.error(2), ErrorCode::kInvalidRequest);
  EXPECT_EQ(a_.state(1), shm::PairState::kOffered) << "not touched any more";
  ASSERT_TRUE(Offer(book(0), a_.session, OfferOf(KeyOf(0, 2, 0), true, 3)).ok());
  ASSERT_TRUE(Offer(book(1), c_.session, OfferOf(KeyOf(0, 2, 0), false, 4)).ok());
  Deliver();
  ASSERT_EQ(c_.state(4), shm::PairState::kMatched);
  (void)Calls(0);
  (void)Calls(1);
  book(0).Withdraw(*a_.session, WithdrawalOf(KeyOf(0, 2, 0), true, 5));
  Deliver();
  EXPECT_THAT(Calls(0), ElementsAre("RemovePair j 0 1"));
  EXPECT_THAT(Calls(1), ElementsAre("EndPair j 2 1 5 23"));
  book(1).Withdraw(*c_.session, WithdrawalOf(KeyOf(0, 2, 0), false, 5));
  book(0).Withdraw(*b_.session, WithdrawalOf(KeyOf(0, 1, 0), false));
  Deliver();
  EXPECT_EQ(book(0).size(), 0U);
  EXPECT_EQ(book(1).size(), 0U);
}

TEST_F(PairBookTest, InsideTheNodeWhoFreesFailsTheCounter) {
  ASSERT_TRUE(Offer(book(0), a_.session, OfferOf(KeyOf(0, 1, 0), true, 1)).ok());
  ASSERT_TRUE(Offer(book(0), b_.session, OfferOf(KeyOf(0, 1, 0), false, 2)).ok());
  shm::Counter(&b_.end(2).done).Add(3);
  book(0).Withdraw(*a_.session, WithdrawalOf(KeyOf(0, 1, 0), true));
  EXPECT_EQ(b_.failure(2), ErrorCode::kInvalidRequest);
  EXPECT_EQ(b_.end(2).done.value, shm::kCounterFailure + 3) << "what is complete stays so";
  EXPECT_EQ(a_.failure(1), ErrorCode::kOk);
}

// A rank that frees its request before it has looked at the match knows no gate that it could
// close, and its block may soon be another pair's.
TEST_F(PairBookTest, InsideTheNodeWhoFreesShutsTheOthersGate) {
  ASSERT_TRUE(Offer(book(0), b_.session, OfferOf(KeyOf(0, 1, 0), false, 2)).ok());
  ASSERT_TRUE(Offer(book(0), a_.session, OfferOf(KeyOf(0, 1, 0), true, 1)).ok());
  const shm::PairEnds ends{&b_.end(2), &a_.end(1), shm::LifeOf(a_.end(1))};
  EXPECT_FALSE(shm::BeginMove(ends, false, true)) << "it is the first to start";
  EXPECT_EQ(a_.end(1).meet.value, 1U);
  book(0).Withdraw(*a_.session, WithdrawalOf(KeyOf(0, 1, 0), true));
  EXPECT_FALSE(shm::BeginMove(ends, false, true));
  EXPECT_EQ(a_.end(1).meet.value, 1U) << "the block of the rank that left is not touched";
}

TEST_F(PairBookTest, DeathsEndPairsAndOffers) {
  ASSERT_TRUE(Offer(book(0), a_.session, OfferOf(KeyOf(0, 1, 0), true, 1)).ok());
  ASSERT_TRUE(Offer(book(0), b_.session, OfferOf(KeyOf(0, 1, 0), false, 2)).ok());
  ASSERT_TRUE(Offer(book(0), a_.session, OfferOf(KeyOf(0, 1, 1), true, 3)).ok());
  book(0).OnRankEnded(1, ErrorCode::kPeerDied);
  EXPECT_EQ(a_.failure(1), ErrorCode::kPeerDied);
  EXPECT_EQ(a_.error(3), ErrorCode::kPeerDied);
  ASSERT_TRUE(Offer(book(0), a_.session, OfferOf(KeyOf(0, 1, 2), true, 4)).ok());
  EXPECT_EQ(a_.error(4), ErrorCode::kPeerDied) << "offered too late";
}

// The receiver's daemon has paired, and its rank dies: the answer comes after the news of the
// death.
TEST_F(PairBookTest, AnAnswerForADeadRankMatchesNothing) {
  ASSERT_TRUE(Offer(book(0), a_.session, OfferOf(KeyOf(0, 2, 0), true, 1)).ok());
  ASSERT_TRUE(Offer(book(1), c_.session, OfferOf(KeyOf(0, 2, 0), false, 2)).ok());
  const Letter offered = under_way_.front();
  under_way_.pop_front();
  ASSERT_TRUE(book(1).OnNews(0, offered.news).ok());
  ASSERT_EQ(under_way_.size(), 1U);
  book(0).OnRankEnded(2, ErrorCode::kPeerDied);
  book(1).OnRankEnded(2, ErrorCode::kPeerDied);
  Deliver();
  EXPECT_THAT(Calls(0), IsEmpty());
  EXPECT_EQ(a_.state(1), shm::PairState::kFailed);
  EXPECT_EQ(a_.error(1), ErrorCode::kPeerDied);
  book(0).Withdraw(*a_.session, WithdrawalOf(KeyOf(0, 2, 0), true));
  EXPECT_EQ(book(0).size(), 0U);
}

TEST_F(PairBookTest, AnAbortEndsAll) {
  ASSERT_TRUE(Offer(book(0), a_.session, OfferOf(KeyOf(0, 1, 0), true, 1)).ok());
  ASSERT_TRUE(Offer(book(0), b_.session, OfferOf(KeyOf(0, 1, 0), false, 2)).ok());
  book(0).FailAll(ErrorCode::kAborted);
  EXPECT_EQ(a_.failure(1), ErrorCode::kAborted);
  EXPECT_EQ(b_.failure(2), ErrorCode::kAborted);
}

// A refused request takes nothing.
TEST_F(PairBookTest, RefusesWhatIsNotTheRanks) {
  const auto refused = [&](const Offers& request, ErrorCode code, const char* text) {
    const Status status = Offer(book(0), a_.session, request);
    EXPECT_EQ(status.code(), code) << status.message();
    EXPECT_THAT(status.message(), HasSubstr(text));
  };
  refused(OfferOf(KeyOf(1, 0, 0), true, 1), ErrorCode::kInvalidRank, "no pair of rank 0");
  refused(OfferOf(KeyOf(0, 3, 0), true, 1), ErrorCode::kInvalidRank, "no pair");
  refused(OfferOf(KeyOf(0, 1, 0), true, 64), ErrorCode::kInvalidBuffer, "are not in region");
  refused(OfferOf(KeyOf(0, 1, 0), true, 1, kHeapBytes), ErrorCode::kInvalidBuffer, "not in region");
  refused(OfferOf(KeyOf(0, 1, 0), true, 1, UINT64_MAX), ErrorCode::kInvalidBuffer, "not in region");
  auto request = OfferOf(KeyOf(0, 1, 0), true, 1);
  request.offers[0].end.offset = 8;
  refused(request, ErrorCode::kInvalidBuffer, "aligned to 64");
  request = OfferOf(KeyOf(0, 1, 0), true, 1);
  request.offers[0].window.region = 9;
  refused(request, ErrorCode::kInvalidBuffer, "region 9");
  request.offers[0].window.region = kLent;
  refused(request, ErrorCode::kInvalidBuffer, "region 2");
  request = OfferOf(KeyOf(0, 1, 0), true, 1);
  request.offers[0].end.region = kLent;
  refused(request, ErrorCode::kInvalidBuffer, "region 2");
  request = OfferOf(KeyOf(0, 1, 0), true, 1);
  request.offers[0].mode = 3;
  refused(request, ErrorCode::kInvalidArgument, "send mode 3");
  request = OfferOf(KeyOf(0, 1, 0), true, 1);
  request.offers.push_back(request.offers[0]);
  refused(request, ErrorCode::kAlreadyExists, "twice");
  request = OfferOf(KeyOf(1, 0, 0), false, 1);
  request.offers[0].cell_count = UINT32_MAX;
  refused(request, ErrorCode::kInvalidBuffer, "not in region");
  Offers many;
  many.sends = true;
  for (uint64_t i = 0; i < 17; ++i) {
    many.offers.push_back(OfferOf(KeyOf(0, 1, i), true, 1).offers[0]);
  }
  refused(many, ErrorCode::kLimitExceeded, "more than it has requests");
  EXPECT_EQ(book(0).size(), 0U);
  ASSERT_TRUE(Offer(book(0), a_.session, OfferOf(KeyOf(0, 1, 0), true, 1)).ok());
  refused(OfferOf(KeyOf(0, 1, 0), true, 2), ErrorCode::kAlreadyExists, "has had this side");
}

// Whatever a rank offers and takes back while the other node cannot be told, the waiting news is
// bounded by the rank's requests; the rank may go on once the news is told, or the other rank is
// gone.
TEST_F(PairBookTest, WhatTheOtherNodeHasNotHeardOfIsBounded) {
  const auto offer_and_withdraw = [&](uint64_t ordinal) {
    const PairKey key = KeyOf(0, 2, ordinal);
    const Status status = Offer(book(0), a_.session, OfferOf(key, true, 1));
    book(0).Withdraw(*a_.session, WithdrawalOf(key, true));
    return status;
  };
  const auto go_on_for = [&](uint64_t rounds) {
    Status status;
    for (uint64_t i = 0; i < rounds && status.ok(); ++i) {
      status = offer_and_withdraw(next_ordinal_++);
    }
    return status;
  };
  const Status refused = go_on_for(1000);
  EXPECT_EQ(refused.code(), ErrorCode::kLimitExceeded);
  EXPECT_THAT(refused.message(), HasSubstr("rank 0 has taken back 16 offers"));
  EXPECT_EQ(under_way_.size(), 2U * a_.session->request_limit);
  EXPECT_EQ(book(0).size(), 0U);
  Deliver();
  EXPECT_TRUE(go_on_for(16).ok());
  EXPECT_FALSE(go_on_for(1).ok());
  under_way_.clear();  // that node is given up
  book(0).OnRankEnded(2, ErrorCode::kNodeUnreachable);
  EXPECT_TRUE(go_on_for(1000).ok()) << "nobody is to hear of it";
  EXPECT_TRUE(under_way_.empty());
}

// The bound holds inside the node, too, where the other rank has to come before it can be told.
TEST_F(PairBookTest, WhatAnotherRankHasNotComeForIsBounded) {
  const auto key = [](uint64_t ordinal) { return KeyOf(0, 1, ordinal); };
  Status status;
  uint64_t rounds = 0;
  for (; rounds < 1000 && status.ok(); ++rounds) {
    status = Offer(book(0), a_.session, OfferOf(key(rounds), true, 1));
    book(0).Withdraw(*a_.session, WithdrawalOf(key(rounds), true));
  }
  EXPECT_EQ(status.code(), ErrorCode::kLimitExceeded);
  EXPECT_EQ(book(0).size(), a_.session->request_limit);
  for (uint64_t i = 0; i < 16; ++i) {
    ASSERT_TRUE(Offer(book(0), b_.session, OfferOf(key(i), false, 2)).ok());
    EXPECT_EQ(b_.error(2), ErrorCode::kInvalidRequest);
    book(0).Withdraw(*b_.session, WithdrawalOf(key(i), false));
  }
  EXPECT_EQ(book(0).size(), 0U);
  EXPECT_TRUE(Offer(book(0), a_.session, OfferOf(key(rounds), true, 1)).ok());
}

TEST_F(PairBookTest, WhatARankElsewhereOffersAndNobodyWantsIsBounded) {
  PairNews news;
  Status status;
  uint64_t offers = 0;
  for (; offers < 1'000'000 && status.ok(); ++offers) {
    news.set_kind(PairNews::SEND_OFFERED);
    *news.mutable_key() = KeyOf(0, 2, offers);
    status = book(1).OnNews(0, news);
    news.set_kind(PairNews::ENDED);  // taken back: the other rank is told when it comes
    (void)book(1).OnNews(0, news);
  }
  EXPECT_EQ(status.code(), ErrorCode::kLimitExceeded);
  EXPECT_THAT(status.message(), HasSubstr("requests that no rank here has wanted"));
  EXPECT_EQ(book(1).size(), offers - 1);
  ASSERT_TRUE(Offer(book(1), c_.session, OfferOf(KeyOf(0, 2, 0), false, 2)).ok());
  EXPECT_EQ(c_.error(2), ErrorCode::kInvalidRequest);
  book(1).Withdraw(*c_.session, WithdrawalOf(KeyOf(0, 2, 0), false));
  news.set_kind(PairNews::SEND_OFFERED);
  EXPECT_TRUE(book(1).OnNews(0, news).ok()) << "there is room for another one";
}

TEST_F(PairBookTest, RefusesNewsOfOthersPairs) {
  PairNews news;
  news.set_kind(PairNews::SEND_OFFERED);
  *news.mutable_key() = KeyOf(0, 1, 0);
  EXPECT_EQ(book(0).OnNews(1, news).code(), ErrorCode::kInvalidArgument);
  *news.mutable_key() = KeyOf(99, 1, 0);
  EXPECT_EQ(book(0).OnNews(1, news).code(), ErrorCode::kInvalidArgument);
  news.set_kind(PairNews::PAIRED);
  *news.mutable_key() = KeyOf(0, 2, 0);
  EXPECT_TRUE(book(0).OnNews(1, news).ok()) << "of a send that was taken back meanwhile";
  EXPECT_EQ(book(0).size(), 0U);
  EXPECT_THAT(Calls(0), IsEmpty());
}

}  // namespace
}  // namespace ferry::daemon
