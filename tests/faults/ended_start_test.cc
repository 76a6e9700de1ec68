// Jobs that end while they start: by a signal to ferryrun, by a rank that fails before the others
// have come, and by the death of their daemon. The daemon that they share with another job, of
// another user where that can be, goes on, and so does that job.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <thread>

#include "tests/faults/fault_fixture.h"

namespace ferry::faults {
namespace {

namespace fs = std::filesystem;
using e2e::Command;
using e2e::CommandResult;
using e2e::Words;
using testing::HasSubstr;
using testing::Not;

// FERRY_FAULT_ROUNDS: the number of jobs that end early.
int Rounds() { return Setting("FERRY_FAULT_ROUNDS", 24); }
constexpr char kAnn[] = "1234567";
constexpr char kBob[] = "7654321";

// Programs that every user can read, and a daemon.
class EndedStartTest : public testing::Test {
 protected:
  void SetUp() override {
    fs::permissions(directory_.path(), fs::perms(0755));
    for (const char* file : {"daemon/ferryd", "daemon/ferry-worker", "tools/ferryrun/ferryrun",
                             "tests/faults/ranks/mixed", "tests/e2e/ranks/ends",
                             "client/libferry.so.0", "client/direct/libferry_direct.so"}) {
      fs::copy_file(file, Path(fs::path(file).filename()));
    }
    daemon_ = e2e::StartDaemon({Path("ferryd")}, Path("run"), kDaemonSeconds);
  }
  void TearDown() override {
    daemon_->Signal(SIGTERM);
    const CommandResult result = daemon_->WaitCleanly();
    EXPECT_EQ(result.exit_code, 0) << "signal " << result.signal << ": " << result.err;
  }

  std::string Path(const std::string& name) const { return directory_ / name; }
  // A job on the daemon, of that user if this one can become another.
  std::unique_ptr<Command> JobOf(const char* user, const std::string& ranks,
                                 const std::string& program) const {
    const std::string become = geteuid() == 0 ? std::string("setpriv --reuid=") + user +
                                                    " --regid=" + user + " --clear-groups "
                                              : "";
    return std::make_unique<Command>(
        Words{"/bin/sh", "-c",
              "cd / && exec " + become + Path("ferryrun") + " --no-label --run_directory=" +
                  Path("run") + " -n " + ranks + " /bin/sh -c '" + program + "'"},
        Words{"LD_LIBRARY_PATH=" + directory_.path()}, "", kDaemonSeconds);
  }
  std::string RoundsOf(const std::string& out) const {
    const size_t last = out.rfind(": round ");
    return last == out.npos ? "" : out.substr(last);
  }

  static constexpr unsigned kDaemonSeconds = 3000;
  const e2e::TempDirectory directory_;
  std::unique_ptr<Command> daemon_;
};

TEST_F(EndedStartTest, LeavesTheDaemonAndItsOtherJobAlone) {
  std::mt19937 random(20'26);
  const auto between = [&](int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(random);
  };
  const auto other = JobOf(kBob, "2", "exec " + Path("mixed") + " 0");
  ASSERT_TRUE(UnderWay(other.get(), 2));
  const std::string ends = "exec " + Path("ends") + " finalize";
  int well = 0;
  for (int round = 0; round < Rounds() && !HasFailure(); ++round) {
    const bool fails = round % 3 == 2;
    const auto job =
        JobOf(round % 2 == 0 ? kAnn : kBob, "8",
              fails ? "test $FERRY_RANK = " + std::to_string(between(0, 7)) + " && exit 1; " + ends
                    : ends);
    if (!fails) {
      std::this_thread::sleep_for(std::chrono::milliseconds(between(15, 150)));
      job->Signal(round % 2 == 0 ? SIGTERM : SIGINT);
    }
    const CommandResult result = job->WaitCleanly();
    well += result.exit_code == 0 ? 1 : 0;
    // "ferryd" is in the words of a job whose daemon has died.
    EXPECT_THAT(result.err, Not(HasSubstr("ferryd closed the connection"))) << round;
    ASSERT_THAT(other->Output(), Not(HasSubstr("error"))) << round;
  }
  std::printf("%d of %d jobs had ended well before their signal\n", well, Rounds());
  const std::string before = RoundsOf(other->Output());
  EXPECT_TRUE(e2e::Eventually([&] { return RoundsOf(other->Output()) != before; }));
  other->Signal(SIGTERM);
  const CommandResult result = other->WaitCleanly();
  EXPECT_EQ(result.exit_code, 128 + SIGTERM) << result.err;
}

// The other way round: every rank that has begun to start ends, and says why, or is ended.
TEST_F(EndedStartTest, EndsWithItsDaemon) {
  std::mt19937 random(20'27);
  for (int round = 0; round < Rounds() / 4 && !HasFailure(); ++round) {
    Command job(PrivateJob(4, 1, {}, {"tests/faults/ranks/traffic", "exchange", "1000"}));
    std::vector<pid_t> daemons;
    ASSERT_TRUE(e2e::Eventually([&] { return !(daemons = job.Find("--ready-fd")).empty(); }));
    std::this_thread::sleep_for(
        std::chrono::milliseconds(std::uniform_int_distribution<int>(0, 150)(random)));
    kill(daemons.front(), SIGKILL);
    const CommandResult result = job.WaitCleanly();
    EXPECT_GT(result.exit_code, 0) << result.signal;
    EXPECT_THAT(result.err, HasSubstr("ferryd"));
    EXPECT_THAT(result.err + result.out, Not(HasSubstr("Connection reset")));
  }
}

}  // namespace
}  // namespace ferry::faults
