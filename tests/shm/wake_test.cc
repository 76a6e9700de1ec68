// Waiting and being woken, and for how long to spin before.
#include "shm/wake.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "shm/fence.h"
#include "shm/lane.h"
#include "shm/wait_policy.h"
#include "tests/shm/child_process.h"
#include "tests/shm/shared_memory.h"

namespace ferry::shm {
namespace {

// ---- Wakes

TEST(WakeTest, PublishSetsTheBitOfItsLaneUntilTaken) {
  Shared<WakeLayout> layout;
  Wake wake(layout.get());
  EXPECT_FALSE(wake.HasActivity());
  wake.PublishLane(0);
  wake.PublishLane(65);
  wake.PublishLane(kMaxLanes - 1);
  wake.PublishLane(65);
  EXPECT_TRUE(wake.HasActivity());
  EXPECT_EQ(wake.TakeActivity(0), 1U);
  EXPECT_EQ(wake.TakeActivity(1), 2U);
  EXPECT_EQ(wake.TakeActivity(2), 0U);
  EXPECT_EQ(wake.TakeActivity(kActivityWords - 1), uint64_t{1} << 63);
  EXPECT_FALSE(wake.HasActivity());
  EXPECT_EQ(layout->sequence, 4U);
}

TEST(WakeTest, PublishingToALaneThatIsHeardWritesNothing) {
  if (!EnableLightFence()) {
    GTEST_SKIP() << "the kernel refuses membarrier";
  }
  Shared<WakeLayout> layout;
  Wake wake(layout.get());
  wake.PublishLane(5);
  EXPECT_EQ(wake.Activity(0), uint64_t{1} << 5);
  const WakeLayout before = *layout.get();
  wake.PublishLane(5);
  wake.Publish();
  EXPECT_EQ(std::memcmp(&before, layout.get(), sizeof(before)), 0);
  DisableLightFence();
}

TEST(WakeTest, RestoreMarksALaneWithoutWaking) {
  Shared<WakeLayout> layout;
  Wake wake(layout.get());
  wake.RestoreActivity(130);
  EXPECT_EQ(layout->sequence, 0U);
  EXPECT_EQ(wake.TakeActivity(2), uint64_t{1} << 2);
}

TEST(WakeTest, UrgentWorkIsForTheWorkerOnlyWhenNobodyIsInside) {
  Shared<WakeLayout> layout;
  Wake wake(layout.get());
  EXPECT_TRUE(wake.MustAttend());
  wake.Enter();
  wake.Enter();
  EXPECT_FALSE(wake.MustAttend());
  wake.Leave();
  EXPECT_FALSE(wake.MustAttend());
  wake.Leave();
  EXPECT_TRUE(wake.MustAttend());
}

TEST(WakeTest, LeavingThreadLearnsOnceOfUrgentWork) {
  Shared<WakeLayout> layout;
  Wake wake(layout.get());
  wake.Enter();
  EXPECT_FALSE(wake.TakeUrgent());
  wake.MustAttend();
  wake.MustAttend();
  wake.Leave();
  EXPECT_TRUE(wake.TakeUrgent());
  EXPECT_FALSE(wake.TakeUrgent());
}

TEST(WakeTest, AnnouncerLearnsWhetherToRingTheDoorbell) {
  Shared<WakeLayout> layout;
  Wake wake(layout.get());
  EXPECT_FALSE(wake.AnnounceLane(3));
  wake.PrepareToSleep();
  EXPECT_TRUE(wake.AnnounceLane(3));
  wake.CancelSleep();
  EXPECT_FALSE(wake.AnnounceLane(3));
  EXPECT_EQ(wake.TakeActivity(0), uint64_t{1} << 3);
}

TEST(WakeTest, ACommandMarksNothing) {
  Shared<WakeLayout> layout;
  Wake wake(layout.get());
  const WakeLayout before = *layout.get();
  EXPECT_FALSE(wake.MustRing());
  EXPECT_EQ(std::memcmp(&before, layout.get(), sizeof(before)), 0);
  StoreRelaxed(layout->sleepers, 1);
  EXPECT_TRUE(wake.MustRing());
}

TEST(WakeTest, SleepReturnsAtOnceAfterAPublication) {
  Shared<WakeLayout> layout;
  Wake wake(layout.get());
  const uint32_t sequence = wake.PrepareToSleep();
  wake.Publish();
  wake.Sleep(sequence, 0);  // would last for ever
  EXPECT_EQ(layout->sleepers, 0U);
}

TEST(WakeTest, AChangeWakesThoseThatRestAndNobodyElse) {
  Shared<WakeLayout> layout;
  Wake wake(layout.get());
  uint32_t sequence = wake.PrepareToSleep();
  wake.PublishChange();
  EXPECT_EQ(wake.changes(), 1U);
  EXPECT_EQ(layout->sequence, sequence) << "it sleeps for something else";
  wake.CancelSleep();

  wake.BeginRest();
  sequence = wake.PrepareToSleep();
  wake.PublishChange();
  EXPECT_EQ(wake.changes(), 2U);
  wake.Sleep(sequence, 0);  // would last for ever
  wake.EndRest();
  EXPECT_EQ(layout->resting, 0U);
  EXPECT_EQ(layout->sleepers, 0U);
}

TEST(WakeTest, SleepEndsWithItsTimeout) {
  Shared<WakeLayout> layout;
  Wake wake(layout.get());
  wake.Sleep(wake.PrepareToSleep(), 1'000'000);
  EXPECT_EQ(layout->sleepers, 0U);
  EXPECT_EQ(layout->sequence, 0U);
}

TEST(WakeTest, FirstPoisonStaysAndWakesEverybody) {
  Shared<WakeLayout> layout;
  Wake wake(layout.get());
  EXPECT_EQ(wake.poison(), ErrorCode::kOk);
  std::vector<std::thread> sleepers;
  sleepers.reserve(3);
  for (int i = 0; i < 3; ++i) {
    sleepers.emplace_back([&] {
      while (wake.poison() == ErrorCode::kOk) {
        const uint32_t sequence = wake.PrepareToSleep();
        if (wake.poison() != ErrorCode::kOk) {
          wake.CancelSleep();
          return;
        }
        wake.Sleep(sequence, 0);
      }
    });
  }
  wake.Poison(ErrorCode::kDaemonDied);
  wake.Poison(ErrorCode::kAborted);
  for (std::thread& sleeper : sleepers) {
    sleeper.join();
  }
  EXPECT_EQ(wake.poison(), ErrorCode::kDaemonDied);
  EXPECT_EQ(layout->sleepers, 0U);
}

// A rank as the stress tests use it: its wake word and one lane per sender.
constexpr uint32_t kSenders = 3;
struct TestInbox {
  WakeLayout wake;
  LaneLayout lanes[kSenders];
};

void Send(TestInbox* inbox, uint32_t lane, int32_t tag) {
  LaneProducer producer(&inbox->lanes[lane]);
  Descriptor descriptor{};
  descriptor.tag = tag;
  while (!producer.TryPush(descriptor)) {
    std::this_thread::yield();
  }
  Wake(&inbox->wake).PublishLane(lane);
}

// Takes what is in these lanes. Returns the number of messages, or a large number if one was out of
// order.
uint64_t Receive(TestInbox* inbox, uint64_t lanes, int32_t (&expected_tags)[kSenders]) {
  uint64_t received = 0;
  for (uint32_t lane = 0; lane < kSenders; ++lane) {
    if ((lanes >> lane & 1) == 0) {
      continue;
    }
    LaneConsumer consumer(&inbox->lanes[lane]);
    while (const Descriptor* descriptor = consumer.Peek()) {
      received += descriptor->tag == expected_tags[lane]++ ? 1 : uint64_t{1} << 32;
      consumer.Pop();
      Wake(&inbox->wake).RestoreActivity(lane);
    }
  }
  return received;
}

// Receives at least one message, asleep whenever there is none: a lost wake-up hangs.
uint64_t ReceiveAsleep(TestInbox* inbox, int32_t (&expected_tags)[kSenders]) {
  Wake wake(&inbox->wake);
  for (;;) {
    uint64_t received = Receive(inbox, wake.Activity(0), expected_tags);
    if (received != 0) {
      return received;
    }
    const uint64_t forgotten = wake.TakeActivity(0);
    const uint32_t sequence = wake.PrepareToSleep();
    received = Receive(inbox, forgotten | wake.Activity(0), expected_tags);
    if (received != 0) {
      wake.CancelSleep();
      return received;
    }
    wake.Sleep(sequence, 0);
  }
}

constexpr int32_t kRounds = 5'000;

bool Ping(TestInbox* mine, TestInbox* other, bool first) {
  int32_t expected[kSenders] = {};
  for (int32_t round = 0; round < kRounds; ++round) {
    if (first) {
      Send(other, 0, round);
    }
    if (ReceiveAsleep(mine, expected) != 1) {
      return false;
    }
    if (!first) {
      Send(other, 0, round);
    }
  }
  return true;
}

// True: with the light fence.
class WakeStressTest : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (GetParam() && !EnableLightFence()) {
      GTEST_SKIP() << "the kernel refuses membarrier";
    }
  }
  void TearDown() override { DisableLightFence(); }
};
INSTANTIATE_TEST_SUITE_P(Fences, WakeStressTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "Light" : "Full"; });

TEST_P(WakeStressTest, NoWakeUpIsLostBetweenTwoThreads) {
  Shared<TestInbox> left;
  Shared<TestInbox> right;
  std::thread other([&] { EXPECT_TRUE(Ping(right.get(), left.get(), false)); });
  EXPECT_TRUE(Ping(left.get(), right.get(), true));
  other.join();
}

TEST_P(WakeStressTest, NoWakeUpIsLostBetweenTwoProcesses) {
  Shared<TestInbox> left;
  Shared<TestInbox> right;
  ChildProcess other([&] { return Ping(right.get(), left.get(), false); });
  EXPECT_TRUE(Ping(left.get(), right.get(), true));
  EXPECT_TRUE(other.Join());
}

// The two sides of ProgressCore::PrepareToSleep: a lost command hangs.
TEST(WakeTest, NoCommandIsLostByADaemonThatGoesToSleep) {
  struct Words {
    uint64_t command;
    uint64_t taken;
  };
  Shared<WakeLayout> layout;
  Shared<Words> words;
  const int doorbell = eventfd(0, 0);
  ASSERT_GE(doorbell, 0);
  ChildProcess rank([&] {
    Wake wake(layout.get());
    for (uint64_t number = 1; number <= kRounds; ++number) {
      StoreRelease(words->command, number);
      if (wake.MustRing()) {
        eventfd_write(doorbell, 1);
      }
      while (LoadAcquire(words->taken) != number) {
        sched_yield();
      }
    }
    return true;
  });
  const auto has_come = [&](uint64_t number) { return LoadAcquire(words->command) == number; };
  for (uint64_t number = 1; number <= kRounds; ++number) {
    while (!has_come(number)) {
      Exchange(layout->sleepers, 1U, std::memory_order_seq_cst);
      FullFence();
      eventfd_t rings = 0;
      if (!has_come(number)) {
        ASSERT_EQ(eventfd_read(doorbell, &rings), 0);
      }
      StoreRelaxed(layout->sleepers, 0);
    }
    StoreRelease(words->taken, number);
  }
  EXPECT_TRUE(rank.Join());
  close(doorbell);
}

TEST_P(WakeStressTest, NoWakeUpIsLostFromManySenders) {
  constexpr int32_t kMessages = 20'000;
  Shared<TestInbox> inbox;
  std::vector<std::unique_ptr<ChildProcess>> senders;
  for (uint32_t lane = 0; lane < kSenders; ++lane) {
    senders.push_back(std::make_unique<ChildProcess>([&inbox, lane] {
      for (int32_t tag = 0; tag < kMessages; ++tag) {
        Send(inbox.get(), lane, tag);
      }
      return true;
    }));
  }
  int32_t expected[kSenders] = {};
  uint64_t received = 0;
  while (received < uint64_t{kSenders} * kMessages) {
    received += ReceiveAsleep(inbox.get(), expected);
  }
  EXPECT_EQ(received, uint64_t{kSenders} * kMessages);
  for (auto& sender : senders) {
    EXPECT_TRUE(sender->Join());
  }
}

// ---- How long to spin

TEST(WaiterTest, SpinsAsOftenAsThePolicySaysThenAsksToSleep) {
  Waiter waiter({.spin_pauses = 10, .idle_before_sleep_ns = 0});
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(waiter.Idle()) << "poll " << i;
  }
  EXPECT_TRUE(waiter.Idle());
  EXPECT_TRUE(waiter.Idle()) << "it goes on asking";
}

TEST(WaiterTest, YieldsUntilTheIdleTimeHasPassed) {
  Waiter waiter({.spin_pauses = 0, .idle_before_sleep_ns = 1'000'000});
  EXPECT_FALSE(waiter.Idle()) << "the idle time starts with the first yield";
  while (!waiter.Idle()) {
  }
}

TEST(WaiterTest, NeverAsksToSleepWithoutALimit) {
  Waiter waiter({.spin_pauses = 1, .idle_before_sleep_ns = ~uint64_t{0}});
  for (int i = 0; i < 1000; ++i) {
    ASSERT_FALSE(waiter.Idle());
  }
}

TEST(WaiterTest, ResetStartsOver) {
  Waiter waiter({.spin_pauses = 1, .idle_before_sleep_ns = 0});
  EXPECT_FALSE(waiter.Idle());
  EXPECT_TRUE(waiter.Idle());
  waiter.Reset();
  EXPECT_FALSE(waiter.Idle());
  EXPECT_TRUE(waiter.Idle());
}

}  // namespace
}  // namespace ferry::shm
