// One daemon: what administrators ask of it, and how it stops.
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>

#include "tests/daemon/control/control_server_fixture.h"

namespace ferry::daemon {
namespace {

TEST_F(ControlServerTest, StatusAndSessionsTellWhatIsThere) {
  TestRank rank = daemon_.StartRank(2, 1);
  rank.session()->counters[0] = 17;
  const control::StatusReply status = daemon_.GetStatus();
  EXPECT_EQ(status.pid(), static_cast<uint32_t>(getpid()));
  EXPECT_EQ(status.node().layout_version(), kLayoutVersion);
  EXPECT_EQ(status.node().control_address(), daemon_.address());
  EXPECT_EQ(status.node().provider(), "fake");
  EXPECT_EQ(status.state(), "serving");
  ASSERT_EQ(status.jobs_size(), 1);
  EXPECT_EQ(status.jobs(0).state(), "joining");
  EXPECT_EQ(status.sessions(), 1U);
  control::SessionsReply sessions;
  ASSERT_TRUE(daemon_.Ask(&AdminStub::Sessions, {}, &sessions).ok());
  ASSERT_EQ(sessions.sessions_size(), 1);
  EXPECT_EQ(sessions.sessions(0).rank(), 1U);
  EXPECT_EQ(sessions.sessions(0).messages_sent(), 17U);
  EXPECT_EQ(sessions.sessions(0).state(), "attached");
  EXPECT_EQ(sessions.sessions(0).nic(), "fake0");
  EXPECT_EQ(sessions.sessions(0).nic_distance(), 10);
}

TEST_F(ControlServerTest, CountersHaveNameAndUnit) {
  TestRank rank = daemon_.StartRank();
  rank.session()->counters[2] = 4096;
  control::CountersRequest request;
  request.set_rank(-1);
  control::CountersReply reply;
  const auto counters = [&] { return daemon_.Ask(&AdminStub::Counters, request, &reply); };
  ASSERT_TRUE(counters().ok());
  ASSERT_GT(reply.counters_size(), 2);
  EXPECT_EQ(reply.counters(2).scope(), "job job rank 0");
  EXPECT_EQ(reply.counters(2).value(), 4096U);
  EXPECT_FALSE(reply.counters(2).unit().empty());
  request.set_job_id("nojob");
  ExpectError(counters(), ErrorCode::kNotFound, "no such rank");
}

TEST_F(ControlServerTest, WhyNamesWhatARankWaitsFor) {
  TestRank rank = daemon_.StartRank();
  shm::RequestLayout& posted = rank.request(1);
  posted.state = static_cast<uint32_t>(shm::RequestState::kPosted);
  posted.kind = static_cast<uint32_t>(shm::RequestKind::kReceive);
  posted.peer = -1;
  posted.tag = 42;
  rank.session()->request_fresh = UINT32_MAX;  // a rank may write what it likes
  control::WhyRequest request;
  request.set_job_id("job");
  control::WhyReply reply;
  const auto why = [&] { return daemon_.Ask(&AdminStub::Why, request, &reply); };
  ASSERT_TRUE(why().ok());
  ASSERT_EQ(reply.ranks_size(), 1);
  ASSERT_EQ(reply.ranks(0).reasons_size(), 1);
  const control::WaitReason& reason = reply.ranks(0).reasons(0);
  EXPECT_EQ(reason.operation(), "receive");
  EXPECT_EQ(reason.tag(), 42);
  EXPECT_EQ(reason.step(), "posted, unmatched; nothing else has come");
  EXPECT_EQ(reason.age_ms(), 0U);  // it reports its start only if it knows it
  EXPECT_EQ(reply.ranks(0).state(), "computes");
  request.set_rank(1);
  ExpectError(why(), ErrorCode::kNotFound, "job job has no rank 1: its ranks are 0 to 0");
  request.set_job_id("nojob");
  ExpectError(why(), ErrorCode::kNotFound, "there is no job nojob");
}

TEST_F(ControlServerTest, NicsAndGpusAreListed) {
  control::NicsReply nics;
  ASSERT_TRUE(daemon_.Ask(&AdminStub::Nics, {}, &nics).ok());
  ASSERT_EQ(nics.nics_size(), 2);
  EXPECT_EQ(nics.nics(0).writes(), 7U);
  EXPECT_EQ(nics.nics(1).writes(), 8U);
  control::GpusReply gpus;
  ASSERT_TRUE(daemon_.Ask(&AdminStub::Gpus, {}, &gpus).ok());
  ASSERT_EQ(gpus.gpus_size(), 1);
  EXPECT_EQ(gpus.gpus(0).backend(), "host");
}

TEST_F(ControlServerTest, WatchSendsEveryChange) {
  grpc::ClientContext context;
  auto reader = daemon_.stub<AdminStub>().Watch(&context, control::WatchRequest());
  control::StatusReply status;
  ASSERT_TRUE(reader->Read(&status));
  EXPECT_EQ(status.jobs_size(), 0);
  ASSERT_TRUE(daemon_.CreateJob("job", 1).ok());
  while (status.jobs_size() == 0) {
    ASSERT_TRUE(reader->Read(&status));
  }
  context.TryCancel();
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(ControlServerTest, ADrainingDaemonTakesNoNewJobs) {
  TestRank rank = daemon_.StartRank();
  const auto drain = [&](uint32_t wait_ms) {
    control::DrainRequest request;
    request.set_wait_ms(wait_ms);
    control::DrainReply reply;
    const Status status = daemon_.Ask(&AdminStub::Drain, request, &reply);
    EXPECT_TRUE(status.ok()) << status.message();
    return reply;
  };
  for (const uint32_t wait_ms : {0U, 50U}) {  // at the end of its wait it reports what is there
    EXPECT_EQ(drain(wait_ms).ranks(), 1U);
    EXPECT_EQ(drain(wait_ms).jobs(), 1U);
  }
  ExpectError(daemon_.CreateJob("other", 1), ErrorCode::kDraining, "takes no new jobs");
  EXPECT_EQ(daemon_.GetStatus().state(), "draining");
  std::thread waits([&] { EXPECT_EQ(drain(10'000).jobs(), 0U); });
  ASSERT_TRUE(rank.Detach().status().ok());
  waits.join();
}

TEST_F(ControlServerTest, AJobWhoseLauncherIsThereRunsThoughNoRankHasAttached) {
  const TestLauncher launcher(daemon_.attach_path());
  const auto request = TestDaemon::JobRequest("job", {0}, {daemon_.address()}, 0);
  ASSERT_TRUE(daemon_.Tell(&LauncherStub::CreateJob, request, launcher.token()).ok());
  control::DrainReply reply;
  ASSERT_TRUE(daemon_.Ask(&AdminStub::Drain, {}, &reply).ok());
  EXPECT_EQ(reply.jobs(), 1U);
  EXPECT_EQ(reply.ranks(), 0U);
}

// A server that is asked to stop, with one rank. Its drain_timeout_ms is 100.
class ShutdownTest : public ControlServerTest {
 protected:
  void Start() {
    ASSERT_TRUE(daemon_.CreateJob("job", 1).ok());
    ASSERT_TRUE(rank_.Enter(daemon_.attach_path()));
    main_thread_ = std::thread([this] {
      daemon_.server().RunUntilStopped([this] { told_ = true; });
      ended_ = true;
    });
  }
  ~ShutdownTest() override {
    if (main_thread_.joinable()) {
      main_thread_.join();
    }
  }
  control::ShutdownReply Shutdown(const control::ShutdownRequest& request) {
    control::ShutdownReply reply;
    EXPECT_TRUE(daemon_.Ask(&AdminStub::Shutdown, request, &reply).ok());
    return reply;
  }
  void ExpectGoodbye() {
    main_thread_.join();
    const Answer answer = rank_.Read();
    EXPECT_EQ(answer.code(), ErrorCode::kDaemonDied);
    EXPECT_NE(answer.text().find("ferryd of node a has stopped"), std::string::npos);
    EXPECT_EQ(daemon_.plane.Count("RemoveSession job 0"), 1U);
    EXPECT_TRUE(told_);
  }

  TestRank rank_{"job", 0, 1, 1};
  std::thread main_thread_;
  std::atomic<bool> told_ = false;
  std::atomic<bool> ended_ = false;
};

TEST_F(ShutdownTest, WaitsForItsRanksForAsLongAsTheyTake) {
  Start();
  const control::ShutdownReply reply = Shutdown({});
  EXPECT_EQ(reply.ranks(), 1U);
  EXPECT_EQ(reply.jobs(), 1U);
  const uint64_t asked_ms = daemon_.GetStatus().uptime_ms();
  while (daemon_.GetStatus().uptime_ms() < asked_ms + 500) {  // five times drain_timeout_ms
  }
  EXPECT_FALSE(told_) << "the service manager would begin to count";
  EXPECT_FALSE(ended_);
  ASSERT_TRUE(rank_.Detach().status().ok());
  main_thread_.join();
  EXPECT_TRUE(told_);
}

TEST_F(ShutdownTest, WaitsForSoLongAndNoLonger) {
  Start();
  control::ShutdownRequest request;
  request.set_wait_ms(100);
  Shutdown(request);
  ExpectGoodbye();
}

TEST_F(ShutdownTest, CanBeAskedNotToWaitAnyMore) {
  Start();
  control::ShutdownRequest request;
  Shutdown(request);
  request.set_wait_ms(3'600'000);
  Shutdown(request);
  request.set_now(true);
  Shutdown(request);
  ExpectGoodbye();
}

}  // namespace
}  // namespace ferry::daemon
