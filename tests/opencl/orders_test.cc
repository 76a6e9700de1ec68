// The orders of memory in the headers for kernels, as a compiler and a scheduler of OpenCL's keep
// them.
#include <gtest/gtest.h>

#include <cstdint>
#include <thread>

#include "shm/atomic.h"
#include "tests/opencl/runtime.h"

namespace ferry::opencl {
namespace {

// Words apart from one another.
struct alignas(128) Words {
  uint64_t at[64] = {};
};

class OrdersTest : public testing::TestWithParam<size_t> {
 protected:
  void SetUp() override {
    if (const std::string why = WhyNone(); !why.empty()) {
      GTEST_SKIP() << why;
    }
    program_ = std::make_unique<Program>("#include \"tests/opencl/orders.cl\"\n");
    ASSERT_GE(program_->ComputeUnits(), 2U);
  }

  std::unique_ptr<Program> program_;
  Words flag_, answer_, items_[16], arrived_, saw_, wrong_, lock_, guarded_;
};

using Argument = opencl::Argument;
constexpr uint64_t kRounds = 300;

TEST_P(OrdersTest, WhatIsWrittenBeforeAReleaseIsSeenAfterTheAcquire) {
  program_->Launch(
      "pass_messages", 2, GetParam(),
      {Argument::Pointer(&flag_), Argument::Pointer(&answer_), Argument::Pointer(items_),
       Argument::Value(kRounds), Argument::Pointer(&wrong_)});
  EXPECT_EQ(wrong_.at[0], 0U);
  EXPECT_EQ(answer_.at[0], kRounds);
}

TEST_P(OrdersTest, GroupsThatGuardDoNotLoseAnything) {
  program_->Launch("guard", 2, GetParam(),
                   {Argument::Pointer(&lock_), Argument::Pointer(&lock_.at[16]),
                    Argument::Pointer(&guarded_), Argument::Value(kRounds)});
  EXPECT_EQ(guarded_.at[0], kRounds * GetParam());
  EXPECT_EQ(guarded_.at[16], kRounds * GetParam());
}

TEST_P(OrdersTest, AdditionsCountAndBroadcastsReachAll) {
  constexpr uint64_t kFew = 20;
  program_->Launch("count", 7, GetParam(),
                   {Argument::Pointer(&flag_), Argument::Pointer(&answer_),
                    Argument::Pointer(&wrong_), Argument::Value(kFew)});
  EXPECT_EQ(wrong_.at[0], 0U);
  EXPECT_EQ(flag_.at[0], 7 * GetParam() * kFew * 3);
  EXPECT_EQ(answer_.at[0], 7 * GetParam() * kFew * 5);
}

INSTANTIATE_TEST_SUITE_P(, OrdersTest, testing::Values(1, 32, 256));

using PairTest = OrdersTest;

TEST_P(PairTest, OneOfTwoThatStoreAndLookSeesTheOther) {
  program_->Launch(
      "store_and_look", 2, GetParam(),
      {Argument::Pointer(&flag_), Argument::Pointer(&arrived_), Argument::Pointer(&saw_),
       Argument::Value(kRounds * 20), Argument::Pointer(&wrong_)});
  EXPECT_EQ(wrong_.at[0], 0U);
  EXPECT_EQ(arrived_.at[0], 4 * kRounds * 20);
}

// The host's words (shm/atomic.h) and the kernels' are one kind.
TEST_P(PairTest, HostsAndKernelsPassMessages) {
  std::thread host([this] {
    for (uint64_t round = 1; round <= kRounds; ++round) {
      while (shm::LoadAcquire(flag_.at[0]) != round) {
        std::this_thread::yield();
      }
      const auto* const item = reinterpret_cast<const uint32_t*>(items_);
      if (*item != static_cast<uint32_t>(round * 7)) {
        wrong_.at[0] += 1;
      }
      shm::StoreRelease(answer_.at[0], round);
    }
  });
  program_->Launch(
      "pass_messages", 1, GetParam(),
      {Argument::Pointer(&flag_), Argument::Pointer(&answer_), Argument::Pointer(items_),
       Argument::Value(kRounds), Argument::Pointer(&wrong_)});
  host.join();
  EXPECT_EQ(wrong_.at[0], 0U);
}

INSTANTIATE_TEST_SUITE_P(, PairTest, testing::Values(1));

}  // namespace
}  // namespace ferry::opencl
