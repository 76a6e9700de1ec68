// The thread that turns direct links: when it works, and when it must not
// (client/rank/link_thread.h).
#include "client/rank/link_thread.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "common/clock.h"

namespace ferry::client {
namespace {

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
  bool IsPolled() const override {
    const bool polled = is_polled;
    ++looks;
    return polled;
  }
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
    return changed_.wait_for(lock, std::chrono::seconds(20), [&] { return taken_ >= count; });
  }

  std::atomic<bool> is_polled = false;
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
  const uint64_t end_ns = MonotonicNs() + 20'000'000'000;
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

TEST(LinkThreadTest, ItSleepsWhileTheRankPollsUntilItIsArmedAgain) {
  FakeWork work;
  LinkThread thread(&work);
  ASSERT_TRUE(thread.Start(work.fd()).ok());
  thread.Arm();
  ASSERT_TRUE(Await([&] { return work.sleeps != 0; }));
  work.is_polled = true;
  const uint32_t looks = work.looks;
  work.Arrive();                                                // wakes it once more
  ASSERT_TRUE(Await([&] { return work.looks >= looks + 2; }));  // and it looks once more
  const uint32_t steps = work.steps;
  work.Arrive();
  work.is_polled = false;
  EXPECT_EQ(work.steps, steps);
  thread.Arm();
  EXPECT_TRUE(work.AwaitTaken(2));
}

// Who arms it and is seen as polling only for a moment is not forgotten.
TEST(LinkThreadTest, NoCallIsLost) {
  FakeWork work;
  LinkThread thread(&work);
  ASSERT_TRUE(thread.Start(work.fd()).ok());
  for (uint32_t i = 1; i <= 3000; ++i) {
    work.is_polled = true;
    work.Arrive();
    work.is_polled = false;
    thread.Arm();
    ASSERT_TRUE(work.AwaitTaken(i)) << i;
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
  for (uint32_t i = 1; i <= 20; ++i) {
    work.is_polled = true;
    const uint32_t looks = work.looks;
    work.Arrive();
    ASSERT_TRUE(Await([&] { return work.looks >= looks + 2; }));
    work.is_polled = false;
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
