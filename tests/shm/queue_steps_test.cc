// The steps of a queue are read in the order in which the stream carries them out, and each as a
// whole, whatever is written meanwhile.
#include "shm/queue_steps.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "shm/wait_policy.h"

namespace ferry::shm {
namespace {

class QueueStepsTest : public testing::Test {
 protected:
  QueueStepsTest() : steps_(std::make_unique<QueueStepsLayout>()) {
    steps_->magic = kQueueStepsMagic;
  }
  void Write(uint64_t position, QueueStepKind kind = QueueStepKind::kStart) {
    WriteQueueStep(steps_.get(), {position, position * 3, {7, 0, position * 5}, kind});
  }
  std::vector<uint64_t> Positions() const {
    std::vector<uint64_t> positions;
    for (const QueueStep& step : ReadQueueSteps(*steps_)) {
      positions.push_back(step.position);
    }
    return positions;
  }

  std::unique_ptr<QueueStepsLayout> steps_;
};

TEST_F(QueueStepsTest, AreReadInTheOrderOfTheQueue) {
  Write(kQueueSteps + 1, QueueStepKind::kWait);  // in an entry before those of the others
  Write(kQueueSteps - 1);
  Write(kQueueSteps);
  EXPECT_EQ(Positions(), (std::vector<uint64_t>{kQueueSteps - 1, kQueueSteps, kQueueSteps + 1}));
  const QueueStep last = ReadQueueSteps(*steps_).back();
  EXPECT_EQ(last.kind, QueueStepKind::kWait);
  EXPECT_EQ(last.round, (kQueueSteps + 1) * 3);
  EXPECT_EQ(last.end.region, 7U);
  EXPECT_EQ(last.end.address, (kQueueSteps + 1) * 5);
}

TEST_F(QueueStepsTest, ALaterStepReplacesTheOneAtItsEntry) {
  Write(5);
  Write(5 + kQueueSteps);
  EXPECT_EQ(Positions(), std::vector<uint64_t>{5 + kQueueSteps});
  ClearQueueStep(steps_.get(), 5);
  EXPECT_EQ(Positions(), std::vector<uint64_t>());
}

TEST_F(QueueStepsTest, WhatIsNoStepIsLeftOut) {
  Write(1);
  Write(2);
  steps_->steps[2].kind = 3;
  EXPECT_EQ(Positions(), std::vector<uint64_t>{1});
  steps_->magic = 0;
  EXPECT_EQ(Positions(), std::vector<uint64_t>());
  std::memset(static_cast<void*>(steps_.get()), 0xff, sizeof(*steps_));
  EXPECT_EQ(Positions(), std::vector<uint64_t>());
}

TEST_F(QueueStepsTest, AStepIsReadAsAWholeWhileItsEntryIsWritten) {
  constexpr size_t kWanted = 1'000;
  std::atomic<bool> ends = false;
  uint64_t last = 0;
  std::thread writer([&] {
    for (uint64_t round = 1; !ends; ++round) {
      for (uint64_t pause = round % 200; pause > 0; --pause) {
        CpuPause();  // else a reader finds none that stays
      }
      last = 1 + round * kQueueSteps;
      Write(last, round % 2 == 0 ? QueueStepKind::kStart : QueueStepKind::kWait);
    }
  });
  size_t seen = 0;
  while (seen < kWanted) {
    for (const QueueStep& step : ReadQueueSteps(*steps_)) {
      ++seen;
      EXPECT_EQ(step.round, step.position * 3);
      EXPECT_EQ(step.end.address, step.position * 5);
      const bool is_start = step.position / kQueueSteps % 2 == 0;
      EXPECT_EQ(step.kind, is_start ? QueueStepKind::kStart : QueueStepKind::kWait);
    }
  }
  ends = true;
  writer.join();
  EXPECT_EQ(Positions(), std::vector<uint64_t>{last});
}

TEST_F(QueueStepsTest, APlaceIsOneNumber) {
  const auto back = [](const Location& place) { return PlaceOf(ObjectOf(place)); };
  const std::optional<Location> place = back({3, 0, 0x12'3456'7890});
  ASSERT_TRUE(place);
  EXPECT_EQ(place->region, 3U);
  EXPECT_EQ(place->address, 0x12'3456'7890U);
  EXPECT_FALSE(back({0, 0, 64})) << "private memory";
  EXPECT_FALSE(back({1 << 24, 0, 64}));
  EXPECT_FALSE(back({1, 0, uint64_t{1} << 40}));
}

}  // namespace
}  // namespace ferry::shm
