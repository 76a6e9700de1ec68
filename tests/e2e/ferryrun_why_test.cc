// ferryrun says what its ranks wait for before it ends them, and tells of deadlocks while they run;
// it is not held up by either.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "tests/e2e/command.h"
#include "tests/e2e/hosts_here.h"

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
  Command job(Job(HostsHere(folder, "10.99.0.1:2")));
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

// ---- Unasked ------------------------------------------------------------------------------------

// Two circles, one after the other, beside ranks that are well: each is told once, and nothing
// else.
void ExpectTwoCircles(const Words& flags, const std::string& who) {
  Command job(PrivateJob(Joined({"-n", "7", "--deadlock-check", "1"}, flags),
                         {"tests/e2e/ranks/waits", "circles"}));
  const std::string first = who + "deadlock: rank 0 waits for rank 1, which waits for rank 0: ";
  const std::string second = who + "deadlock: rank 2 waits for rank 3, which waits for rank 2: ";
  ASSERT_TRUE(UnderWay(&job, 7));
  ASSERT_TRUE(job.WaitForError(first));
  job.Signal(SIGUSR1);  // which goes to all ranks
  ASSERT_TRUE(job.WaitForError(second));
  job.Signal(SIGTERM);
  const std::string err = job.WaitCleanly().err;
  EXPECT_THAT(err,
              ContainsRegex(R"(rank 0 is in ferry_recv .*; `ferryctl why [0-9a-f]+\.0` tells)"));
  size_t count = 0;
  for (size_t at = err.find("deadlock"); at != err.npos; at = err.find("deadlock", at + 1)) {
    ++count;
  }
  EXPECT_EQ(count, 2U) << err;
}

TEST(FerryrunWhyTest, EachDeadlockIsToldOnce) { ExpectTwoCircles({}, "ferryrun: "); }

TEST(FerryrunWhyTest, EachDeadlockBetweenNodesIsToldOnce) {
  ExpectTwoCircles({"--nodes", "2", "--map-by", "node"}, "ferryrun: ");
}

TEST(FerryrunWhyTest, AnotherHostTellsItsDeadlocks) {
  const TempDirectory folder;
  ExpectTwoCircles(HostsHere(folder, "10.99.0.1:7"), "ferryrun: host 10.99.0.1: ");
}

TEST(FerryrunWhyTest, NobodyLooksForDeadlocksUnlessWanted) {
  Command job(
      PrivateJob({"-n", "2", "--deadlock-check", "0"}, {"tests/e2e/ranks/waits", "circle"}));
  ASSERT_TRUE(UnderWay(&job, 2));
  const pid_t launcher = job.pid();
  std::set<std::string> names;
  for (const auto& task :
       std::filesystem::directory_iterator("/proc/" + std::to_string(launcher) + "/task")) {
    std::string name;
    std::getline(std::ifstream(task.path() / "comm"), name);
    names.insert(name);
  }
  EXPECT_THAT(names, testing::Contains("ferryrun"));
  EXPECT_THAT(names, Not(testing::Contains("ferry-hangs")));
  job.Signal(SIGTERM);
  EXPECT_THAT(job.WaitCleanly().err, Not(HasSubstr("deadlock")));
}

}  // namespace
}  // namespace ferry::e2e
