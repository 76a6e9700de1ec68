// ferryrun says what its ranks wait for before it ends them, and is not held up by that.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/e2e/command.h"

namespace ferry::e2e {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

constexpr char kHeading[] = "ferryrun: what ranks wait for, as `ferryctl why` tells it:\n";
// Rank 1 waits for rank 0.
constexpr char kRow[] = "ferryrun:    +1 .*waits.*rank 0";

// Rank 1 of two waits for what rank 0 never sends.
Words Job(const Words& flags) {
  return PrivateJob(Joined({"-n", "2"}, flags), {"tests/e2e/ranks/waits", "unmatched"});
}

void AwaitTheWait(Command* job) {
  ASSERT_TRUE(UnderWay(job, 2));
  const Words daemons = Daemons(*job);
  ASSERT_THAT(daemons, SizeIs(1));
  ASSERT_TRUE(Eventually([&daemons] {
    const CommandResult why =
        RunCommand({"tools/ferryctl/ferryctl", "--run_directory=" + daemons[0], "why"});
    return why.exit_code == 0 && why.out.find("no rank waits") == why.out.npos;
  }));
}

TEST(FerryrunWhyTest, AnInterruptTellsIt) {
  Command job(Job({}));
  AwaitTheWait(&job);
  job.Signal(SIGINT);
  const CommandResult result = job.WaitCleanly();
  EXPECT_EQ(result.exit_code, 128 + SIGINT);
  EXPECT_THAT(result.err, HasSubstr(kHeading));
  EXPECT_THAT(result.err, ContainsRegex(kRow));
}

TEST(FerryrunWhyTest, ATimeoutTellsIt) {
  const CommandResult result = RunCleanly(Job({"--timeout", "10"}));
  EXPECT_EQ(result.exit_code, 124);
  EXPECT_THAT(result.err, HasSubstr(kHeading));
  EXPECT_THAT(result.err, ContainsRegex(kRow));
}

// An agent asks its own daemon.
TEST(FerryrunWhyTest, AnotherHostTellsItToo) {
  const TempDirectory folder;
  const std::string ssh = folder / "ssh";
  std::ofstream(ssh) << "#!/bin/sh\nshift\nexec /bin/sh -c \"exec $*\"\n";
  std::filesystem::permissions(ssh, std::filesystem::perms::owner_all);
  Command job(Job({"--rsh", ssh, "--network", "lo", "-hosts", "10.99.0.1:2"}));
  AwaitTheWait(&job);
  job.Signal(SIGINT);
  const CommandResult result = job.WaitCleanly();
  EXPECT_EQ(result.exit_code, 128 + SIGINT);
  EXPECT_THAT(result.err, HasSubstr("ferryrun: what ranks wait for on host 10.99.0.1, as"));
  EXPECT_THAT(result.err, ContainsRegex(kRow));
}

// Its daemon does not answer.
TEST(FerryrunWhyTest, ADaemonThatHangsHoldsNothingUp) {
  Command job(Job({"--grace-ms", "500"}));
  AwaitTheWait(&job);
  for (const pid_t daemon : job.Find("--ready-fd")) {
    kill(daemon, SIGSTOP);
  }
  job.Signal(SIGINT);
  ASSERT_TRUE(job.WaitForError("interrupted: passing SIGINT on to the 2 ranks"));
  job.Signal(SIGINT);  // the second one ends at once
  const CommandResult result = job.Wait();
  EXPECT_EQ(result.exit_code, 128 + SIGINT);
  EXPECT_THAT(result.err, HasSubstr("interrupted again: killing the 2 ranks"));
  EXPECT_THAT(result.err, Not(HasSubstr(kHeading)));
}

TEST(FerryrunWhyTest, WithoutAnAnswerTheInterruptGoesOnAllTheSame) {
  Command job(Job({"--grace-ms", "500"}));
  AwaitTheWait(&job);
  for (const pid_t daemon : job.Find("--ready-fd")) {
    kill(daemon, SIGSTOP);
  }
  job.Signal(SIGINT);
  const CommandResult result = job.Wait();
  EXPECT_EQ(result.exit_code, 128 + SIGINT);
  EXPECT_THAT(result.err, Not(HasSubstr(kHeading)));
}

}  // namespace
}  // namespace ferry::e2e
