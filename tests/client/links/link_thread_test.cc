// The thread that turns direct links: when it works, and when it must not
// (client/links/link_thread.h).
#include "client/links/link_thread.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "common/clock.h"
#include "tests/support/patience.h"

namespace ferry::client {
namespace {

using Threads = LinkThread::Work::Threads;

// Work that comes by an eventfd: as many steps as it counts.
class FakeWork final : public LinkThread::Work {
 public:
  FakeWork() : arrivals_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

  bool TryStep(uint32_t* done) override {
    if (lease_is_taken) {
      ++refused;
      return false;
    }
    eventfd_t count = 0;
    *done = eventfd_read(arrivals_.get(), &count) == 0 ? 1 : 0;
    ++steps;
    const std::lock_guard lock(mutex_);
    taken_ += static_cast<uint32_t>(count);
    changed_.notify_all();
    return true;
  }
  Threads RankThreads() const override {
    const Threads doing = threads;
    ++looks;
    return doing;
  }
  uint32_t Turns() const override { return turns; }
  bool MustStay() const override { return must_stay; }
  bool PrepareToSleep() override {
    ++sleeps;
    return true;
  }
  uint64_t NextTurnNs(uint64_t) const override { return next_turn_ns; }

  int fd() const { return arrivals_.get(); }
  void Arrive() { eventfd_write(arrivals_.get(), 1); }
  bool AwaitTaken(uint32_t count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, tests::kPatience, [&] { return taken_ >= count; });
  }

  std::atomic<Threads> threads = Threads::kAway;
  std::atomic<uint32_t> turns = 0;
  std::atomic<bool> must_stay = false;
  std::atomic<bool> lease_is_taken = false;
  std::atomic<uint64_t> next_turn_ns = UINT64_MAX;
  std::atomic<uint32_t> steps = 0, refused = 0, sleeps = 0;
  mutable std::atomic<uint32_t> looks = 0;

 private:
  const UniqueFd arrivals_;
  std::mutex mutex_;
  std::condition_variable changed_;
  uint32_t taken_ = 0;
};

template <typename Condition>
bool Await(Condition&& condition) {
  const uint64_t end_ns = MonotonicNs() + tests::kPatienceNs;
  while (!condition()) {
    if (MonotonicNs() > end_ns) {
      return false;
    }
    std::this_thread::yield();
  }
  return true;
}

TEST(LinkThreadTest, NothingIsDoneUntilItIsArmed) {
  FakeWork work;
  LinkThread thread(&work);
  thread.Arm();  // before it is started: nothing
  ASSERT_TRUE(thread.Start(work.fd()).ok());
  work.Arrive();
  EXPECT_EQ(work.steps, 0U);
  thread.Arm();
  EXPECT_TRUE(work.AwaitTaken(1));
  for (uint32_t i = 2; i < 20; ++i) {
    work.Arrive();  // armed for good
    EXPECT_TRUE(work.AwaitTaken(i));
  }
}

// Two for each pause, and two before it sleeps for good.
constexpr uint32_t kLooksWhilePolled = 16;

TEST(LinkThreadTest, ItSleepsWhileTheRankPollsUntilItIsArmedAgain) {
  FakeWork work;
  LinkThread thread(&work);
  ASSERT_TRUE(thread.Start(work.fd()).ok());
  thread.Arm();
  ASSERT_TRUE(Await([&] { return work.sleeps != 0; }));
  work.threads = Threads::kPoll;
  const uint32_t looks = work.looks;
  const uint32_t steps = work.steps;
  work.Arrive();  // wakes it once more
  ASSERT_TRUE(Await([&] { return work.looks >= looks + kLooksWhilePolled; }));
  work.Arrive();
  work.threads = Threads::kAway;
  EXPECT_EQ(work.steps, steps);
  thread.Arm();
  EXPECT_TRUE(work.AwaitTaken(2));
}

// Threads that test their requests wait nowhere, so none arms the link thread when they stop
// testing.
TEST(LinkThreadTest, WhenTurnsOfTheRankEndItGoesOn) {
  FakeWork work;
  LinkThread thread(&work);
  ASSERT_TRUE(thread.Start(work.fd()).ok());
  thread.Arm();
  ASSERT_TRUE(Await([&] { return work.sleeps != 0; }));
  const uint32_t looks = work.looks;
  uint32_t arrived = 0;
  ASSERT_TRUE(Await([&] {
    ++work.turns;
    ++arrived;
    work.Arrive();
    return work.looks >= looks + 2 * kLooksWhilePolled;
  }));
  EXPECT_TRUE(work.AwaitTaken(arrived));
}

// While the link thread dozes it is armed, and comes without a call. A thread that sleeps calls it
// at once.
TEST(LinkThreadTest, NoCallIsLost) {
  FakeWork work;
  LinkThread thread(&work);
  ASSERT_TRUE(thread.Start(work.fd()).ok());
  for (uint32_t i = 1; i <= 3000; ++i) {
    work.threads = Threads::kPoll;
    work.Arrive();
    if (i % 2 == 0) {
      work.threads = Threads::kAway;
      thread.Arm();
    } else {
      work.threads = Threads::kSleep;
      thread.Call();
    }
    ASSERT_TRUE(work.AwaitTaken(i)) << i;
  }
}

// It does not see what waits for its turn, then.
TEST(LinkThreadTest, WhileItWatchesTheLinksItCanBeArmed) {
  FakeWork work;
  LinkThread thread(&work);
  ASSERT_TRUE(thread.Start(work.fd()).ok());
  for (uint32_t i = 1; i < 100; ++i) {
    const uint32_t sleeps = work.sleeps;
    const uint32_t steps = work.steps;
    thread.Arm();
    ASSERT_TRUE(Await([&] { return work.sleeps > sleeps; })) << i;
    EXPECT_GT(work.steps, steps);
  }
}

// A rank that others may put to at any time arms nothing when it goes on to compute.
TEST(LinkThreadTest, ThatHasToStayItNeedsNoSecondCall) {
  FakeWork work;
  work.must_stay = true;
  LinkThread thread(&work);
  ASSERT_TRUE(thread.Start(work.fd()).ok());
  thread.Arm();
  ASSERT_TRUE(Await([&] { return work.sleeps != 0; }));
  for (uint32_t i = 1; i <= 5; ++i) {
    work.threads = Threads::kPoll;
    const uint32_t looks = work.looks;
    work.Arrive();
    ASSERT_TRUE(Await([&] { return work.looks >= looks + 2 * kLooksWhilePolled; }));
    work.threads = Threads::kAway;
    ASSERT_TRUE(work.AwaitTaken(i)) << i;
  }
}

TEST(LinkThreadTest, ItWaitsForALeaseThatOthersHave) {
  FakeWork work;
  LinkThread thread(&work);
  ASSERT_TRUE(thread.Start(work.fd()).ok());
  work.lease_is_taken = true;
  work.Arrive();
  thread.Arm();
  ASSERT_TRUE(Await([&] { return work.refused > 2; }));
  work.lease_is_taken = false;
  EXPECT_TRUE(work.AwaitTaken(1));
}

TEST(LinkThreadTest, ItTurnsWhenItIsTimeThoughNothingComes) {
  FakeWork work;
  work.next_turn_ns = 0;
  LinkThread thread(&work);
  ASSERT_TRUE(thread.Start(work.fd()).ok());
  thread.Arm();
  EXPECT_TRUE(Await([&] { return work.sleeps > 3; }));
  work.next_turn_ns = UINT64_MAX;
}

TEST(LinkThreadTest, WhileNothingComesItUsesNoTime) {
  FakeWork work;
  LinkThread thread(&work);
  ASSERT_TRUE(thread.Start(work.fd()).ok());
  thread.Arm();
  ASSERT_TRUE(Await([&] { return work.sleeps != 0; }));
  const uint32_t steps = work.steps;
  const uint64_t end_ns = MonotonicNs() + 50'000'000;
  while (MonotonicNs() < end_ns) {
    std::this_thread::yield();
  }
  EXPECT_EQ(work.steps, steps);
}

TEST(LinkThreadTest, ItEndsWhetherItSleepsOrWorks) {
  for (const bool armed : {false, true}) {
    FakeWork work;
    work.lease_is_taken = armed;
    LinkThread thread(&work);
    ASSERT_TRUE(thread.Start(work.fd()).ok());
    if (armed) {
      thread.Arm();
      ASSERT_TRUE(Await([&] { return work.refused != 0; }));
    }
    thread.Stop();
  }
}

}  // namespace
}  // namespace ferry::client
