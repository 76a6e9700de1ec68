// Chains of many ranks: what is told of them, and the work that this takes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <vector>

#include "daemon/admin/why_graph.h"

namespace ferry::daemon {
namespace {

using control::RankWait;
using testing::HasSubstr;
using testing::StartsWith;

// Ranks that stay as they are, all of them here.
class LocalRanks final : public RankLooker {
 public:
  explicit LocalRanks(std::vector<RankWait> looks) : looks_(std::move(looks)) {}
  Answer Look(const std::string&, uint32_t rank, bool) override {
    Answer answer;
    answer.ranks = {looks_[rank]};
    return answer;
  }
  std::vector<RankWait> LookAgain(const std::string&,
                                  std::span<const WaitPairName> pairs) override {
    std::vector<RankWait> looks;
    for (const WaitPairName& pair : pairs) {
      looks.push_back(looks_[pair.rank]);
    }
    return looks;
  }
  void Pause(std::chrono::milliseconds) override {}

  // Explains these ranks, and notes the work.
  std::vector<RankWait> Explain(const std::vector<uint32_t>& ranks) {
    control::WhyReply reply;
    for (const uint32_t rank : ranks) {
      *reply.add_ranks() = looks_[rank];
    }
    WaitGraph graph(this);
    graph.Explain(reply.mutable_ranks());
    followed = graph.followed();
    return {reply.ranks().begin(), reply.ranks().end()};
  }
  std::vector<RankWait> ExplainAll() {
    std::vector<uint32_t> ranks;
    for (const RankWait& look : looks_) {
      ranks.push_back(look.rank());
    }
    return Explain(ranks);
  }

  uint64_t followed = 0;

 private:
  std::vector<RankWait> looks_;
};

RankWait Computes(uint32_t rank) {
  RankWait look;
  look.set_job_id("job");
  look.set_rank(rank);
  look.set_state("computes");
  look.set_detail("computes outside Ferry");
  return look;
}

// Sleeps in a receive from each of `peers`.
RankWait Waits(uint32_t rank, const std::vector<uint32_t>& peers) {
  RankWait look = Computes(rank);
  look.set_state("waits");
  look.set_detail("waits inside Ferry, asleep");
  look.set_asleep(true);
  look.set_mark(1000 + rank);
  look.set_unfinished(static_cast<uint32_t>(peers.size()));
  for (const uint32_t peer : peers) {
    control::WaitEdge* const edge = look.add_edges();
    edge->set_peer(peer);
    edge->set_receives(true);
  }
  return look;
}

constexpr uint32_t kMany = 1024;

// Each rank waits for the next one but `culprit`.
std::vector<RankWait> Ring(uint32_t culprit) {
  std::vector<RankWait> looks;
  for (uint32_t rank = 0; rank < kMany; ++rank) {
    looks.push_back(rank == culprit ? Computes(rank) : Waits(rank, {(rank + 1) % kMany}));
  }
  return looks;
}

TEST(WhyChainsTest, AThousandRanksInOneChainAreFollowedOnce) {
  LocalRanks ranks(Ring(500));
  const std::vector<RankWait> told = ranks.ExplainAll();
  EXPECT_LE(ranks.followed, 4 * kMany) << "not the whole chain for each of its ranks";
  for (uint32_t rank = 0; rank < kMany; ++rank) {
    const auto& chain = told[rank].chain();
    ASSERT_EQ(static_cast<uint32_t>(chain.size()), 1 + (500 + kMany - rank) % kMany);
    for (int i = 0; i < chain.size(); ++i) {
      ASSERT_EQ(chain[i], (rank + static_cast<uint32_t>(i)) % kMany);
    }
    EXPECT_EQ(told[rank].end(), "computes outside Ferry");
  }
}

TEST(WhyChainsTest, TheOrderOfTheRanksIsNoMatter) {
  LocalRanks ranks(Ring(0));
  std::vector<uint32_t> order;
  for (uint32_t rank = kMany; rank-- > 0;) {
    order.push_back(rank);
  }
  ranks.Explain(order);
  EXPECT_LE(ranks.followed, 4 * kMany);
}

TEST(WhyChainsTest, TheSentenceOfALongChainNamesItsEnds) {
  LocalRanks ranks(Ring(500));
  const std::vector<RankWait> told = ranks.ExplainAll();
  EXPECT_EQ(told[499].verdict(), "rank 499 waits for rank 500, which computes outside Ferry");
  EXPECT_THAT(told[485].verdict(), StartsWith("rank 485 waits for rank 486, which waits for rank "
                                              "487, which waits for rank 488, which waits"));
  EXPECT_THAT(told[485].verdict(), testing::Not(HasSubstr("further"))) << "16 ranks have names";
  EXPECT_THAT(told[484].verdict(),
              HasSubstr("rank 491, and so on through 1 further rank to rank 493, which"));
  EXPECT_EQ(told[501].verdict(),
            "rank 501 waits for rank 502, which waits for rank 503, which waits for rank 504, "
            "which waits for rank 505, which waits for rank 506, which waits for rank 507, which "
            "waits for rank 508, and so on through 1008 further ranks to rank 493, which waits "
            "for rank 494, which waits for rank 495, which waits for rank 496, which waits for "
            "rank 497, which waits for rank 498, which waits for rank 499, which waits for rank "
            "500, which computes outside Ferry");
  size_t bytes = 0;
  for (const RankWait& each : told) {
    bytes += each.verdict().size();
  }
  EXPECT_LT(bytes, kMany * 512) << "14 MiB if each named all";
}

TEST(WhyChainsTest, ACircleOfAThousandRanksIsADeadlock) {
  LocalRanks ranks(Ring(kMany));  // no culprit
  const std::vector<RankWait> told = ranks.ExplainAll();
  EXPECT_LE(ranks.followed, 4 * kMany);
  for (uint32_t rank = 0; rank < kMany; ++rank) {
    ASSERT_TRUE(told[rank].deadlock()) << told[rank].verdict();
    ASSERT_EQ(static_cast<uint32_t>(told[rank].chain_size()), kMany + 1);
    EXPECT_EQ(told[rank].chain(0), rank);
    EXPECT_EQ(told[rank].chain(1), (rank + 1) % kMany);
    EXPECT_EQ(told[rank].chain(kMany), rank);
    EXPECT_LT(told[rank].verdict().size(), 1024U);
  }
}

// All ranks of `ranks` looks, of which each waits for some others, meets others, or computes.
std::vector<RankWait> RandomRanks(std::mt19937* random, uint32_t ranks) {
  std::vector<RankWait> looks;
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    const uint32_t kind = (*random)() % 8;
    std::vector<uint32_t> peers;
    for (uint32_t i = kind < 5 ? 1 : kind % 4; i > 0; --i) {
      const uint32_t peer = (*random)() % ranks;
      if (peer != rank && std::find(peers.begin(), peers.end(), peer) == peers.end()) {
        peers.push_back(peer);
      }
    }
    looks.push_back(kind == 7 ? Computes(rank) : Waits(rank, peers));
    if (kind == 6) {
      control::RankCall* const call = looks.back().add_calls();
      call->set_name("MPI_Barrier");
      call->set_phrase("MPI_Barrier");
      call->set_meets(true);
      call->set_number((*random)() % 2);
    }
  }
  return looks;
}

// A rank is told of in the same words as if it alone were asked about.
TEST(WhyChainsTest, WhatIsSharedIsWhatEachWouldBeTold) {
  std::mt19937 random(20261201);
  size_t circles = 0;
  size_t long_chains = 0;
  for (int round = 0; round < 2000; ++round) {
    LocalRanks ranks(RandomRanks(&random, 2 + random() % 12));
    for (const RankWait& shared : ranks.ExplainAll()) {
      const RankWait alone = ranks.Explain({shared.rank()})[0];
      ASSERT_EQ(shared.SerializeAsString(), alone.SerializeAsString())
          << round << ": " << shared.verdict() << "\n"
          << alone.verdict();
      circles += shared.deadlock() ? 1 : 0;
      long_chains += shared.chain_size() > 3 ? 1 : 0;
    }
  }
  EXPECT_GT(circles, 100U);
  EXPECT_GT(long_chains, 1000U);
}

}  // namespace
}  // namespace ferry::daemon
