// An AttachServer and its registry over the test's own data plane, and a job of four ranks.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include "daemon/attach/attach_server.h"
#include "daemon/jobs/job_registry.h"
#include "daemon/plane/control_loop.h"
#include "tests/daemon/fake_data_plane.h"
#include "tests/daemon/jobs/no_links.h"
#include "tests/daemon/test_rank.h"

namespace ferry::daemon {

class AttachServerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/ferry-attach-XXXXXX";
    directory_ = mkdtemp(path);
    socket_path_ = directory_ + "/attach.sock";
    Start(20'000, {64, 64});
  }
  void TearDown() override {
    Stop();
    std::filesystem::remove_all(directory_);
  }
  void Start(uint64_t attach_timeout_ms, const ConnectionLimits& limits,
             uint64_t join_timeout_ms = 20'000) {
    loop_ = std::make_unique<ControlLoop>();
    registry_ = std::make_unique<JobRegistry>(loop_->context(), data_plane_,
                                              RegistryLimits{1024, 3, join_timeout_ms, {}});
    registry_->set_links(&links_);
    launchers_ = std::make_unique<Launchers>(*registry_);
    server_ = std::make_unique<AttachServer>(loop_->context(), *registry_, *launchers_,
                                             attach_timeout_ms, limits);
    server_->set_why([this](const Session& session) { return why_(session); });
    ASSERT_TRUE(server_->Listen(socket_path_, true).ok());
    loop_->Start();
    ASSERT_TRUE(CreateJob("job", 4).ok());
  }
  void Stop() {
    if (server_ != nullptr) {
      loop_->Run([this] { server_->Stop(); });
      while (loop_->Run([this] { return server_->questions(); }) != 0) {
        std::this_thread::yield();
      }
      loop_->Stop();
      server_.reset();
      launchers_.reset();
      registry_.reset();
      loop_.reset();
      std::filesystem::remove(socket_path_);
    }
  }
  // Ranks 0, 1 and 2 are here, the last one is elsewhere.
  Status CreateJob(const std::string& id, uint32_t size, uid_t owner = geteuid()) {
    JobSpec spec;
    spec.id = id;
    spec.secret = kTestSecret;
    spec.owner = owner;
    spec.node_addresses = {"127.0.0.1:1", "127.0.0.1:2"};
    spec.node_of_rank.assign(size, 0);
    spec.node_of_rank.back() = 1;
    return loop_->Run([&] { return registry_->CreateJob(spec); });
  }
  TestRank Rank(uint32_t rank, const std::string& job = "job", uint32_t size = 4) {
    return TestRank(job, rank, size, 3);
  }
  // Ranks as Rank makes them: connected; attached, too; with their segments handed over, too.
  TestRank Connected(uint32_t number) {
    TestRank rank = Rank(number);
    EXPECT_TRUE(rank.Connect(socket_path_).ok());
    return rank;
  }
  TestRank Attached(uint32_t number) {
    TestRank rank = Connected(number);
    EXPECT_EQ(rank.Attach().code(), ErrorCode::kOk);
    return rank;
  }
  TestRank Entered(uint32_t number) {
    TestRank rank = Rank(number);
    EXPECT_TRUE(rank.Enter(socket_path_));
    return rank;
  }
  // Begins anew with other limits.
  void Restart(uint64_t attach_timeout_ms, const ConnectionLimits& limits,
               uint64_t join_timeout_ms = 20'000) {
    Stop();
    Start(attach_timeout_ms, limits, join_timeout_ms);
  }
  size_t Connections() {
    return loop_->Run([this] { return server_->connections(); });
  }
  // The daemon says why, then hangs up, and lives.
  void ExpectGoodbye(TestRank& rank, const Answer& answer, ErrorCode code,
                     const std::string& words) {
    EXPECT_EQ(answer.kind(), attach::Kind::kGoodbye);
    EXPECT_EQ(answer.code(), code);
    EXPECT_NE(answer.text().find(words), std::string::npos) << answer.text();
    EXPECT_TRUE(rank.Read().hang_up);
    TestRank next = Rank(2);
    EXPECT_TRUE(next.Enter(socket_path_));
  }
  void ExpectRefusal(const Answer& answer, ErrorCode code, const std::string& words) {
    EXPECT_EQ(answer.code(), code) << answer.text();
    EXPECT_NE(answer.text().find(words), std::string::npos) << answer.text();
  }

  // Answers ranks that ask what they wait for.
  AttachServer::Why why_ = [](const Session& session) {
    return "rank " + std::to_string(session.rank) + " computes";
  };
  int names_ = 0;
  std::string directory_;
  std::string socket_path_;
  FakeDataPlane data_plane_;
  NoLinks links_;
  std::unique_ptr<ControlLoop> loop_;
  std::unique_ptr<JobRegistry> registry_;
  std::unique_ptr<Launchers> launchers_;
  std::unique_ptr<AttachServer> server_;
};

}  // namespace ferry::daemon
