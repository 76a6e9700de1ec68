// When daemons ask each other whether they live, and how long they wait for the answer.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/daemon/ferryd_process.h"
#include "tests/daemon/peers/fake_peer.h"
#include "tests/daemon/test_daemon.h"
#include "tests/e2e/command.h"

namespace ferry::daemon {
namespace {

class HeartbeatsTest : public ::testing::Test {
 protected:
  config::Options Options() const { return TestOptions(directory_.path() + "/b"); }

  TemporaryDirectory directory_;
};

// As one whose cores many others want.
TEST_F(HeartbeatsTest, APeerThatAnswersLateIsNotHurried) {
  using std::chrono::milliseconds;
  FakePeer peer;
  config::Options options = Options();
  options.peer_timeout_ms = 2'000;  // a call takes 400 ms at most
  TestDaemon b(options);
  ASSERT_TRUE(b.CreateJobWith("job", 0, peer.address()).ok());
  ASSERT_TRUE(b.plane.WaitFor("AddNode job 1"));
  peer.answer_delay_ms = 300;
  const auto await_beats = [&peer](size_t count) {
    const size_t before = peer.beats().size();
    return e2e::Eventually([&] { return peer.beats().size() >= before + count; });
  };
  ASSERT_TRUE(await_beats(6));
  const std::vector<FakePeer::Beat> slow = peer.beats();
  // It would come after 300 ms if it only waited for the answer.
  EXPECT_GE(slow.back().time - slow[slow.size() - 2].time, milliseconds(600));
  peer.answer_delay_ms = 700;
  ASSERT_TRUE(await_beats(4));
  EXPECT_EQ(peer.beats().back().connection, slow.back().connection)
      << "answers that would come were given up, with their connection";
  EXPECT_EQ(b.plane.Count("NodeFailed"), 0U);
  peer.answer_delay_ms = 0;
  ASSERT_TRUE(await_beats(20)) << "a peer that answers at once again is asked as often as before";
}

// The daemon that gets heartbeats of its peer sends none itself while they come.
TEST_F(HeartbeatsTest, APeerThatAsksItselfIsNotAskedAsWell) {
  using Clock = std::chrono::steady_clock;
  constexpr auto kInterval = std::chrono::milliseconds(400);
  FakePeer peer;
  config::Options options = Options();
  options.heartbeat_interval_ms = kInterval.count();
  TestDaemon b(options);
  ASSERT_TRUE(b.CreateJobWith("job", 0, peer.address()).ok());
  ASSERT_TRUE(b.plane.WaitFor("AddNode job 1"));
  // How often b asks in four intervals in which the peer does so more often; -1: this thread was
  // too late.
  const auto asked_while_it_asks = [&](const std::string& token, uint64_t life) {
    control::HeartbeatRequest request;
    request.set_incarnation(peer.identity().incarnation());
    request.set_life(life);
    const auto beat = [&] {
      EXPECT_TRUE(
          daemon::TellAs(peer.address(), token, b.stub<PeerStub>(), &PeerStub::Heartbeat, request)
              .ok());
    };
    beat();
    const int before = peer.heartbeats;
    const Clock::time_point begin = Clock::now();
    for (Clock::time_point last = begin; last < begin + 4 * kInterval;) {
      std::this_thread::sleep_for(kInterval / 20);
      beat();
      const Clock::time_point now = Clock::now();
      if (now - std::exchange(last, now) > kInterval / 2) {
        return -1;
      }
    }
    return peer.heartbeats - before;
  };
  const auto asked = [&](const std::string& token, uint64_t life) {
    int times = -1;
    EXPECT_TRUE(e2e::Eventually([&] { return (times = asked_while_it_asks(token, life)) >= 0; }));
    return times;
  };
  EXPECT_LE(asked(FakePeer::kToken, 0), 1);  // one may have been under way
  EXPECT_GE(asked("another's", 0), 2) << "anybody might ask in its name";
  EXPECT_GE(asked(FakePeer::kToken, 7), 2) << "it means another life of the link";
  EXPECT_LE(asked(FakePeer::kToken, 0), 1);
}

TEST_F(HeartbeatsTest, ADaemonThatStoodStillItselfTakesNobodyForLost) {
  FakePeer peer;
  FerrydProcess b(directory_.path() + "/b",
                  {"--heartbeat_interval_ms=20", "--peer_timeout_ms=1500"});
  ASSERT_TRUE(b.WaitUntilReady()) << b.Errors();
  DaemonClient client(directory_.path() + "/b", b.ControlAddress());
  const Status created = client.CreateJobWith("job", 0, peer.address());
  ASSERT_TRUE(created.ok()) << created.message();
  TestRank rank("job", 0, 2, 1);
  ASSERT_TRUE(rank.Enter(client.attach_path()));
  const auto heartbeats_more = [&](int count) {
    const int before = peer.heartbeats;
    return e2e::Eventually([&] { return peer.heartbeats >= before + count; });
  };
  ASSERT_TRUE(heartbeats_more(2));
  const int hellos = peer.hellos;
  peer.mute = true;
  ASSERT_TRUE(heartbeats_more(1));  // it waits for the answer
  b.Signal(SIGSTOP);
  std::this_thread::sleep_for(std::chrono::seconds(2));  // the fault itself
  b.Signal(SIGCONT);
  peer.mute = false;
  peer.mute.notify_all();
  EXPECT_TRUE(heartbeats_more(5));
  EXPECT_EQ(peer.hellos, hellos);  // one that lost the link would greet anew
}

}  // namespace
}  // namespace ferry::daemon
