// The requests that share a doorbell, and what their blocks say about it.
#include "client/triggered/shared_starts.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "shm/atomic.h"
#include "shm/counter.h"

namespace ferry::client {
namespace {

class SharedStartsTest : public testing::Test {
 protected:
  // A matched ready send to another node.
  Pair& Make() {
    blocks_.push_back(std::make_unique<shm::PairLayout>());
    pairs_.push_back(std::make_unique<Pair>());
    Pair& pair = *pairs_.back();
    pair.is_send = true;
    pair.mode = shm::SendMode::kReady;
    pair.end = blocks_.back().get();
    return pair;
  }
  // Does what Queues::EnqueueStart does, except on the stream.
  SharedStart* Start(const std::vector<Pair*>& pairs) {
    SharedStart* const shared = starts_.Join(pairs);
    for (Pair* pair : pairs) {
      ++pair->starts;
      EXPECT_EQ(pair->shares, shared != nullptr);
    }
    if (shared != nullptr) {
      pending_.push_back({shared, SharedStarts::Ring(*shared)});
    }
    return shared;
  }
  // The stream does what was enqueued, and all messages arrive.
  void Run(const std::vector<Pair*>& pairs) {
    for (const auto& [shared, value] : pending_) {
      shm::StoreRelease(shared->word->value, value);
    }
    pending_.clear();
    for (Pair* pair : pairs) {
      shm::StoreRelease(pair->end->done.value, pair->starts);
    }
  }
  // The last start that the doorbell of a block counts.
  static uint64_t ByShared(const Pair& pair) {
    return pair.shared->word->value + pair.end->shared_base;
  }

  alignas(64) std::byte heap_[8192] = {};
  size_t allocated_ = 0;
  SharedStarts starts_{{[this](uint64_t bytes) -> StatusOr<void*> {
                          if (allocated_ + bytes > sizeof(heap_)) {
                            return Status(ErrorCode::kOutOfMemory, "the heap is full");
                          }
                          void* const place = heap_ + allocated_;
                          allocated_ += bytes;
                          return place;
                        },
                        [this](const void* word) {
                          return static_cast<uint64_t>(static_cast<const std::byte*>(word) - heap_);
                        }}};
  struct Pending {
    SharedStart* shared;
    uint64_t value;
  };
  std::vector<Pending> pending_;
  std::vector<std::unique_ptr<shm::PairLayout>> blocks_;
  std::vector<std::unique_ptr<Pair>> pairs_;
};

TEST_F(SharedStartsTest, OneDoorbellForAllOfACall) {
  const std::vector<Pair*> all = {&Make(), &Make(), &Make()};
  all[1]->starts = 7;  // the rank has started it before
  all[1]->end->done.value = 7;
  SharedStart* const shared = Start(all);
  ASSERT_NE(shared, nullptr);
  for (const Pair* pair : all) {
    EXPECT_EQ(pair->end->shares, 1U);
    EXPECT_EQ(reinterpret_cast<std::byte*>(shared->word), heap_ + pair->end->shared_start);
    EXPECT_EQ(ByShared(*pair), pair->starts - 1);
    EXPECT_EQ(pair->end->shared_until, UINT64_MAX);
  }
  EXPECT_EQ(Start(all), shared) << "while the first start is under way";
  Run(all);
  EXPECT_EQ(shared->word->value, 2U);
  for (const Pair* pair : all) {
    EXPECT_EQ(ByShared(*pair), pair->starts);
  }
  EXPECT_EQ(Start({all[2], all[0], all[1]}), shared) << "in any order";
}

TEST_F(SharedStartsTest, OneAloneHasItsOwn) {
  Pair& one = Make();
  EXPECT_EQ(Start({&one}), nullptr);
  EXPECT_EQ(one.end->shares, 0U);
  EXPECT_EQ(starts_.Join({}), nullptr);
}

TEST_F(SharedStartsTest, WhoeverIsStartedOtherwiseLeavesAndTheOthersGoOn) {
  const std::vector<Pair*> all = {&Make(), &Make(), &Make()};
  SharedStart* const shared = Start(all);
  EXPECT_EQ(Start({all[0]}), nullptr);
  EXPECT_EQ(all[0]->end->shared_until, 1U);
  EXPECT_EQ(all[0]->starts, 2U);
  EXPECT_EQ(Start({all[1], all[2]}), shared) << "under way, but all that share it";
  Run(all);
  EXPECT_EQ(ByShared(*all[1]), 2U);
  starts_.Leave(*all[1]);  // as a start by the rank
  EXPECT_EQ(all[1]->end->shared_until, 2U);
  EXPECT_FALSE(all[1]->shares);
}

// The daemon may still look where the starts under way are counted.
TEST_F(SharedStartsTest, AnotherDoorbellOnlyWhenNothingIsUnderWay) {
  const std::vector<Pair*> all = {&Make(), &Make()};
  Pair& third = Make();
  SharedStart* const first = Start(all);
  EXPECT_EQ(Start({all[0], all[1], &third}), nullptr);
  EXPECT_EQ(all[0]->shared, first);
  EXPECT_EQ(all[0]->end->shared_until, 1U);
  EXPECT_EQ(third.end->shares, 0U);
  Run({all[0], all[1], &third});
  SharedStart* const second = Start({all[0], all[1], &third});
  ASSERT_NE(second, nullptr);
  EXPECT_NE(second, first);
  EXPECT_EQ(all[0]->end->shared_until, UINT64_MAX);
  Run({all[0], all[1], &third});
  EXPECT_EQ(ByShared(*all[0]), 3U);
  EXPECT_EQ(ByShared(third), 2U);
}

TEST_F(SharedStartsTest, DoorbellOfFreedRequestsServesOthersAndKeepsCounting) {
  std::vector<Pair*> all = {&Make(), &Make()};
  SharedStart* const shared = Start(all);
  Run(all);
  starts_.Forget(*all[1]);  // in whatever order
  starts_.Forget(*all[0]);
  const std::vector<Pair*> next = {&Make(), &Make()};
  ASSERT_EQ(Start(next), shared);
  Run(next);
  EXPECT_EQ(shared->word->value, 2U) << "a daemon that looks late sees it grow";
  EXPECT_EQ(ByShared(*next[0]), 1U);
}

TEST_F(SharedStartsTest, DoorbellThatAStreamMayStillWriteServesNobody) {
  const std::vector<Pair*> all = {&Make(), &Make()};
  SharedStart* const shared = Start(all);
  shm::Counter(&all[0]->end->done).Fail(ErrorCode::kPeerDied);
  starts_.Forget(*all[0]);
  shm::StoreRelease(all[1]->end->done.value, uint64_t{1});
  starts_.Forget(*all[1]);
  EXPECT_NE(Start({&Make(), &Make()}), shared);
}

TEST_F(SharedStartsTest, WithoutMemoryEachHasItsOwn) {
  allocated_ = sizeof(heap_);
  EXPECT_EQ(Start({&Make(), &Make()}), nullptr);
}

TEST_F(SharedStartsTest, OnlyReadySendsBetweenNodesMayShare) {
  Pair& pair = Make();
  EXPECT_TRUE(SharedStarts::MayShare(pair));
  pair.is_send = false;
  EXPECT_TRUE(SharedStarts::MayShare(pair)) << "their receives, too";
  pair.local = true;
  EXPECT_FALSE(SharedStarts::MayShare(pair));
  pair.local = false;
  pair.mode = shm::SendMode::kStandard;
  EXPECT_FALSE(SharedStarts::MayShare(pair)) << "counted together with the clear-to-sends";
}

}  // namespace
}  // namespace ferry::client
