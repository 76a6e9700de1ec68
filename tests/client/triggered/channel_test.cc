// The answers of this rank's end of a matched pair about its messages.
#include <gtest/gtest.h>

#include <cstdint>
#include <thread>

#include "client/triggered/pair.h"
#include "shm/atomic.h"
#include "shm/counter.h"

namespace ferry::client {
namespace {

class PairTest : public testing::Test {
 protected:
  PairTest() { channel_.end = &end_; }
  shm::Counter done() { return shm::Counter(&end_.done); }

  shm::PairLayout end_{};
  Pair channel_;
};

TEST_F(PairTest, WhatHasComeIsNotUndoneByAFailure) {
  channel_.starts = 2;
  done().Add(1);
  EXPECT_TRUE(channel_.IsUnderWay());
  EXPECT_EQ(channel_.Outcome(), ErrorCode::kOk);
  done().Fail(ErrorCode::kPeerDied);
  EXPECT_EQ(channel_.Outcome(), ErrorCode::kPeerDied);
  EXPECT_EQ(channel_.FailureOfNext(), ErrorCode::kPeerDied);
  channel_.starts = 1;
  EXPECT_EQ(channel_.Outcome(), ErrorCode::kOk);
  EXPECT_EQ(channel_.FailureOfNext(), ErrorCode::kPeerDied);
  channel_.starts = 0;
  EXPECT_EQ(channel_.FailureOfNext(), ErrorCode::kOk) << "it came ahead of its start";
}

// A partner frees its request as soon as the last message is complete at its end, perhaps while
// this rank looks.
TEST_F(PairTest, AMessageThatComesBeforeTheEndOfThePairNeverFails) {
  constexpr uint64_t kRounds = 2'000;
  uint64_t round = 0;  // that the partner may complete
  std::thread partner([&] {
    for (uint64_t next = 1; next <= kRounds; ++next) {
      while (shm::LoadAcquire(round) != next) {  // Pairs with the store below.
        std::this_thread::yield();
      }
      done().Add(1);
      done().Fail(ErrorCode::kInvalidRequest);
    }
  });
  channel_.starts = 1;
  uint64_t failures = 0;
  for (uint64_t next = 1; next <= kRounds; ++next) {
    shm::StoreRelaxed(end_.done.error, 0);
    shm::StoreRelaxed(end_.done.value, 0);
    shm::StoreRelease(round, next);
    ErrorCode outcome = ErrorCode::kOk;
    while (channel_.IsUnderWay() && outcome == ErrorCode::kOk) {
      outcome = channel_.Outcome();
    }
    failures += outcome == ErrorCode::kOk ? 0 : 1;
    while (!done().Reached(shm::kCounterFailure)) {
      std::this_thread::yield();
    }
  }
  partner.join();
  EXPECT_EQ(failures, 0U);
}

}  // namespace
}  // namespace ferry::client
