#include "daemon/control/watchdog.h"

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "tests/daemon/fake_data_plane.h"

namespace ferry::daemon {
namespace {

using std::chrono::milliseconds;

class WatchdogTest : public ::testing::Test {
 protected:
  ~WatchdogTest() override {
    loop_.Run([this] { watchdog_.Stop(); });
    loop_.Stop();
  }
  void Start(milliseconds interval) {
    watchdog_.Start(interval, [this] {
      const std::lock_guard lock(mutex_);
      ++signs_;
      came_.notify_all();
    });
    loop_.Start();
  }
  bool WaitForSigns(int count) {
    std::unique_lock lock(mutex_);
    return came_.wait_for(lock, std::chrono::seconds(20), [&] { return signs_ >= count; });
  }
  int signs() {
    const std::lock_guard lock(mutex_);
    return signs_;
  }

  FakeDataPlane plane_;
  ControlLoop loop_;
  Watchdog watchdog_{loop_, plane_};
  std::mutex mutex_;
  std::condition_variable came_;
  int signs_ = 0;
};

TEST_F(WatchdogTest, AsksAnewForEachSign) {
  Start(milliseconds(1));
  ASSERT_TRUE(WaitForSigns(3));
  EXPECT_GE(plane_.Count("Probe"), 3U);
}

TEST_F(WatchdogTest, IsSilentUntilTheFirstAnswerComes) {
  plane_.set_stuck(true);
  Start(milliseconds(1));
  // Some ticks: each waits for one interval.
  boost::asio::steady_timer timer(loop_.context(), milliseconds(20));
  std::promise<void> over;
  timer.async_wait([&](const boost::system::error_code&) { over.set_value(); });
  over.get_future().wait();
  EXPECT_EQ(signs(), 0);
  EXPECT_EQ(plane_.Count("Probe"), 1U) << "letters must not pile up in a stuck thread's mailbox";
  plane_.set_stuck(false);
  EXPECT_TRUE(WaitForSigns(1));
}

}  // namespace
}  // namespace ferry::daemon
