// The wake protocol with a publisher or a sleeper stopped, or killed, at any instruction.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>

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
  WakeLayout wake;
  LaneLayout lane;
  uint32_t sleeper_sequence;
  uint32_t sleeper_saw_work;
  uint32_t leaver_was_asked;
};

class WakeKillTest : public testing::Test {
 protected:
  void SetUp() override { FERRY_REQUIRE_STEPPING(); }

  void Reset() {
    std::memset(static_cast<void*>(&world_->wake), 0, sizeof(WakeLayout));
    std::memset(static_cast<void*>(&world_->lane), 0, offsetof(LaneLayout, cells));
    world_->sleeper_sequence = 0;
    world_->sleeper_saw_work = 0;
    world_->leaver_was_asked = 0;
  }
  void PushAndPublish(int32_t tag) {
    Descriptor descriptor{};
    descriptor.tag = tag;
    LaneProducer(&world_->lane).TryPush(descriptor);
    Wake(&world_->wake).PublishLane(kLane);
  }
  // Drains the lane if it is announced. Returns how many messages came out.
  uint32_t TakeAndDrain() {
    uint32_t drained = 0;
    if ((Wake(&world_->wake).TakeActivity(kWord) & kBit) != 0) {
      for (LaneConsumer consumer(&world_->lane); consumer.Peek() != nullptr; consumer.Pop()) {
        ++drained;
      }
    }
    return drained;
  }

  Shared<World> world_;
};

TEST_F(WakeKillTest, SleeperNeverSleepsOverAPublisherStoppedAtAnyInstruction) {
  ForEachInstruction(
      1, [this] { Reset(); }, [this] { PushAndPublish(1); },
      [this](SteppedChild& child) {
        Wake wake(&world_->wake);
        const uint32_t sequence = wake.PrepareToSleep();
        const bool sees_work = wake.HasActivity();
        ASSERT_TRUE(child.Finish());
        // What Sleep compares: if they were equal, it would sleep for ever.
        EXPECT_TRUE(sees_work || LoadRelaxed(world_->wake.sequence) != sequence);
        wake.CancelSleep();
        EXPECT_EQ(TakeAndDrain(), 1U);
      });
}

TEST_F(WakeKillTest, PublisherNeverMissesASleeperStoppedAtAnyInstruction) {
  ForEachInstruction(
      1, [this] { Reset(); },
      [this] {
        Wake wake(&world_->wake);
        world_->sleeper_sequence = wake.PrepareToSleep();
        if (wake.HasActivity()) {
          world_->sleeper_saw_work = 1;
          wake.CancelSleep();
        } else {
          wake.Sleep(world_->sleeper_sequence, 1'000'000);
        }
      },
      [this](SteppedChild& child) {
        PushAndPublish(1);
        ASSERT_TRUE(child.Finish());
        EXPECT_TRUE(world_->sleeper_saw_work != 0 ||
                    world_->sleeper_sequence != LoadRelaxed(world_->wake.sequence));
        EXPECT_EQ(world_->wake.sleepers, 0U);
      });
}

TEST_F(WakeKillTest, NoMessageIsStrandedByAConsumerStoppedAtAnyInstruction) {
  ForEachInstruction(
      1,
      [this] {
        Reset();
        PushAndPublish(1);
      },
      [this] { TakeAndDrain(); },
      [this](SteppedChild& child) {
        PushAndPublish(2);
        ASSERT_TRUE(child.Finish());
        // Either the consumer took it along, or it is still announced.
        LaneConsumer consumer(&world_->lane);
        EXPECT_TRUE(consumer.Peek() == nullptr || Wake(&world_->wake).HasActivity());
      });
}

TEST_F(WakeKillTest, LanePublisherKilledAtAnyInstructionIsMadeUpForByTheNext) {
  ForEachInstruction(
      1, [this] { Reset(); }, [this] { PushAndPublish(1); },
      [this](SteppedChild& child) {
        child.Kill();
        const uint32_t before = TakeAndDrain();
        // As the control plane does for a dead producer.
        Wake(&world_->wake).PublishLane(kLane);
        const uint32_t announced_again = TakeAndDrain();
        EXPECT_LE(before + announced_again, 1U);
        EXPECT_EQ(LaneConsumer(&world_->lane).Peek(), nullptr) << "a message was left behind";
        PushAndPublish(2);
        EXPECT_EQ(TakeAndDrain(), 1U);
      });
}

TEST_F(WakeKillTest, UrgentWorkIsNotMissedByAThreadStoppedWhileItLeaves) {
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

TEST_F(WakeKillTest, PoisonKilledAtAnyInstructionIsCompletedByTheNext) {
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

}  // namespace
}  // namespace ferry::shm
