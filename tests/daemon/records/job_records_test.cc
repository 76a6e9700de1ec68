// The records and log lines of jobs that end on a daemon.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "common/log.h"
#include "common/rank_exits.h"
#include "shm/call_board.h"
#include "shm/counters.h"
#include "tests/daemon/ferryd_process.h"
#include "tests/daemon/test_daemon.h"

namespace ferry::daemon {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class JobRecordsTest : public ::testing::Test {
 protected:
  JobRecordsTest() {
    const Status status = SetUpLog("ferryd", {.level = "info", .format = "json", .file = log_});
    EXPECT_TRUE(status.ok()) << status.message();
    fs::create_directory(records_);
    fs::permissions(records_, fs::perms(0755));
    config::Options options = TestOptions(directory_.path() + "/a");
    options.job_records = records_;
    daemon_ = std::make_unique<TestDaemon>(options);
  }
  ~JobRecordsTest() override { (void)SetUpLog("ferryd", {}); }

  std::vector<json> Records() const {
    std::vector<json> records;
    const std::string folder = records_ + "/" + std::to_string(geteuid());
    if (fs::exists(folder)) {
      for (const auto& entry : fs::directory_iterator(folder)) {
        if (entry.path().extension() == ".json") {
          std::ifstream file(entry.path());
          records.push_back(json::parse(file));
        }
      }
    }
    return records;
  }
  // The lines of the log that tell such an event.
  std::vector<json> Events(const std::string& event) const {
    std::vector<json> lines;
    std::ifstream file(log_);
    for (std::string text; std::getline(file, text);) {
      const json line = json::parse(text);
      if (line.contains("event") && line["event"] == event) {
        lines.push_back(line);
      }
    }
    return lines;
  }
  bool HasRecords(size_t count) const {
    return e2e::Eventually([&] { return Records().size() == count; });
  }

  TemporaryDirectory directory_;
  const std::string log_ = directory_.path() + "/log";
  const std::string records_ = directory_.path() + "/records";
  std::unique_ptr<TestDaemon> daemon_;
};

TEST_F(JobRecordsTest, AJobThatEndsLeavesOne) {
  auto [one, other] = daemon_->StartTwoRanks();
  shm::Statistics(one.session()->counters).Add(shm::Statistic::kBytesSent, 1000);
  shm::Statistics(other.session()->counters).Add(shm::Statistic::kBytesSent, 30);
  ExpectJoin(one, other);
  ASSERT_TRUE(one.Detach().status().ok());
  EXPECT_TRUE(Records().empty());
  ASSERT_TRUE(other.Detach().status().ok());
  ASSERT_TRUE(HasRecords(1));
  const json record = Records()[0];
  EXPECT_EQ(record["job"], "job");
  EXPECT_EQ(record["uid"], geteuid());
  EXPECT_EQ(record["node"], "a");
  EXPECT_EQ(record["ranks"], 2);
  EXPECT_EQ(record["attached_ranks"], 2);
  EXPECT_EQ(record["bytes_sent"], 1030);
  EXPECT_EQ(record["outcome"], "completed") << record;
  EXPECT_LE(record["start"], record["end"]);
  const std::vector<json> begins = Events("job_begin");
  ASSERT_EQ(begins.size(), 1U);
  EXPECT_EQ(begins[0]["job"], "job");
  EXPECT_EQ(begins[0]["uid"], geteuid());
  const std::vector<json> ends = Events("job_end");
  ASSERT_EQ(ends.size(), 1U);
  EXPECT_EQ(ends[0]["job"], "job");
  EXPECT_EQ(ends[0]["uid"], geteuid());
  EXPECT_EQ(ends[0]["record"]["bytes_sent"], 1030);
  EXPECT_TRUE(Events("rank_end").empty());
}

TEST_F(JobRecordsTest, ARankThatDiesIsTold) {
  TestRank rank = daemon_->StartRank();
  rank.HangUp();
  ASSERT_TRUE(HasRecords(1));
  const json record = Records()[0];
  EXPECT_EQ(record["outcome"], "failed");
  EXPECT_EQ(record["died_ranks"], 1);
  EXPECT_NE(record["reason"].get<std::string>().find("rank 0 of job job"), std::string::npos);
  const std::vector<json> ends = Events("rank_end");
  ASSERT_EQ(ends.size(), 1U);
  EXPECT_EQ(ends[0]["job"], "job");
  EXPECT_EQ(ends[0]["rank"], 0);
  EXPECT_EQ(ends[0]["uid"], geteuid());
  EXPECT_EQ(ends[0]["level"], "warning");
}

// ---- Exit codes ---------------------------------------------------------------------------------

// A launcher that says how the processes of its ranks end, as ferryrun does.
class Parent {
 public:
  explicit Parent(TestDaemon* daemon) : daemon_(*daemon), launcher_(daemon->attach_path()) {}

  void Create(const std::string& id, const std::string& exits = "later") {
    Call(&LauncherStub::CreateJob, TestDaemon::JobRequest(id, {0, 0}, {daemon_.address()}, 0),
         exits);
  }
  void Destroy(const std::string& id, const std::string& exits) {
    control::DestroyJobRequest request;
    request.set_job_id(id);
    Call(&LauncherStub::DestroyJob, request, exits);
  }
  void HangUp() { launcher_.HangUp(); }

 private:
  template <typename Request, typename Reply>
  void Call(grpc::Status (LauncherStub::*method)(grpc::ClientContext*, const Request&, Reply*),
            const Request& request, const std::string& exits) {
    grpc::ClientContext context;
    context.AddMetadata("ferry-token", launcher_.token());
    if (!exits.empty()) {
      context.AddMetadata(kExitsMetadata, exits);
    }
    Reply reply;
    const grpc::Status status = (daemon_.stub<LauncherStub>().*method)(&context, request, &reply);
    EXPECT_TRUE(status.ok()) << status.error_message();
  }

  TestDaemon& daemon_;
  TestLauncher launcher_;
};

class ExitsTest : public JobRecordsTest {
 protected:
  TestRank Enter(const std::string& id, uint32_t rank) {
    TestRank entered(id, rank, 2, 2);
    EXPECT_TRUE(entered.Enter(daemon_->attach_path()));
    return entered;
  }
  void Leave(TestRank one, TestRank other) {
    ExpectJoin(one, other);
    EXPECT_TRUE(one.Detach().status().ok());
    EXPECT_TRUE(other.Detach().status().ok());
    EXPECT_TRUE(e2e::Eventually([&] { return daemon_->GetStatus().jobs_size() == 0; }));
  }
  // Two ranks of the job come, and leave.
  void RunProgram(const std::string& id) { Leave(Enter(id, 0), Enter(id, 1)); }

  Parent parent_{daemon_.get()};
};

TEST_F(ExitsTest, TheRecordWaitsForThem) {
  parent_.Create("job");
  RunProgram("job");
  EXPECT_TRUE(Events("job_end").empty());
  parent_.Destroy("job", "3;0*1,3*1;");
  ASSERT_TRUE(HasRecords(1));
  const json record = Records()[0];
  EXPECT_EQ(record["outcome"], "completed");
  EXPECT_EQ(record["exit_code"], 3);
  EXPECT_EQ(record["exit_codes"], json({{"0", 1}, {"3", 1}}));
  EXPECT_EQ(Events("job_end")[0]["record"]["exit_code"], 3);
}

TEST_F(ExitsTest, AJobThatRunsWhenItIsDestroyedHasThem) {
  parent_.Create("job");
  const TestRank rank = Enter("job", 0);
  parent_.Destroy("job", "1;1*1;9*1");
  ASSERT_TRUE(HasRecords(1));
  EXPECT_EQ(Records()[0]["exit_codes"], json({{"1", 1}, {"signal 9", 1}}));
}

TEST_F(ExitsTest, ALauncherThatWillNotTellIsNotWaitedFor) {
  parent_.Create("job", "");
  RunProgram("job");
  ASSERT_TRUE(HasRecords(1));
  EXPECT_EQ(Records()[0]["exit_codes"], json({{"unknown", 2}}));
}

TEST_F(ExitsTest, NorIsOneThatIsKilledOrTellsNonsense) {
  parent_.Create("job");
  RunProgram("job");
  parent_.Destroy("job", "0;0*3;");  // more than there are
  ASSERT_TRUE(HasRecords(1));
  parent_.Create("other");
  RunProgram("other");
  parent_.HangUp();
  ASSERT_TRUE(HasRecords(2));
  for (const json& record : Records()) {
    EXPECT_EQ(record["exit_codes"], json({{"unknown", 2}})) << record;
  }
}

// Of programs that follow each other only the last one's processes are the launcher's.
TEST_F(ExitsTest, TheNextProgramEndsTheWaitForTheOneBefore) {
  parent_.Create("job");
  RunProgram("job");
  TestRank one = Enter("job", 0);
  ASSERT_TRUE(HasRecords(1));
  EXPECT_EQ(Records()[0]["job"], "job");
  EXPECT_EQ(Records()[0]["exit_codes"], json({{"unknown", 2}}));
  Leave(std::move(one), Enter("job", 1));
  parent_.Destroy("job", "0;0*2;");
  ASSERT_TRUE(HasRecords(2));
  EXPECT_EQ(Events("job_end")[1]["record"]["job"], "job#2");
  EXPECT_EQ(Events("job_end")[1]["record"]["exit_codes"], json({{"0", 2}}));
}

TEST_F(ExitsTest, ADaemonThatStopsWaitsForNone) {
  parent_.Create("job");
  RunProgram("job");
  daemon_.reset();
  ASSERT_EQ(Records().size(), 1U);
  EXPECT_EQ(Records()[0]["exit_codes"], json({{"unknown", 2}}));
}

// ---- Waits --------------------------------------------------------------------------------------

// A rank that is killed in its wait had waited until then.
TEST_F(JobRecordsTest, AWaitThatTheEndCutsOffCounts) {
  TestRank rank = daemon_->StartRank();
  shm::CallBoard board(&rank.session()->calls);
  shm::CallDescription call;
  call.name = shm::CallName::kMpiBarrier;
  board.Begin(call, 1, MonotonicNs() - 1, false);
  const uint64_t began_ns = MonotonicNs();
  std::this_thread::sleep_until(std::chrono::steady_clock::now() + std::chrono::milliseconds(50));
  rank.HangUp();
  ASSERT_TRUE(HasRecords(1));
  const double most = static_cast<double>(MonotonicNs() - began_ns) / 1e9;
  const json record = Records()[0];
  EXPECT_EQ(record["waits"][0]["call"], "MPI_Barrier");
  EXPECT_GE(record["wait_seconds"], 0.05);
  EXPECT_LE(record["wait_seconds"], most);
  EXPECT_GT(record["wait_share"], 0.1);
}

TEST_F(JobRecordsTest, ADaemonThatStopsRecordsItsLastJobs) {
  const TestRank rank = daemon_->StartRank();
  ASSERT_TRUE(daemon_->CreateJob("idle", 1).ok());
  daemon_.reset();
  ASSERT_EQ(Records().size(), 2U);
  for (const json& record : Records()) {
    EXPECT_EQ(record["outcome"], record["job"] == "job" ? "failed" : "unused") << record;
  }
}

TEST_F(JobRecordsTest, AFolderThatTakesNoneHoldsNobodyUp) {
  const std::string own = records_ + "/" + std::to_string(geteuid());
  ASSERT_EQ(mkfifo(own.c_str(), 0600), 0);  // where the user's folder should be
  for (int i = 0; i < 3; ++i) {
    TestRank rank = daemon_->StartRank();
    ASSERT_TRUE(rank.Detach().status().ok());
    ASSERT_TRUE(e2e::Eventually([&] { return daemon_->GetStatus().jobs_size() == 0; }));
  }
  EXPECT_EQ(Events("job_end").size(), 3U);
  daemon_.reset();
  std::ifstream log(log_);
  const std::string lines{std::istreambuf_iterator<char>(log), {}};
  EXPECT_NE(lines.find("the record of job job is lost: opening " + own), std::string::npos);
}

TEST_F(JobRecordsTest, TheLogSaysWhoAskedToDrain) {
  control::DrainRequest drain;
  ASSERT_TRUE(daemon_->Tell(&AdminStub::Drain, drain).ok());
  ASSERT_TRUE(daemon_->Tell(&AdminStub::Drain, drain).ok());
  const std::vector<json> drains = Events("drain");
  ASSERT_EQ(drains.size(), 1U);
  EXPECT_EQ(drains[0]["message"], "takes no more jobs: uid " + std::to_string(geteuid()) +
                                      " asked for it (ferryctl drain)");
}

TEST_F(JobRecordsTest, BadFoldersAreConfigurationErrors) {
  config::Options options = TestOptions(directory_.path() + "/b");
  options.job_records = log_;
  FakeDataPlane plane;
  ExpectError(ControlServer::Start(options, plane, nullptr).status(), ErrorCode::kConfiguration,
              "job_records: " + log_);
}

}  // namespace
}  // namespace ferry::daemon
