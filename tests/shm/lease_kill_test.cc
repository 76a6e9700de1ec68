// The lease when somebody is killed at any instruction of Acquire or Release.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <thread>

#include "shm/lease.h"
#include "tests/shm/asleep.h"
#include "tests/shm/shared_memory.h"
#include "tests/shm/step_kill.h"

namespace ferry::shm {
namespace {

constexpr uint32_t kVictim = 1;
constexpr uint32_t kWaiter = 2;

class LeaseKillTest : public testing::Test {
 protected:
  void SetUp() override { FERRY_REQUIRE_STEPPING(); }

  Shared<LeaseLayout> layout_;
  Lease lease_{layout_.get()};
};

TEST_F(LeaseKillTest, SuccessorGetsTheLeaseWhereverItsHolderDied) {
  uint64_t held = 0;
  const uint64_t points = ForEachInstruction(
      1, [this] { *layout_.get() = {}; },
      [this] {
        lease_.Acquire(kVictim);
        lease_.Release(kVictim);
      },
      [&](SteppedChild& child) {
        child.Kill();
        const bool broken = lease_.BreakDead(kVictim, kLeaseWorker);
        held += broken ? 1 : 0;
        ASSERT_TRUE(broken || lease_.TryAcquire(kLeaseWorker));
        ASSERT_EQ(lease_.Holder(), kLeaseWorker);
        ASSERT_FALSE(lease_.IsWanted());
      });
  EXPECT_GT(held, 1U);
  EXPECT_LT(held, points);
}

// A waiter sleeps while the holder is killed somewhere in Release; with a lost wake-up it would for
// ever.
TEST_F(LeaseKillTest, WaiterGetsTheLeaseWhereverItsHolderDied) {
  std::unique_ptr<std::thread> waiter;
  uint64_t held = 0;
  const uint64_t points = ForEachInstruction(
      1,
      [&] {
        ASSERT_TRUE(lease_.TryAcquire(kVictim));
        std::atomic<pid_t> tid{0};
        waiter = std::make_unique<std::thread>([&] {
          tid.store(gettid());
          lease_.Acquire(kWaiter);
          lease_.Release(kWaiter);
        });
        WaitUntilAsleep(tid);
      },
      [this] { lease_.Release(kVictim); },
      [&](SteppedChild& child) {
        child.Kill();
        if (lease_.BreakDead(kVictim, kLeaseWorker)) {
          ++held;
          lease_.Release(kLeaseWorker);
        }
        waiter->join();
        ASSERT_EQ(lease_.Holder(), kLeaseFree);
      });
  EXPECT_GT(held, 1U);
  EXPECT_LT(held, points);
}

}  // namespace
}  // namespace ferry::shm
