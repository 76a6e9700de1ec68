// The library against a daemon, in a process that has gRPC and the same messages for itself.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>

#include <functional>
#include <future>
#include <memory>

#include "client/core/attach_connection.h"
#include "client/core/daemon_socket.h"
#include "common/hex_text.h"
#include "tests/client_control/control_library.h"
#include "tests/daemon/ferryd_process.h"
#include "tests/daemon/test_daemon.h"
#include "tests/support/patience.h"
#include "tests/support/processes.h"

namespace ferry {
namespace {

using daemon::TestRank;

using tests::kPatienceMs;

class ControlClientTest : public ::testing::Test {
 protected:
  ControlClientTest() : options_(daemon::TestOptions(directory_.path() + "/a")) {}
  void SetUp() override {
    ASSERT_NE(api_, nullptr);
    Start();
  }
  void TearDown() override { api_->close(control_); }
  void Start() {
    daemon_ = std::make_unique<daemon::TestDaemon>(options_);
    ASSERT_TRUE(
        daemon_->CreateJob(daemon::TestDaemon::JobRequest("job", {0, 0}, {daemon_->address()}, 0))
            .ok());
    ASSERT_TRUE(rank_.Enter(daemon_->attach_path()));
    control_ = Connect(rank_.token());
  }
  ferry_control* Connect(const std::string& token) {
    ferry_control* control = nullptr;
    EXPECT_EQ(ConnectApi(options_.run_directory, token, &control), 0) << text_;
    return control;
  }
  int ConnectApi(const std::string& directory, const std::string& token, ferry_control** control) {
    int error = 0;
    StatusOr<UniqueFd> socket =
        client::ConnectToDaemon({directory, "control.sock", SOCK_STREAM, kPatienceMs}, &error);
    EXPECT_TRUE(socket.ok()) << socket.status().message();
    EXPECT_EQ(error, 0);
    return api_->connect(socket->Release(), (directory + "/control.sock").c_str(), token.c_str(),
                         control, Text());
  }
  ferry_control_text Text() { return {text_, sizeof(text_)}; }
  static void Note(void* argument, const char* missing) {
    *static_cast<std::string*>(argument) = missing;
  }
  // Calls `come` when a rank has been told twice that it waits.
  struct Late {
    std::function<void()> come;
    int told = 0;
    std::string missing = {};
    static void Note(void* argument, const char* missing) {
      Late& late = *static_cast<Late*>(argument);
      if (++late.told <= 2) {
        late.missing = missing;
      }
      if (late.told == 2) {
        late.come();
      }
    }
  };
  void ExpectError(int code, ErrorCode expected, const std::string& words) {
    EXPECT_EQ(code, static_cast<int>(expected));
    EXPECT_NE(std::string(text_).find(words), std::string::npos) << text_;
  }

  const ferry_control_api* api_ = OpenControlLibrary();
  daemon::TemporaryDirectory directory_;
  config::Options options_;
  std::unique_ptr<daemon::TestDaemon> daemon_;
  TestRank rank_{"job", 0, 2, 2};
  std::unique_ptr<TestRank> other_;
  std::future<Status> joined_;
  std::string noted_;
  ferry_control* control_ = nullptr;
  char text_[256] = "";
};

TEST_F(ControlClientTest, JoinsAndDetaches) {
  TestRank other("job", 1, 2, 2);
  ASSERT_TRUE(other.Enter(daemon_->attach_path()));
  control::JoinJobReply reply;
  auto joined = std::async(std::launch::async, [&] { return daemon_->Join(other, &reply); });
  ferry_control_peer peers[2] = {};
  uint32_t node = 9;
  uint32_t node_count = 0;
  ASSERT_EQ(
      api_->join(control_, kPatienceMs, 0, 2, peers, &node, &node_count, Note, &noted_, Text()), 0)
      << text_;
  EXPECT_TRUE(joined.get().ok());
  EXPECT_EQ(node, 0U);
  EXPECT_EQ(node_count, 1U);
  EXPECT_EQ(peers[1].rank, 1U);
  EXPECT_EQ(peers[1].local_index, 1U);
  EXPECT_EQ(peers[1].pid, static_cast<uint32_t>(getpid()));
  EXPECT_EQ(peers[1].private_memory_reachable, 1U);
  ASSERT_EQ(api_->detach(control_, kPatienceMs, Text()), 0) << text_;
  const std::string left = std::to_string(static_cast<int>(ErrorCode::kNotFound));
  EXPECT_EQ(daemon_->plane.Count("RankEnded"), 1U);
  EXPECT_EQ(daemon_->plane.Count("RankEnded job 0 " + left), 1U);  // it has not died
  ExpectError(api_->detach(control_, kPatienceMs, Text()), ErrorCode::kPermissionDenied,
              "its session has ended");
}

TEST_F(ControlClientTest, JoinsAfterARankThatComesLate) {
  Late late{.come = [this] {
    other_ = std::make_unique<TestRank>("job", 1, 2, 2);
    EXPECT_TRUE(other_->Enter(daemon_->attach_path()));
    joined_ = std::async(std::launch::async, [this] { return daemon_->Join(*other_); });
  }};
  ferry_control_peer peers[2] = {};
  uint32_t node = 0;
  uint32_t node_count = 0;
  ASSERT_EQ(
      api_->join(control_, kPatienceMs, 1, 2, peers, &node, &node_count, Late::Note, &late, Text()),
      0)
      << text_;
  EXPECT_TRUE(joined_.get().ok());
  EXPECT_NE(late.missing.find("rank 1 (not attached"), std::string::npos) << late.missing;
}

// The time-out is for a daemon that does not answer, not for ranks that do not come.
TEST_F(ControlClientTest, NoticesThatTheDaemonIsStopped) {
  const std::string directory = directory_.path() + "/stopped";
  daemon::FerrydProcess ferryd(directory, {});
  ASSERT_TRUE(ferryd.WaitUntilReady()) << ferryd.Errors();
  daemon::DaemonClient client(directory, ferryd.ControlAddress());
  ASSERT_TRUE(client.CreateJob("job", 2).ok());
  const TestRank rank = client.AttachRank(0, 2);
  ferry_control* control = nullptr;
  ASSERT_EQ(ConnectApi(directory, rank.token(), &control), 0) << text_;
  Late late{.come = [&ferryd] { tests::Stop(ferryd.pid()); }};
  ferry_control_peer peers[2] = {};
  uint32_t node = 0;
  uint32_t node_count = 0;
  ExpectError(api_->join(control, 1000, 1, 2, peers, &node, &node_count, Late::Note, &late, Text()),
              ErrorCode::kTimeout, "ferryd at " + directory + "/control.sock");
  ferryd.Signal(SIGCONT);
  api_->close(control);
}

TEST_F(ControlClientTest, AWrongTokenIsRefused) {
  ferry_control* stranger = Connect(std::string(64, '0'));
  ExpectError(api_->detach(stranger, kPatienceMs, Text()), ErrorCode::kPermissionDenied,
              "names no attached rank");
  api_->close(stranger);
}

TEST_F(ControlClientTest, ALauncherStartsAJob) {
  client::AttachConnection attach;
  ASSERT_TRUE(attach.Connect(options_.run_directory, kPatienceMs).ok());
  const auto user = attach.IdentifyUser();
  ASSERT_TRUE(user.ok()) << user.status().message();
  ferry_control* launcher = Connect(HexText(user->token));
  char address[64] = "";
  ASSERT_EQ(api_->control_address(launcher, kPatienceMs, {address, sizeof(address)}, Text()), 0)
      << text_;
  EXPECT_EQ(address, daemon_->address());
  const uint32_t nodes[] = {0, 0, 0};
  const char* const addresses[] = {address};
  ferry_control_job job{"made-here", "0123456789abcdef", 3, 0, 1, nodes, addresses};
  ASSERT_EQ(api_->create_job(launcher, kPatienceMs, &job, Text()), 0) << text_;
  ExpectError(api_->create_job(launcher, kPatienceMs, &job, Text()), ErrorCode::kAlreadyExists,
              "made-here");
  job.job_id = "too-open";
  job.secret = "short";
  ExpectError(api_->create_job(launcher, kPatienceMs, &job, Text()), ErrorCode::kInvalidArgument,
              "secret");
  // A rank's token is not a launcher's.
  ExpectError(api_->create_job(control_, kPatienceMs, &job, Text()), ErrorCode::kPermissionDenied,
              "token");
  char small[4] = "";
  ExpectError(api_->control_address(launcher, kPatienceMs, {small, sizeof(small)}, Text()),
              ErrorCode::kInternal, "no room");
  api_->close(launcher);
}

TEST_F(ControlClientTest, RegistersAndDeregisters) {
  ASSERT_EQ(rank_.SendRegion(3, 4096).code(), ErrorCode::kOk);
  ferry_control_region region = {};
  region.region = 3;
  region.kind = FERRY_CONTROL_REGION_HOST_HEAP;
  region.size_bytes = 4096;
  ASSERT_EQ(api_->register_region(control_, kPatienceMs, &region, Text()), 0) << text_;
  EXPECT_EQ(daemon_->plane.Count("AddRegion job 0 3"), 1U);
  ASSERT_EQ(api_->deregister_region(control_, kPatienceMs, 3, Text()), 0) << text_;
  ExpectError(api_->deregister_region(control_, kPatienceMs, 3, Text()), ErrorCode::kNotFound,
              "has no region 3");
}

TEST_F(ControlClientTest, Resolves) {
  const uint32_t ranks[] = {1, 0};
  ferry_control_peer peers[2] = {};
  ASSERT_EQ(api_->resolve(control_, kPatienceMs, ranks, 2, peers, Text()), 0) << text_;
  EXPECT_EQ(peers[0].rank, 1U);
  EXPECT_EQ(peers[1].rank, 0U);
  EXPECT_EQ(api_->resolve(control_, kPatienceMs, ranks, 0, nullptr, Text()), 0);
  const uint32_t beyond = 2;
  ExpectError(api_->resolve(control_, kPatienceMs, &beyond, 1, peers, Text()),
              ErrorCode::kInvalidRank, "its ranks are 0 to 1");
}

TEST_F(ControlClientTest, Aborts) {
  ASSERT_EQ(api_->abort(control_, kPatienceMs, 7, "the reason", Text()), 0) << text_;
  EXPECT_EQ(daemon_->plane.Count("PoisonJob job 30"), 1U);
}

TEST_F(ControlClientTest, NoticesThatTheDaemonIsGone) {
  daemon_.reset();
  ExpectError(api_->detach(control_, kPatienceMs, Text()), ErrorCode::kDaemonDied, "ferryd at ");
}

}  // namespace
}  // namespace ferry
