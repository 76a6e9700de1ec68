#include "daemon/control/watchdog.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <utility>

#include "daemon/control/grpc_acceptor.h"
#include "daemon/sockets/packet_socket.h"
#include "tests/daemon/fake_data_plane.h"
#include "tests/daemon/ferryd_process.h"
#include "tests/support/patience.h"

namespace ferry::daemon {
namespace {

using std::chrono::milliseconds;

class WatchdogTest : public ::testing::Test {
 protected:
  ~WatchdogTest() override {
    loop_.Run([this] {
      watchdog_.Stop();
      door_.Stop();
    });
    loop_.Stop();
  }
  // Nobody accepts there yet.
  UniqueFd Listen() {
    auto listener = ListenUnix(path_, SOCK_STREAM, 0600);
    EXPECT_TRUE(listener.ok()) << listener.status().message();
    return std::move(*listener);
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
    return came_.wait_for(lock, tests::kPatience, [&] { return signs_ >= count; });
  }
  int signs() {
    const std::lock_guard lock(mutex_);
    return signs_;
  }

  // Some ticks: each waits for one interval.
  void WaitForTicks() {
    std::promise<void> over;
    boost::asio::steady_timer timer(loop_.context(), milliseconds(20));
    timer.async_wait([&](const boost::system::error_code&) { over.set_value(); });
    over.get_future().wait();
  }

  TemporaryDirectory directory_;
  const std::string path_ = directory_.path() + "/control.sock";
  FakeDataPlane plane_;
  ControlLoop loop_;
  GrpcAcceptor door_{
      loop_.context(), "the socket", {}};  // refuses everybody, which is an answer, too
  Watchdog watchdog_{loop_, plane_, path_};
  std::mutex mutex_;
  std::condition_variable came_;
  int signs_ = 0;
};

TEST_F(WatchdogTest, AsksAnewForEachSign) {
  door_.Start(Listen());
  Start(milliseconds(1));
  ASSERT_TRUE(WaitForSigns(3));
  EXPECT_GE(plane_.Count("Probe"), 3U);
}

TEST_F(WatchdogTest, IsSilentUntilTheFirstAnswerComes) {
  door_.Start(Listen());
  plane_.set_stuck(true);
  Start(milliseconds(1));
  WaitForTicks();
  EXPECT_EQ(signs(), 0);
  EXPECT_EQ(plane_.Count("Probe"), 1U) << "letters must not pile up in a stuck thread's mailbox";
  plane_.set_stuck(false);
  EXPECT_TRUE(WaitForSigns(1));
}

TEST_F(WatchdogTest, IsSilentWhileNobodyAnswersAtTheSocket) {
  UniqueFd listener = Listen();
  Start(milliseconds(1));
  WaitForTicks();
  EXPECT_EQ(signs(), 0);
  loop_.Run([&] { door_.Start(std::move(listener)); });
  EXPECT_TRUE(WaitForSigns(1));
}

TEST_F(WatchdogTest, IsSilentWithoutASocket) {
  Start(milliseconds(1));
  WaitForTicks();
  EXPECT_EQ(signs(), 0);
}

}  // namespace
}  // namespace ferry::daemon
