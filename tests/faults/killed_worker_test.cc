// When its worker process is killed or stopped, a job alone fails, by name and in bounded time; and
// a worker never outlives its daemon.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tests/faults/fault_fixture.h"
#include "tests/support/processes.h"

namespace ferry::faults {
namespace {

namespace fs = std::filesystem;
using e2e::Command;
using e2e::CommandResult;
using e2e::Eventually;
using e2e::WithoutCapabilities;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

constexpr char kFerryrun[] = "tools/ferryrun/ferryrun";
constexpr char kTraffic[] = "tests/faults/ranks/traffic";

bool IsGone(pid_t pid) {
  return Eventually([pid] { return kill(pid, 0) != 0; });
}

// One daemon, two jobs.
class WorkerFaultTest : public testing::TestWithParam<int> {
 protected:
  void SetUp() override { StartDaemon(); }
  void TearDown() override {
    daemon_->Signal(SIGTERM);
    EXPECT_EQ(daemon_->WaitCleanly().exit_code, 0);
  }

  void StartDaemon() {
    daemon_ = e2e::StartDaemon(WithoutCapabilities({"daemon/ferryd", "--worker_mode=process",
                                                    "--operation_timeout_ms=1500"}),
                               run_directory());
  }
  std::string run_directory() const { return directory_ / "run"; }
  std::unique_ptr<Command> Traffic() const {
    auto command = std::make_unique<Command>(
        WithoutCapabilities({kFerryrun, "--run_directory=" + run_directory(), "--no-label",
                             "--keep-going", "-n", "2", kTraffic, "exchange", "1000000"}));
    EXPECT_TRUE(UnderWay(command.get(), 2));
    return command;
  }

  const e2e::TempDirectory directory_;
  std::unique_ptr<Command> daemon_;
};

TEST_P(WorkerFaultTest, FailsItsOwnJobAndNoOther) {
  const auto broken = Traffic();
  const std::vector<pid_t> first = tests::WorkersOf(daemon_->pid());
  ASSERT_THAT(first, SizeIs(1));
  const auto other = Traffic();
  ASSERT_THAT(tests::WorkersOf(daemon_->pid()), SizeIs(2));

  kill(first[0], GetParam());
  const CommandResult result = broken->Wait();
  EXPECT_NE(result.exit_code, 0);
  ExpectErrors(result.out, 2, {kWorkerDied});
  EXPECT_THAT(e2e::SortedLines(result.out), SizeIs(4)) << result.out;  // "under way", too
  EXPECT_TRUE(IsGone(first[0]));

  // The other job goes on, and a new one starts.
  const CommandResult hello = e2e::RunCommand(WithoutCapabilities(
      {kFerryrun, "--run_directory=" + run_directory(), "-n", "2", "examples/hello/hello"}));
  EXPECT_EQ(hello.exit_code, 0) << hello.err;
  other->Signal(SIGTERM);
  const CommandResult ended = other->Wait();
  EXPECT_THAT(ended.out, Not(HasSubstr(": error")));
  EXPECT_TRUE(Eventually([&] { return tests::WorkersOf(daemon_->pid()).empty(); }));
}

INSTANTIATE_TEST_SUITE_P(Signals, WorkerFaultTest, testing::Values(SIGKILL, SIGSTOP),
                         [](const auto& info) {
                           return info.param == SIGKILL ? "Killed" : "Stopped";
                         });

using WorkerEndTest = WorkerFaultTest;

TEST_P(WorkerEndTest, ComesWithFerryds) {
  const auto job = Traffic();
  const std::vector<pid_t> workers = tests::WorkersOf(daemon_->pid());
  ASSERT_THAT(workers, SizeIs(1));
  kill(workers[0], GetParam());  // a stopped worker cannot even see the hang-up
  daemon_->Signal(SIGKILL);
  EXPECT_TRUE(IsGone(workers[0]));
  job->Wait();
  daemon_->Wait();
  fs::remove_all(run_directory());
  StartDaemon();  // for TearDown
}

INSTANTIATE_TEST_SUITE_P(Signals, WorkerEndTest, testing::Values(SIGCONT, SIGSTOP));

}  // namespace
}  // namespace ferry::faults
