#include "tools/display/wait_causes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace ferry::tools {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class WaitCausesTest : public testing::Test {
 protected:
  // As the daemon of its node has told it: the chain ends where that daemon knows no more.
  void Waits(const std::vector<uint32_t>& chain, uint64_t ms = 5000, bool deadlock = false) {
    control::RankWait* const rank = Add(chain[0], "waits");
    rank->mutable_chain()->Add(chain.begin(), chain.end());
    rank->set_waits_ms(ms);
    rank->set_deadlock(deadlock);
    rank->set_verdict("rank " + std::to_string(chain[0]) + " says");
  }
  control::RankWait* Add(uint32_t number, const std::string& state) {
    control::RankWait* const rank = reply_.add_ranks();
    rank->set_job_id("heat");
    rank->set_rank(number);
    rank->set_state(state);
    return rank;
  }
  std::vector<WaitCause> Causes() const {
    std::vector<const control::RankWait*> waits;
    for (const control::RankWait& rank : reply_.ranks()) {
      if (rank.state() == "waits") {
        waits.push_back(&rank);
      }
    }
    return CausesOf(waits);
  }

  control::WhyReply reply_;
};

TEST_F(WaitCausesTest, RanksOfAChainHaveOneCauseAndTheNearestTellsIt) {
  Waits({0, 1, 2, 3});
  Waits({1, 2, 3});
  Waits({2, 3});
  Waits({9, 8});
  const std::vector<WaitCause> causes = Causes();
  ASSERT_EQ(causes.size(), 2U);
  EXPECT_EQ(causes[0].rank, 3U);
  EXPECT_THAT(causes[0].waiting, ElementsAre(0, 1, 2));
  EXPECT_EQ(causes[0].nearest->rank(), 2U);
  EXPECT_EQ(causes[1].rank, 8U);
}

// Ranks are dealt out to nodes in turn, and each daemon knows the next rank only.
TEST_F(WaitCausesTest, OtherDaemonsSayHowAChainGoesOn) {
  for (uint32_t rank = 0; rank < 1023; ++rank) {
    Waits({rank, rank + 1});
  }
  const std::vector<WaitCause> causes = Causes();
  ASSERT_EQ(causes.size(), 1U);
  EXPECT_EQ(causes[0].rank, 1023U);
  EXPECT_EQ(causes[0].waiting.size(), 1023U);
  EXPECT_EQ(causes[0].nearest->rank(), 1022U);
}

TEST_F(WaitCausesTest, ACircleIsNamedByItsSmallestRank) {
  Waits({5, 6, 4, 5}, 5000, true);
  Waits({6, 4, 5, 6}, 5000, true);
  Waits({4, 5, 6, 4}, 5000, true);
  Waits({1, 6, 4, 5, 6}, 5000, true);
  for (uint32_t rank = 10; rank < 20; ++rank) {
    Waits({rank, 9});
  }
  const std::vector<WaitCause> causes = Causes();
  ASSERT_EQ(causes.size(), 2U);
  EXPECT_TRUE(causes[0].is_deadlock) << "before what more ranks wait for";
  EXPECT_EQ(causes[0].rank, 4U);
  EXPECT_THAT(causes[0].waiting, ElementsAre(1, 4, 5, 6));
  EXPECT_EQ(causes[0].nearest->rank(), 4U);
  EXPECT_FALSE(causes[1].is_deadlock);
}

TEST_F(WaitCausesTest, ACircleThatNoDaemonIsCertainOfHasOneCauseToo) {
  Waits({7, 2});
  Waits({2, 5});
  Waits({5, 2});
  const std::vector<WaitCause> causes = Causes();
  ASSERT_EQ(causes.size(), 1U);
  EXPECT_EQ(causes[0].rank, 2U);
  EXPECT_THAT(causes[0].waiting, ElementsAre(2, 5, 7));
}

TEST_F(WaitCausesTest, ARankThatWaitsForNoRankIsItsOwnCause) {
  Waits({3});
  Waits({1, 3});
  const std::vector<WaitCause> causes = Causes();
  ASSERT_EQ(causes.size(), 1U);
  EXPECT_EQ(causes[0].rank, 3U);
  EXPECT_EQ(causes[0].nearest->rank(), 3U);
}

// Two looks a moment apart put them in the same order.
TEST_F(WaitCausesTest, WaitsOfAboutTheSameAgeStayInOrder) {
  Waits({1, 0}, 40'100);
  Waits({3, 2}, 40'101);
  Waits({5, 4}, 90'000);
  const std::vector<WaitCause> causes = Causes();
  ASSERT_EQ(causes.size(), 3U);
  EXPECT_EQ(causes[0].rank, 4U);
  EXPECT_EQ(causes[1].rank, 0U);
  EXPECT_EQ(causes[2].rank, 2U);
}

TEST_F(WaitCausesTest, AThousandRanksAreAFewLines) {
  for (uint32_t rank = 0; rank < 1024; ++rank) {
    if (rank == 512) {
      Add(rank, "computes");
    } else {
      Waits({rank, (rank + 1) % 1024, 512}, 34'000);
    }
  }
  const std::string text = WaitGroups(reply_, {.width = 120});
  EXPECT_LT(std::count(text.begin(), text.end(), '\n'), 10) << text;
  EXPECT_THAT(text, HasSubstr("heat  waits      1023     34 s  0-511, 513-1023\n"));
  EXPECT_THAT(text, HasSubstr("heat  computes      1        -  512\n"));
  EXPECT_THAT(text, HasSubstr("1023 ranks wait (0-511, 513-1023) for rank 512, directly or through "
                              "others:\n  rank 0 says, for 34 s\n"));
  EXPECT_THAT(text, testing::EndsWith("\n(--all lists each rank)\n"));
}

TEST_F(WaitCausesTest, OfManyCausesEightAreTold) {
  for (uint32_t rank = 0; rank < 1000; rank += 2) {
    Waits({rank, rank + 1});
  }
  const std::string text = WaitGroups(reply_);
  EXPECT_THAT(text, HasSubstr("1 rank waits (14) for rank 15:\n"));
  EXPECT_THAT(text, Not(HasSubstr("for rank 17:")));
  EXPECT_THAT(text,
              HasSubstr("\nand 492 more ranks wait for others: 16, 18, 20, 22, 24, 26, 28, 30 "
                        "and 484 more\n"));
}

}  // namespace
}  // namespace ferry::tools
