#include "daemon/control/watchdog.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "daemon/grpc/grpc_acceptor.h"
#include "proto/control.grpc.pb.h"
#include "tests/daemon/fake_data_plane.h"
#include "tests/support/patience.h"

namespace ferry::daemon {
namespace {

using std::chrono::milliseconds;

class WatchdogTest : public ::testing::Test {
 protected:
  WatchdogTest() {
    grpc::ServerBuilder builder;
    door_.AddTo(builder, tests::kPatienceMs);
    builder.RegisterService(&service_);
    door_.Sift();
    server_ = builder.BuildAndStart();
  }
  ~WatchdogTest() override {
    loop_.Run([this] {
      watchdog_.Stop();
      door_.Stop();
    });
    server_->Shutdown();
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

  // The server's answers come, or do not.
  StatusOr<UniqueFd> Dial() {
    if (answers_) {
      return door_.Dial();
    }
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    silent_.emplace_back(ends[1]);
    return UniqueFd(ends[0]);
  }

  FakeDataPlane plane_;
  ControlLoop loop_;
  GrpcAcceptor door_{loop_.context(), "the socket", {.of_user = 1, .in_all = 1}};
  control::Launcher::Service service_;  // which is never called
  std::unique_ptr<grpc::Server> server_;
  bool answers_ = true;           // the loop's, once that runs
  std::vector<UniqueFd> silent_;  // the loop's
  Watchdog watchdog_{loop_, plane_, "the socket", [this] { return Dial(); }};
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
  WaitForTicks();
  EXPECT_EQ(signs(), 0);
  EXPECT_EQ(plane_.Count("Probe"), 1U) << "letters must not pile up in a stuck thread's mailbox";
  plane_.set_stuck(false);
  EXPECT_TRUE(WaitForSigns(1));
}

TEST_F(WatchdogTest, IsSilentWhileTheServerDoesNotAnswer) {
  answers_ = false;
  Start(milliseconds(1));
  WaitForTicks();
  EXPECT_EQ(signs(), 0);
  loop_.Run([&] {
    EXPECT_EQ(silent_.size(), 1U) << "it waits for the first answer";
    answers_ = true;
    silent_.clear();
  });
  EXPECT_TRUE(WaitForSigns(1));
}

}  // namespace
}  // namespace ferry::daemon
