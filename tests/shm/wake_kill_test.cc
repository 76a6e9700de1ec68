// The wake protocol with a publisher or a sleeper stopped, or killed, at any instruction.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>

#include "shm/fence.h"
#include "shm/lane.h"
#include "shm/wake.h"
#include "tests/shm/shared_memory.h"
#include "tests/shm/step_kill.h"

namespace ferry::shm {
namespace {

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
