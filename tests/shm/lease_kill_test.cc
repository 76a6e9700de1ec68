// Processes that are killed, or stopped, at any instruction while they wait, wake, or hold the
// lease.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <thread>

#include "shm/fence.h"
#include "shm/lane.h"
#include "shm/lease.h"
#include "shm/wake.h"
#include "tests/shm/asleep.h"
#include "tests/shm/shared_memory.h"
#include "tests/shm/step_kill.h"

namespace ferry::shm {
namespace {

// ---- Acquire and Release of the lease

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

// ---- Wakes

constexpr uint32_t kLane = 70;  // in the second activity word
constexpr uint32_t kWord = kLane / 64;
constexpr uint64_t kBit = uint64_t{1} << (kLane % 64);

struct World {
  LaneLayout lane;
  WakeLayout wake;
  uint32_t sleeper_sequence;
  uint32_t sleeper_saw_work;
  uint32_t sleeper_went;  // past its last look
  uint32_t leaver_was_asked;
};

// True: publishers use the light fence.
class WakeKillTest : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    FERRY_REQUIRE_STEPPING();
    if (GetParam() && !EnableLightFence()) {
      GTEST_SKIP() << "the kernel refuses membarrier";
    }
  }
  void TearDown() override { DisableLightFence(); }

  void Reset() {
    std::memset(static_cast<void*>(&world_->wake), 0, sizeof(WakeLayout));
    std::memset(static_cast<void*>(&world_->lane), 0, offsetof(LaneLayout, cells));
    world_->sleeper_sequence = 0;
    world_->sleeper_saw_work = 0;
    world_->sleeper_went = 0;
    world_->leaver_was_asked = 0;
  }
  void PushAndPublish(int32_t tag) {
    Descriptor descriptor{};
    descriptor.tag = tag;
    LaneProducer(&world_->lane).TryPush(descriptor);
    Wake(&world_->wake).PublishLane(kLane);
  }
  // Drains the lane if it is announced. Returns how many messages came out.
  uint32_t DrainAnnounced() {
    uint32_t drained = 0;
    if ((Wake(&world_->wake).Activity(kWord) & kBit) != 0) {
      for (LaneConsumer consumer(&world_->lane); consumer.Peek() != nullptr; consumer.Pop()) {
        ++drained;
      }
    }
    return drained;
  }
  // As a rank does before it sleeps: forgets the lanes, then looks at those that it forgot and
  // those that are announced. True: there is work, and the sleep was cancelled.
  bool PrepareToSleep() {
    Wake wake(&world_->wake);
    const uint64_t forgotten = wake.TakeActivity(kWord);
    world_->sleeper_sequence = wake.PrepareToSleep();
    const bool work = ((forgotten | wake.Activity(kWord)) & kBit) != 0 &&
                      LaneConsumer(&world_->lane).Peek() != nullptr;
    if (work) {
      wake.RestoreActivity(kLane);
      wake.CancelSleep();
    }
    return work;
  }

  Shared<World> world_;
};

TEST_P(WakeKillTest, SleeperNeverSleepsOverAPublisherStoppedAtAnyInstruction) {
  for (const bool heard_before : {false, true}) {
    ForEachInstruction(
        1,
        [&] {
          Reset();
          if (heard_before) {
            Wake(&world_->wake).RestoreActivity(kLane);
          }
        },
        [this] { PushAndPublish(1); },
        [this](SteppedChild& child) {
          const bool sees_work = PrepareToSleep();
          ASSERT_TRUE(child.Finish());
          // The words that Sleep compares: if they were equal, it would sleep for ever.
          EXPECT_TRUE(sees_work || LoadRelaxed(world_->wake.sequence) != world_->sleeper_sequence);
          EXPECT_EQ(DrainAnnounced(), 1U);
        });
  }
}

TEST_P(WakeKillTest, PublisherNeverMissesASleeperStoppedAtAnyInstruction) {
  for (const bool heard_before : {false, true}) {
    ForEachInstruction(
        1,
        [&] {
          Reset();
          if (heard_before) {
            Wake(&world_->wake).RestoreActivity(kLane);
          }
        },
        [this] {
          world_->sleeper_saw_work = PrepareToSleep() ? 1 : 0;
          if (world_->sleeper_saw_work == 0) {
            world_->sleeper_went = 1;
            Wake(&world_->wake).Sleep(world_->sleeper_sequence, 1'000'000);
          }
        },
        [this](SteppedChild& child) {
          const bool slept = world_->sleeper_went != 0 && world_->wake.sleepers == 0;
          PushAndPublish(1);
          ASSERT_TRUE(child.Finish());
          EXPECT_TRUE(slept || world_->sleeper_saw_work != 0 ||
                      world_->sleeper_sequence != LoadRelaxed(world_->wake.sequence));
          EXPECT_EQ(world_->wake.sleepers, 0U);
          EXPECT_EQ(DrainAnnounced(), 1U);
        });
  }
}

TEST_P(WakeKillTest, LanePublisherKilledAtAnyInstructionIsMadeUpForByTheNext) {
  ForEachInstruction(
      1, [this] { Reset(); }, [this] { PushAndPublish(1); },
      [this](SteppedChild& child) {
        child.Kill();
        const uint32_t before = DrainAnnounced();
        // Does what the control plane does for a dead producer.
        Wake(&world_->wake).PublishLane(kLane);
        const uint32_t announced_again = DrainAnnounced();
        EXPECT_LE(before + announced_again, 1U);
        EXPECT_EQ(LaneConsumer(&world_->lane).Peek(), nullptr) << "a message was left behind";
        PushAndPublish(2);
        EXPECT_EQ(DrainAnnounced(), 1U);
      });
}

TEST_P(WakeKillTest, UrgentWorkIsNotMissedByAThreadStoppedWhileItLeaves) {
  ForEachInstruction(
      1,
      [this] {
        Reset();
        Wake(&world_->wake).Enter();
      },
      [this] {
        Wake wake(&world_->wake);
        wake.Leave();
        world_->leaver_was_asked = wake.TakeUrgent();
      },
      [this](SteppedChild& child) {
        const bool calls_worker = Wake(&world_->wake).MustAttend();
        ASSERT_TRUE(child.Finish());
        EXPECT_TRUE(calls_worker || world_->leaver_was_asked != 0);
      });
}

TEST_P(WakeKillTest, PoisonKilledAtAnyInstructionIsCompletedByTheNext) {
  ForEachInstruction(
      1, [this] { Reset(); }, [this] { Wake(&world_->wake).Poison(ErrorCode::kDaemonDied); },
      [this](SteppedChild& child) {
        child.Kill();
        Wake wake(&world_->wake);
        const bool poisoned = wake.poison() != ErrorCode::kOk;
        const uint32_t sequence = wake.PrepareToSleep();
        wake.Poison(ErrorCode::kAborted);
        EXPECT_EQ(wake.poison(), poisoned ? ErrorCode::kDaemonDied : ErrorCode::kAborted);
        EXPECT_NE(LoadRelaxed(world_->wake.sequence), sequence);
      });
}

INSTANTIATE_TEST_SUITE_P(Fences, WakeKillTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "Light" : "Full"; });

}  // namespace
}  // namespace ferry::shm
