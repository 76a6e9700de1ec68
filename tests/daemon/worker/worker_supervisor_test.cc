// Worker processes that do what no worker does: their job fails with a text that names it, in
// bounded time, and nothing of them stays behind.
#include "daemon/worker/worker_supervisor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>

#include "engine/session_view.h"
#include "tests/daemon/stuck_descriptors.h"
#include "tests/support/patience.h"

namespace ferry::daemon {
namespace {

using testing::HasSubstr;

constexpr uint64_t kShortNs = 400'000'000;
constexpr uint64_t kHourNs = 3'600'000'000'000;
using tests::kPatience;

JobPlan OneRank(const std::string& job_id) {
  JobPlan plan;
  plan.job_id = job_id;
  plan.node_of_rank = {0};
  plan.local_index = {0};
  return plan;
}

class WorkerSupervisorTest : public testing::Test {
 protected:
  WorkerSupervisorTest() { Supervise(kHourNs); }
  void TearDown() override {
    supervisor_.reset();
    // All were reaped.
    EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
    EXPECT_EQ(errno, ECHILD);
  }

  std::shared_ptr<Worker> Make(const std::string& job_id) {
    auto channel = WorkerChannel::Create(OneRank(job_id), 8);
    EXPECT_TRUE(channel.ok()) << channel.status().ToString();
    auto worker = std::make_shared<Worker>();
    worker->job_id = job_id;
    worker->user = {getuid(), getgid(), false};
    worker->channel = *channel;
    worker->copier = std::make_shared<RemoteCopier>(
        *channel, [](progress::StagingPool&, uint32_t) {}, [](const std::string&) {});
    return worker;
  }
  // A worker that does what its job's name says.
  std::shared_ptr<Worker> Start(const std::string& job_id,
                                const char* program = "tests/daemon/worker/hostile_worker") {
    auto worker = Make(job_id);
    auto opened = OpenWorkerProgram(program);
    EXPECT_TRUE(opened.ok()) << opened.status().ToString();
    WorkerLetter letter{MakeWorkerMessage(WorkerMessageKind::kStart), {}, nullptr};
    supervisor_->Start(worker, std::make_shared<UniqueFd>(std::move(*opened)), letter);
    return worker;
  }
  static std::shared_ptr<Session> NoSegments() {
    auto session = std::make_shared<Session>();
    session->reach_settled = false;
    session->session_fd = std::move(*shm::CreateSegment("test", 4096));
    session->inbox_fd = std::move(*shm::CreateSegment("test", 4096));
    return session;
  }

  std::string WaitForFailure() {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(told_.wait_for(lock, kPatience, [this] { return !failures_.empty(); }));
    if (failures_.empty()) {
      return {};
    }
    std::string text = failures_.front();
    failures_.erase(failures_.begin());
    return text;
  }

  std::mutex mutex_;
  std::condition_variable told_;
  std::vector<std::string> failures_;
  std::vector<std::string> imports_;
  std::atomic<bool> slow_ = false;
  std::unique_ptr<WorkerSupervisor> supervisor_;
  // Workers that take no turn for so long stand still. Only tests of that have a short time: how
  // long it takes a worker to do something else depends on the machine.
  void Supervise(uint64_t timeout_ns) {
    supervisor_ = std::make_unique<WorkerSupervisor>(
        timeout_ns,
        SupervisorEvents{
            [this](const std::string& job_id, ErrorCode error, const std::string& text) {
              EXPECT_EQ(error, ErrorCode::kWorkerDied);
              EXPECT_THAT(text, HasSubstr("job " + job_id + " "));
              std::lock_guard lock(mutex_);
              failures_.push_back(text);
              told_.notify_all();
            },
            nullptr,
            [this](const std::string& job_id, uint32_t rank, uint32_t region,
                   const Status& status) {
              std::lock_guard lock(mutex_);
              imports_.push_back(job_id + " " + std::to_string(rank) + " " +
                                 std::to_string(region) + ": " + status.message());
            }},
        [this](const WorkerUser& user) {
          slow_.wait(true);
          return GroupsOf(user);
        });
  }
  // Makes the user database stop answering.
  void AnswerNot() { slow_ = true; }
  void AnswerAll() {
    slow_ = false;
    slow_.notify_all();
  }
};

struct Wrong {
  const char* what;
  const char* text;
  uint64_t timeout_ns = kHourNs;
};

class HostileWorkerTest : public WorkerSupervisorTest, public testing::WithParamInterface<Wrong> {};

TEST_P(HostileWorkerTest, FailsItsJob) {
  Supervise(GetParam().timeout_ns);
  const auto worker = Start(GetParam().what);
  supervisor_->SendSession(worker, NoSegments());
  EXPECT_THAT(WaitForFailure(), HasSubstr(GetParam().text));
}

INSTANTIATE_TEST_SUITE_P(
    All, HostileWorkerTest,
    testing::Values(Wrong{"ends", "ended with status 7"},
                    Wrong{"other-release", "is of another release than ferryd"},
                    Wrong{"short-message", "sent what no worker sends"},
                    Wrong{"no-magic", "sent what no worker sends"},
                    Wrong{"unknown-kind", "answers what it was not asked"},
                    Wrong{"descriptors", "sent what no worker sends"},
                    Wrong{"many-descriptors", "sent what no worker sends"},
                    Wrong{"not-ready", "answers what it was not asked"},
                    Wrong{"not-asked", "answers what it was not asked"},
                    Wrong{"imports-unasked", "answers what it was not asked"},
                    Wrong{"no-use", "cannot use the memory of a rank"},
                    Wrong{"hangs-up", "was killed by signal 9"},
                    Wrong{"stands-still", "has stood still for more than 400 ms", kShortNs}),
    [](const auto& info) {
      std::string name = info.param.what;
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

// The worker's words go into a log, and are its user's.
TEST_F(WorkerSupervisorTest, AnImportIsAnsweredOnceAndInPrintableWords) {
  const auto worker = Start("imports-twice");
  WorkerLetter letter{MakeWorkerMessage(WorkerMessageKind::kDevice), {}, nullptr};
  letter.message.region = 5;
  supervisor_->SendDevice(worker, letter);
  EXPECT_THAT(WaitForFailure(), HasSubstr("answers what it was not asked"));
  std::lock_guard lock(mutex_);
  EXPECT_THAT(imports_, testing::ElementsAre("imports-twice 0 5: no!" + std::string(189, '?')));
}

TEST_F(WorkerSupervisorTest, KilledWorkersFailTheirJobs) {
  const auto worker = Start("waits");
  supervisor_->Condemn(worker, "wrote what no worker writes");
  EXPECT_THAT(WaitForFailure(), HasSubstr("wrote what no worker writes"));
}

TEST_F(WorkerSupervisorTest, AProgramThatCannotRunFailsTheJob) {
  Start("waits", "tests/daemon/worker/not_a_program");
  EXPECT_THAT(WaitForFailure(), HasSubstr("could not be executed"));
}

TEST_F(WorkerSupervisorTest, AUserThatFerrydCannotBecomeFailsTheJob) {
  if (getuid() == 0) {
    GTEST_SKIP() << "root can become everybody";
  }
  auto worker = Make("waits");
  worker->user = {getuid() + 1, getgid() + 1, true};
  auto opened = OpenWorkerProgram("tests/daemon/worker/hostile_worker");
  supervisor_->Start(worker, std::make_shared<UniqueFd>(std::move(*opened)), {});
  EXPECT_THAT(WaitForFailure(), HasSubstr("could not become uid"));
}

// The worker does not read: the messages wait here, and no other job does.
TEST_F(WorkerSupervisorTest, AWorkerThatReadsNothingFailsItsJobAndHoldsUpNobody) {
  Supervise(kShortNs);
  const auto worker = Start("reads-nothing");
  for (int i = 0; i < 10'000; ++i) {
    supervisor_->Send(worker, {MakeWorkerMessage(WorkerMessageKind::kEndRegion), {}, nullptr});
  }
  EXPECT_THAT(WaitForFailure(), HasSubstr("for more than 400 ms"));
}

// A descriptor that a stranger has passed to ferryd lies in its table for a moment. A child that
// had a copy would have to close it.
TEST_F(WorkerSupervisorTest, AWorkerNeedNotCloseWhatAStrangerHasPassed) {
  const auto files = StuckFiles::Mount();
  if (!files.ok()) {
    ASSERT_EQ(files.status().code(), ErrorCode::kUnsupported);
    GTEST_SKIP() << "needs a FUSE of its own: " << files.status().message();
  }
  const StatusOr<int> file = (*files)->Open();
  ASSERT_TRUE(file.ok()) << file.status().message();
  const auto worker = Start("ends");
  EXPECT_THAT(WaitForFailure(), HasSubstr("ended with status 7"));
  EXPECT_EQ((*files)->waiting(), 0);
}

TEST_F(WorkerSupervisorTest, EndsAWorkerThatDoesNotLeaveByItself) {
  const auto worker = Start("waits");
  supervisor_->End(worker);
  supervisor_.reset();  // returns once it is gone
  EXPECT_TRUE(failures_.empty());
}

TEST_F(WorkerSupervisorTest, SaysWhereItLookedForTheProgram) {
  const auto opened = OpenWorkerProgram("");
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.status().code(), ErrorCode::kNotFound);
  EXPECT_THAT(opened.status().message(),
              testing::AllOf(HasSubstr("/ferry-worker"), HasSubstr("/../libexec/ferry/"),
                             HasSubstr("/../lib/ferry/"), HasSubstr("worker_program")));
}

// ---- A user database that does not answer ----

TEST_F(WorkerSupervisorTest, OtherJobsDoNotWaitForTheUserDatabase) {
  const auto served = Start("silent");
  AnswerNot();
  const auto waiting = Start("waits");
  supervisor_->Condemn(served, "is no longer wanted");
  EXPECT_THAT(WaitForFailure(), HasSubstr("is no longer wanted"));
  AnswerAll();
}

TEST_F(WorkerSupervisorTest, ItsJobFailsWithWordsForIt) {
  Supervise(kShortNs);
  AnswerNot();
  const auto waiting = Start("waits");
  EXPECT_THAT(WaitForFailure(),
              HasSubstr("was not started: the system's user database has not told the groups"));
  AnswerAll();
}

TEST_F(WorkerSupervisorTest, AJobMayEndMeanwhile) {
  AnswerNot();
  const auto ended = Start("ended");
  supervisor_->End(ended);
  AnswerAll();
  const auto next = Start("not_a_job");  // served after the first one's answer
  supervisor_->Condemn(next, "is no longer wanted");
  EXPECT_THAT(WaitForFailure(), HasSubstr("job not_a_job "));
}

}  // namespace
}  // namespace ferry::daemon
