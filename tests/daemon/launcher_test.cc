// What users may ask of a daemon that is not theirs: jobs of their own, and nothing else.
#include <gtest/gtest.h>
#include <unistd.h>

#include "common/hex_text.h"
#include "daemon/control/admin_report.h"
#include "daemon/control/launchers.h"
#include "tests/daemon/ferryd_process.h"
#include "tests/daemon/test_daemon.h"

namespace ferry::daemon {
namespace {

using Stub = control::Launcher::Stub;

class LauncherTest : public ::testing::Test {
 protected:
  LauncherTest() : daemon_(TestOptions(directory_.path() + "/a")) {}

  control::CreateJobRequest JobRequest(const std::string& id) {
    return TestDaemon::JobRequest(id, {0, 0}, {daemon_.address()}, 0);
  }
  Status Create(const std::string& token, const control::CreateJobRequest& request) {
    control::CreateJobReply reply;
    return TestDaemon::Call(*daemon_.launcher, &Stub::CreateJob, request, &reply, token);
  }
  Status Destroy(const std::string& token, const std::string& id) {
    control::DestroyJobRequest request;
    request.set_job_id(id);
    control::DestroyJobReply reply;
    return TestDaemon::Call(*daemon_.launcher, &Stub::DestroyJob, request, &reply, token);
  }
  control::StatusReply GetStatus(const std::string& token) {
    control::StatusReply reply;
    EXPECT_TRUE(
        TestDaemon::Call(*daemon_.launcher, &Stub::Status, control::StatusRequest(), &reply, token)
            .ok());
    return reply;
  }

  TemporaryDirectory directory_;
  TestDaemon daemon_;
};

TEST_F(LauncherTest, ItsJobsBelongToTheUidThatTheKernelNames) {
  const TestLauncher launcher(daemon_.attach_path());
  EXPECT_EQ(launcher.uid(), geteuid());
  ASSERT_TRUE(Create(launcher.token(), JobRequest("job")).ok());
  const control::StatusReply status = GetStatus(launcher.token());
  EXPECT_EQ(status.node().control_address(), daemon_.address());
  ASSERT_EQ(status.jobs_size(), 1);
  EXPECT_EQ(status.jobs(0).job_id(), "job");
  EXPECT_EQ(status.jobs(0).uid(), geteuid());
  EXPECT_TRUE(Destroy(launcher.token(), "job").ok());
  EXPECT_EQ(GetStatus(launcher.token()).jobs_size(), 0);
}

TEST_F(LauncherTest, MayNotStartJobsForOthers) {
  const TestLauncher launcher(daemon_.attach_path());
  auto request = JobRequest("job");
  request.set_uid(geteuid() + 1);
  ExpectError(Create(launcher.token(), request), ErrorCode::kPermissionDenied,
              "may start jobs only for itself, not for uid " + std::to_string(geteuid() + 1));
  request.set_uid(geteuid());
  EXPECT_TRUE(Create(launcher.token(), request).ok());
}

TEST_F(LauncherTest, AnAdministratorStartsJobsForOthers) {
  auto request = JobRequest("job");
  request.set_uid(12345);
  ASSERT_TRUE(daemon_.CreateJob(request).ok());
  ASSERT_EQ(daemon_.GetStatus().jobs_size(), 1);
  EXPECT_EQ(daemon_.GetStatus().jobs(0).uid(), 12345U);
  const TestLauncher launcher(daemon_.attach_path());
  EXPECT_EQ(GetStatus(launcher.token()).jobs_size(), 0) << "another user's jobs are not shown";
  ExpectError(Destroy(launcher.token(), "job"), ErrorCode::kNotFound,
              "uid " + std::to_string(geteuid()) + " has no job job");
}

TEST_F(LauncherTest, CallsNeedALaunchersToken) {
  ExpectError(Create("", JobRequest("job")), ErrorCode::kPermissionDenied, "carries no token");
  ExpectError(Create(std::string(64, 'a'), JobRequest("job")), ErrorCode::kPermissionDenied,
              "token is no launcher's");
  ExpectError(Destroy("", "job"), ErrorCode::kPermissionDenied, "carries no token");
}

TEST_F(LauncherTest, ATokenIsGoodForItsOwnServiceOnly) {
  const TestLauncher launcher(daemon_.attach_path());
  ASSERT_TRUE(Create(launcher.token(), JobRequest("job")).ok());
  TestRank rank("job", 0, 2, 2);
  ASSERT_TRUE(rank.Enter(daemon_.attach_path()));
  ExpectError(Destroy(rank.token(), "job"), ErrorCode::kPermissionDenied, "is no launcher's");
  control::DetachReply reply;
  ExpectError(TestDaemon::Call(*daemon_.client, &control::Client::Stub::Detach,
                               control::DetachRequest(), &reply, launcher.token()),
              ErrorCode::kPermissionDenied, "names no attached rank");
}

TEST_F(LauncherTest, AConnectionIsARanksOrALaunchers) {
  TestLauncher launcher(daemon_.attach_path());
  ASSERT_TRUE(Create(launcher.token(), JobRequest("job")).ok());
  const Answer attached = launcher.rank().Attach();
  EXPECT_EQ(attached.code(), ErrorCode::kAlreadyExists);
  EXPECT_EQ(attached.text(), "this connection is a launcher's");
  TestRank rank("job", 0, 2, 2);
  ASSERT_TRUE(rank.Enter(daemon_.attach_path()));
  const Answer answer = rank.Ask(attach::UserRequest{rank.Header(attach::Kind::kUser)});
  EXPECT_EQ(answer.code(), ErrorCode::kAlreadyExists);
  EXPECT_EQ(answer.text(), "this connection is a rank's: a launcher needs one of its own");
}

TEST_F(LauncherTest, ItsJobsEndWithItsConnection) {
  TestLauncher launcher(daemon_.attach_path());
  const TestLauncher other(daemon_.attach_path());
  ASSERT_TRUE(Create(launcher.token(), JobRequest("job")).ok());
  ASSERT_TRUE(Create(other.token(), JobRequest("stays")).ok());
  TestRank rank("job", 0, 2, 2);
  ASSERT_TRUE(rank.Enter(daemon_.attach_path()));
  launcher.HangUp();
  const Answer goodbye = rank.Read();
  EXPECT_EQ(goodbye.kind(), attach::Kind::kGoodbye);
  EXPECT_EQ(goodbye.code(), ErrorCode::kAborted);
  ASSERT_TRUE(daemon_.plane.WaitFor("RemoveJob job"));
  ASSERT_EQ(GetStatus(other.token()).jobs_size(), 1);
  EXPECT_EQ(GetStatus(other.token()).jobs(0).job_id(), "stays");
  ExpectError(Create(launcher.token(), JobRequest("job")), ErrorCode::kPermissionDenied,
              "its connection to the attach socket must stay open");
}

TEST_F(LauncherTest, TheAdminServiceIsNotOnTheUsersSocket) {
  const auto admin = control::Admin::NewStub(grpc::CreateChannel(
      "unix:" + directory_.path() + "/a/control.sock", grpc::InsecureChannelCredentials()));
  control::StatusReply reply;
  EXPECT_EQ(
      TestDaemon::Call(*admin, &control::Admin::Stub::Status, control::StatusRequest(), &reply)
          .code(),
      ErrorCode::kUnsupported);
}

// ---- Two users, whatever this process may become ----

class NoLinks final : public NodeLinks {
 public:
  Status Acquire(const std::string&) override { return {}; }
  void Release(const std::string&) override {}
  uint64_t Incarnation() const override { return 1; }
  void SendJoined(const std::string&, const control::JoinedRequest&, Done) override {}
  void SendLeft(const std::string&, const control::LeftRequest&, Done) override {}
  void SendMatches(const std::string&, const control::MatchNewsRequest&, Done) override {}
};

JobSpec Spec(const std::string& id) {
  JobSpec spec;
  spec.id = id;
  spec.secret = kTestSecret;
  spec.node_addresses = {"127.0.0.1:1"};
  spec.node_of_rank = {0};
  return spec;
}

TEST(LaunchersTest, NobodyTouchesTheJobOfAnother) {
  boost::asio::io_context loop;
  FakeDataPlane plane;
  NoLinks links;
  JobRegistry registry(loop, plane, RegistryLimits{});
  registry.set_links(&links);
  Launchers launchers(registry);
  const std::string first = HexText(launchers.Admit(1001));
  const std::string second = HexText(launchers.Admit(1002));
  ASSERT_TRUE(launchers.CreateJob(first, Spec("job")).ok());
  ExpectError(launchers.CreateJob(second, Spec("job")), ErrorCode::kAlreadyExists,
              "job job exists already on this daemon (of whichever user): choose another name");
  ExpectError(launchers.DestroyJob(second, "job"), ErrorCode::kNotFound, "uid 1002 has no job job");
  control::StatusReply seen;
  ReportStatus(registry, 1002, &seen);
  EXPECT_EQ(seen.jobs_size(), 0);
  ReportStatus(registry, 1001, &seen);
  EXPECT_EQ(seen.jobs_size(), 1);
  launchers.Dismiss(second);
  EXPECT_EQ(registry.jobs().size(), 1U);
  launchers.Dismiss(first);
  loop.poll();
  EXPECT_TRUE(registry.jobs().empty());
}

}  // namespace
}  // namespace ferry::daemon
