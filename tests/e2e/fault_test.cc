// What a job's survivors are told when a rank or a daemon is killed, and what stays behind:
// nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "tests/e2e/command.h"

namespace ferry::e2e {
namespace {

namespace fs = std::filesystem;
using testing::AnyOf;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr char kFerryrun[] = "tools/ferryrun/ferryrun";
constexpr char kFerryd[] = "daemon/ferryd";
constexpr char kTraffic[] = "tests/e2e/ranks/traffic";

// As the library numbers them (ferry.h).
constexpr char kPeerDied[] = ": error 14: ";
constexpr char kDaemonDied[] = ": error 15: ";
constexpr char kNodeUnreachable[] = ": error 16: ";

std::vector<std::string> Traffic(std::vector<std::string> flags,
                                 const std::vector<std::string>& what) {
  std::vector<std::string> arguments = {kFerryrun, "--private",  "--ferryd",
                                        kFerryd,   "--no-label", "--keep-going"};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  arguments.push_back(kTraffic);
  arguments.insert(arguments.end(), what.begin(), what.end());
  return arguments;
}

void WaitUntilUnderWay(Command* command, int ranks) {
  for (int rank = 0; rank < ranks; ++rank) {
    ASSERT_TRUE(command->WaitForOutput("rank " + std::to_string(rank) + ": under way\n"));
  }
}

// The ranks' own processes; ferryrun's command line names the program too.
std::vector<pid_t> RankPids(const Command& command) {
  std::vector<pid_t> pids = command.Find(kTraffic);
  std::erase(pids, command.pid());
  std::sort(pids.begin(), pids.end());  // in the order of their start, as pids have not wrapped
  return pids;
}

std::vector<std::string> Errors(const CommandResult& result) {
  std::vector<std::string> lines = SortedLines(result.out);
  std::erase_if(lines, [](const std::string& line) { return line.ends_with(": under way"); });
  return lines;
}

struct Case {
  std::vector<std::string> flags;
  std::vector<std::string> what;
};

class RankDeathTest : public testing::TestWithParam<Case> {};

TEST_P(RankDeathTest, IsAnErrorForTheOthers) {
  Command command(Traffic(GetParam().flags, GetParam().what));
  WaitUntilUnderWay(&command, 3);
  const std::vector<pid_t> ranks = RankPids(command);
  ASSERT_THAT(ranks, SizeIs(3));
  kill(ranks[1], SIGKILL);
  const CommandResult result = command.Wait();
  EXPECT_EQ(result.exit_code, 128 + SIGKILL);
  EXPECT_THAT(result.err,
              HasSubstr("rank 1 (pid " + std::to_string(ranks[1]) + ") was killed by SIGKILL"));
  EXPECT_THAT(Errors(result), SizeIs(2));
  EXPECT_THAT(Errors(result), Each(HasSubstr(kPeerDied)));
  EXPECT_THAT(command.Leftovers(), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Traffic, RankDeathTest,
                         testing::Values(Case{{"-n", "3"}, {"exchange", "8"}},
                                         Case{{"-n", "3"}, {"exchange", "1000000"}},
                                         Case{{"-n", "3", "--nodes", "3"}, {"exchange", "8"}},
                                         Case{{"-n", "3", "--nodes", "3"},
                                              {"exchange", "1000000"}}));

class DaemonDeathTest : public testing::TestWithParam<std::vector<std::string>> {};

TEST_P(DaemonDeathTest, IsAnErrorForAllRanks) {
  Command command(Traffic({"-n", "4", "--nodes", "2"}, GetParam()));
  WaitUntilUnderWay(&command, 4);
  const std::vector<pid_t> daemons = command.Find("--ready-fd");
  ASSERT_THAT(daemons, SizeIs(2));
  kill(*std::max_element(daemons.begin(), daemons.end()), SIGKILL);
  const CommandResult result = command.Wait();
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.err, HasSubstr("was killed by SIGKILL"));
  EXPECT_THAT(Errors(result), SizeIs(4));
  EXPECT_THAT(Errors(result), Each(AnyOf(HasSubstr(kDaemonDied), HasSubstr(kNodeUnreachable),
                                         HasSubstr(kPeerDied))));
  EXPECT_THAT(command.Leftovers(), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Traffic, DaemonDeathTest,
                         testing::Values(std::vector<std::string>{"exchange", "8"},
                                         std::vector<std::string>{"exchange", "1000000"}));

TEST(DaemonDeathWhileAsleepTest, WakesTheRanks) {
  Command command(Traffic({"-n", "3", "--grace-ms", "3000"}, {"wait"}));
  WaitUntilUnderWay(&command, 3);
  const std::vector<pid_t> daemons = command.Find("--ready-fd");
  ASSERT_THAT(daemons, SizeIs(1));
  kill(daemons[0], SIGKILL);
  const CommandResult result = command.Wait();
  // Rank 0 never calls Ferry again: ferryrun ends it.
  EXPECT_THAT(Errors(result), SizeIs(2));
  EXPECT_THAT(Errors(result), Each(HasSubstr(kDaemonDied)));
  EXPECT_THAT(command.Leftovers(), IsEmpty());
}

TEST(FerryrunDeathTest, EndsRanksAndDaemons) {
  Command command(Traffic({"-n", "4", "--nodes", "2"}, {"exchange", "1000"}));
  WaitUntilUnderWay(&command, 4);
  command.Signal(SIGKILL);
  command.Wait();
  // Only the empty directory that the next ferryrun removes: no process, no socket.
  EXPECT_THAT(command.Leftovers(),
              testing::ElementsAre(testing::MatchesRegex(".*/ferryrun-[^/]*")));
}

// How many objects of shared memory a process holds open.
size_t CountMemfds(pid_t pid) {
  size_t count = 0;
  std::error_code ignored;
  for (const auto& entry :
       fs::directory_iterator("/proc/" + std::to_string(pid) + "/fd", ignored)) {
    count += fs::read_symlink(entry, ignored).string().starts_with("/memfd:") ? 1 : 0;
  }
  return count;
}

TEST(DaemonTest, ServesOnAndForgetsRanksThatWereKilled) {
  std::string directory = "/tmp/ferry-fault-XXXXXX";
  ASSERT_NE(mkdtemp(directory.data()), nullptr);
  const std::string run_directory = directory + "/run";
  Command daemon({kFerryd, "--run_directory=" + run_directory});
  ASSERT_TRUE(Eventually([&] { return fs::exists(run_directory + "/ferryd.json"); }));
  const size_t memfds = CountMemfds(daemon.pid());

  Command broken({kFerryrun, "--run_directory=" + run_directory, "--no-label", "--keep-going", "-n",
                  "3", kTraffic, "exchange", "100000"});
  WaitUntilUnderWay(&broken, 3);
  const std::vector<pid_t> ranks = RankPids(broken);
  ASSERT_THAT(ranks, SizeIs(3));
  kill(ranks[2], SIGKILL);
  EXPECT_EQ(broken.Wait().exit_code, 128 + SIGKILL);
  EXPECT_THAT(broken.Leftovers(), IsEmpty());

  const CommandResult next = RunCommand(
      {kFerryrun, "--run_directory=" + run_directory, "-n", "3", "examples/hello/hello"});
  EXPECT_EQ(next.exit_code, 0) << next.err;
  EXPECT_TRUE(Eventually([&] { return CountMemfds(daemon.pid()) <= memfds; }))
      << CountMemfds(daemon.pid()) << " memfds are left of " << memfds;

  daemon.Signal(SIGTERM);
  EXPECT_EQ(daemon.Wait().exit_code, 0);
  EXPECT_FALSE(fs::exists(run_directory));
  EXPECT_THAT(daemon.Leftovers(), IsEmpty());
  fs::remove_all(directory);
}

}  // namespace
}  // namespace ferry::e2e
