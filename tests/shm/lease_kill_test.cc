// The lease when somebody is killed at any instruction of Acquire or Release.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <thread>

#include "shm/fence.h"
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

// The two sides of the biased lease, one of them stopped at any instruction of its attempt.
class BiasedLeaseKillTest : public LeaseKillTest {
 protected:
  struct World {
    LeaseLayout layout;
    uint32_t got_it;
  };

  void SetUp() override {
    LeaseKillTest::SetUp();
    if (!EnableLightFence()) {
      GTEST_SKIP() << "the kernel refuses membarrier";
    }
  }
  void TearDown() override { DisableLightFence(); }
  void Reset() {
    *world_.get() = {};
    owner_ = Lease(&world_->layout);
    owner_.Bias(kVictim);
  }

  Shared<World> world_;
  Lease owner_;
  Lease other_{&world_->layout};
};

TEST_F(BiasedLeaseKillTest, IsTakenByOneOnlyWhereverTheOwnerStands) {
  uint64_t taken = 0;
  const uint64_t points = ForEachInstruction(
      1, [this] { Reset(); }, [this] { world_->got_it = owner_.TryAcquire(kVictim) ? 1 : 0; },
      [&](SteppedChild& child) {
        const bool revoked = other_.TryAcquire(kLeaseWorker);
        taken += revoked ? 1 : 0;
        ASSERT_TRUE(child.Finish());
        EXPECT_FALSE(revoked && world_->got_it != 0);
      });
  EXPECT_GT(taken, 0U);
  EXPECT_LT(taken, points);
}

TEST_F(BiasedLeaseKillTest, IsTakenByOneOnlyWhereverTheRevokerStands) {
  uint64_t taken = 0;
  const uint64_t points = ForEachInstruction(
      1, [this] { Reset(); }, [this] { world_->got_it = other_.TryAcquire(kLeaseWorker) ? 1 : 0; },
      [&](SteppedChild& child) {
        const bool entered = owner_.TryAcquire(kVictim);
        taken += entered ? 1 : 0;
        ASSERT_TRUE(child.Finish());
        EXPECT_FALSE(entered && world_->got_it != 0);
        if (entered) {  // the revoker has given up for good
          owner_.Release(kVictim);
          EXPECT_TRUE(owner_.TryAcquire(kVictim));
        }
      });
  EXPECT_GT(taken, 0U);
  EXPECT_LT(taken, points);
}

TEST_F(BiasedLeaseKillTest, SuccessorGetsTheLeaseWhereverItsOwnerDied) {
  uint64_t held = 0;
  const uint64_t points = ForEachInstruction(
      1, [this] { Reset(); },
      [this] {
        owner_.Acquire(kVictim);
        owner_.Release(kVictim);
      },
      [&](SteppedChild& child) {
        child.Kill();
        const bool broken = other_.BreakDead(kVictim, kLeaseWorker);
        held += broken ? 1 : 0;
        ASSERT_TRUE(broken || other_.TryAcquire(kLeaseWorker));
        ASSERT_EQ(other_.Holder(), kLeaseWorker);
      });
  EXPECT_GT(held, 1U);
  EXPECT_LT(held, points);
}

}  // namespace
}  // namespace ferry::shm
