// However many wishes for direct links ranks have, the control thread sees few of them.
#include "daemon/links/link_wishes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <string>
#include <vector>

#include "common/clock.h"
#include "tests/support/patience.h"

namespace ferry::daemon {
namespace {

constexpr uint64_t kPauseNs = 1'000'000'000 / LinkWishes::kBatchesPerSecond;

class LinkWishesTest : public testing::Test {
 protected:
  struct Handled {
    std::string job_id;
    uint32_t rank, peer;
    uint64_t at_ns;
  };

  ~LinkWishesTest() override { loop_.Stop(); }
  // Those that the control thread has seen, once there are so many.
  std::vector<Handled> WaitFor(size_t count) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(
        changed_.wait_for(lock, tests::kPatience, [&] { return handled_.size() >= count; }));
    return handled_;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Handled> handled_;
  ControlLoop loop_;
  LinkWishes wishes_{loop_, [this](const std::string& job_id, uint32_t rank, uint32_t peer) {
                       const std::lock_guard lock(mutex_);
                       handled_.push_back({job_id, rank, peer, MonotonicNs()});
                       changed_.notify_all();
                     }};
};

TEST_F(LinkWishesTest, OneOfEachPairIsUnderWay) {
  for (int i = 0; i < 1000; ++i) {
    wishes_.Put("j", 0, 2);
    wishes_.Put("j", 1, 2);
    wishes_.Put("k", 0, 2);
  }
  loop_.Start();
  wishes_.Put("j", 0, 3);  // these, too, are there before the second batch is
  const std::vector<Handled> handled = WaitFor(4);
  EXPECT_EQ(handled.size(), 4U);
  EXPECT_EQ(handled[0].job_id + std::to_string(handled[0].rank), "j0");
  EXPECT_EQ(handled[0].peer, 2U);
}

TEST_F(LinkWishesTest, ARankThatWishesInALoopIsHandledNowAndThen) {
  loop_.Start();
  const uint64_t begun_ns = MonotonicNs();
  size_t count = 0;
  while (count < 5) {
    wishes_.Put("j", 0, 2);
    const std::lock_guard lock(mutex_);
    count = handled_.size();
  }
  const uint64_t batches = (MonotonicNs() - begun_ns) / kPauseNs + 1;
  const std::vector<Handled> handled = WaitFor(5);
  EXPECT_LE(count, batches);
  for (size_t i = 1; i < count; ++i) {
    EXPECT_GE(handled[i].at_ns - handled[i - 1].at_ns, kPauseNs / 2);
  }
}

// It wishes for many peers, and another rank for one.
TEST_F(LinkWishesTest, ManyWishesOfOneRankHoldUpNoOther) {
  constexpr uint32_t kMany = 3 * LinkWishes::kMostOfRank;
  for (uint32_t peer = 0; peer < kMany; ++peer) {
    wishes_.Put("j", 0, peer);
  }
  wishes_.Put("j", 1, 0);
  loop_.Start();
  const std::vector<Handled> handled = WaitFor(kMany + 1);
  EXPECT_EQ(handled.size(), kMany + 1);
  const auto other =
      std::ranges::find_if(handled, [](const Handled& wish) { return wish.rank == 1; });
  EXPECT_LE(other - handled.begin(), static_cast<ptrdiff_t>(LinkWishes::kMostOfRank));
}

}  // namespace
}  // namespace ferry::daemon
