// Jobs that name nodes without a daemon, or whose daemon does not answer: their cost to their own
// daemon, and to others.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "common/unique_fd.h"
#include "daemon/peers/peer_links.h"
#include "tests/daemon/test_daemon.h"
#include "tests/e2e/command.h"

namespace ferry::daemon {
namespace {

constexpr uid_t kAnn = 1000;
constexpr uint32_t kNodes = 200;

// Listens at every loopback address, and answers nothing: keeps connections open, or closes them.
class Silence {
 public:
  explicit Silence(bool keeps) : keeps_(keeps), listener_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in any{};
    any.sin_family = AF_INET;
    socklen_t size = sizeof(any);
    EXPECT_EQ(bind(listener_.get(), reinterpret_cast<const sockaddr*>(&any), size), 0);
    EXPECT_EQ(listen(listener_.get(), 4096), 0);
    EXPECT_EQ(getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&any), &size), 0);
    port_ = ntohs(any.sin_port);
    thread_ = std::thread([this] { Accept(); });
  }
  ~Silence() {
    over_ = true;
    thread_.join();
  }
  std::string Address(uint32_t node) const {
    return "127.1." + std::to_string(node / 250) + "." + std::to_string(node % 250 + 1) + ":" +
           std::to_string(port_);
  }
  uint32_t came() const { return came_; }

 private:
  void Accept() {
    std::vector<UniqueFd> kept;
    while (!over_) {
      pollfd asked{listener_.get(), POLLIN, 0};
      if (poll(&asked, 1, 20) > 0) {
        UniqueFd caller(accept(listener_.get(), nullptr, nullptr));
        ++came_;
        if (keeps_) {
          kept.push_back(std::move(caller));
        }
      }
    }
  }

  const bool keeps_;
  UniqueFd listener_;
  uint16_t port_ = 0;
  std::atomic<bool> over_ = false;
  std::atomic<uint32_t> came_ = 0;
  std::thread thread_;
};

class StrangersTest : public ::testing::Test {
 protected:
  config::Options Options(const std::string& name) const {
    return TestOptions(directory_.path() + "/" + name);
  }
  // A rank on each node, and as many nodes besides our own.
  static Status CreateJob(TestDaemon& daemon, const std::string& id, uid_t uid,
                          const std::vector<std::string>& others) {
    std::vector<std::string> addresses = {daemon.address()};
    addresses.insert(addresses.end(), others.begin(), others.end());
    std::vector<uint32_t> node_of_rank;
    for (uint32_t node = 0; node < addresses.size(); ++node) {
      node_of_rank.push_back(node);
    }
    auto request = TestDaemon::JobRequest(id, node_of_rank, addresses, 0);
    request.set_uid(uid);
    return daemon.CreateJob(request);
  }
  static std::vector<std::string> AllOf(const Silence& silence, uint32_t nodes = kNodes) {
    std::vector<std::string> addresses;
    for (uint32_t node = 0; node < nodes; ++node) {
      addresses.push_back(silence.Address(node));
    }
    return addresses;
  }

  e2e::TempDirectory directory_;
};

TEST(LinkTimingTest, WhoNeverAnswersIsGreetedLessAndLess) {
  const LinkTiming timing{.heartbeat_interval_ms = 250, .peer_timeout_ms = 15'000};
  EXPECT_EQ(timing.GreetingPauseMs(0), 250U);
  EXPECT_EQ(timing.GreetingPauseMs(500), 250U);
  EXPECT_EQ(timing.GreetingPauseMs(10'000), 5000U);
  EXPECT_EQ(timing.GreetingPauseMs(120'000), 60'000U);
  EXPECT_EQ(timing.GreetingPauseMs(86'400'000), 60'000U);
}

TEST_F(StrangersTest, OnlySoManyAreGreetedAtATimeAndNobodyElseWaitsForThem) {
  const Silence silence(/*keeps=*/true);
  config::Options options = Options("a");
  options.heartbeat_interval_ms = 600'000;  // each is greeted once, and until the test is over
  options.peer_timeout_ms = 6'000'000;
  TestDaemon a(options);
  TestDaemon b(Options("b"));
  ASSERT_TRUE(CreateJob(a, "made-up", geteuid(), AllOf(silence)).ok());
  ASSERT_TRUE(e2e::Eventually([&] { return silence.came() >= 64; }));
  // Another user's job meets its other node meanwhile.
  ASSERT_TRUE(CreateJob(a, "honest", kAnn, {b.address()}).ok());
  ASSERT_TRUE(b.CreateJobWith("honest", 1, a.address()).ok());
  EXPECT_TRUE(a.plane.WaitFor("AddNode honest"));
  EXPECT_EQ(silence.came(), 64U);
}

TEST_F(StrangersTest, WhoNeverAnswersIsGreetedLessAndLess) {
  const Silence silence(/*keeps=*/false);
  config::Options options = Options("a");
  options.heartbeat_interval_ms = 10;
  TestDaemon a(options);
  const auto start = std::chrono::steady_clock::now();
  ASSERT_TRUE(CreateJob(a, "made-up", geteuid(), AllOf(silence, 1)).ok());
  std::this_thread::sleep_for(std::chrono::seconds(2));  // what is measured
  const uint32_t came = silence.came();
  const double elapsed_ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  // Every 10 ms until 20 ms have passed, then each time half as long again; two that a tick or the
  // end may add. Greeted in each tick it would be 200 times.
  EXPECT_LE(came, 3 + std::log(elapsed_ms / 20) / std::log(1.5) + 2) << elapsed_ms;
  EXPECT_GE(came, 1U);
}

// Its own greeting says that it is there now.
TEST_F(StrangersTest, ADaemonThatComesLateNeedNotWait) {
  config::Options options = Options("a");
  options.heartbeat_interval_ms = 10;
  TestDaemon a(options);
  auto late = std::make_unique<TestDaemon>(Options("b"));
  const std::string address = late->address();
  const uint32_t port = static_cast<uint32_t>(std::stoul(address.substr(address.find(':') + 1)));
  late.reset();
  ASSERT_TRUE(CreateJob(a, "job", geteuid(), {address}).ok());
  ASSERT_TRUE(e2e::Eventually([&] {
    const control::StatusReply status = a.GetStatus();
    return status.peers_size() == 1 && !status.peers(0).trouble().empty();
  }));
  options = Options("b");
  options.control_port = port;
  late = std::make_unique<TestDaemon>(options);
  ASSERT_TRUE(late->CreateJobWith("job", 1, a.address()).ok());
  EXPECT_TRUE(a.plane.WaitFor("AddNode job 1"));
}

TEST_F(StrangersTest, AnAdministratorSaysWhichNodesThereAre) {
  config::Options options = Options("a");
  options.node_addresses = "127.0.0.0/16,node7";
  TestDaemon a(options);
  EXPECT_TRUE(CreateJob(a, "good", geteuid(), {"127.0.9.9:4000"}).ok());
  ExpectError(CreateJob(a, "bad", geteuid(), {"127.0.9.9:4000", "127.1.0.1:4000"}),
              ErrorCode::kPermissionDenied,
              "127.1.0.1 is not among the other nodes that jobs of this ferryd may name (its "
              "option node_addresses)");
  const control::StatusReply status = a.GetStatus();
  EXPECT_EQ(status.jobs_size(), 1);
  EXPECT_EQ(status.peers_size(), 1);
}

TEST_F(StrangersTest, NodesOfEachUserAreBounded) {
  config::Options options = Options("a");
  options.quota_nodes = 3;
  TestDaemon a(options);
  ASSERT_TRUE(CreateJob(a, "a", kAnn, {"127.0.0.1:1", "127.0.0.1:2"}).ok());
  ExpectError(CreateJob(a, "b", kAnn, {"127.0.0.1:1", "127.0.0.1:2"}), ErrorCode::kLimitExceeded,
              "uid 1000 has reached quota_nodes: it uses 2 of 3 nodes and asked for 2 more");
  EXPECT_TRUE(CreateJob(a, "c", kAnn, {"127.0.0.1:3"}).ok());
  EXPECT_TRUE(CreateJob(a, "d", geteuid(), {"127.0.0.1:1", "127.0.0.1:2"}).ok());
  ASSERT_TRUE(a.DestroyJob("a").ok());
  EXPECT_TRUE(CreateJob(a, "b", kAnn, {"127.0.0.1:1", "127.0.0.1:2"}).ok());
}

TEST_F(StrangersTest, RanksOfEachUsersJobsAreBounded) {
  config::Options options = Options("a");
  options.quota_ranks = 5;
  TestDaemon a(options);
  ASSERT_TRUE(CreateJob(a, "a", kAnn, {"127.0.0.1:1", "127.0.0.1:2"}).ok());
  ExpectError(CreateJob(a, "b", kAnn, {"127.0.0.1:1", "127.0.0.1:2"}), ErrorCode::kLimitExceeded,
              "uid 1000 has reached quota_ranks: it uses 3 of 5 ranks and asked for 3 more");
  EXPECT_TRUE(CreateJob(a, "c", kAnn, {"127.0.0.1:3"}).ok());
  EXPECT_TRUE(CreateJob(a, "d", geteuid(), {"127.0.0.1:1", "127.0.0.1:2"}).ok());
}

}  // namespace
}  // namespace ferry::daemon
