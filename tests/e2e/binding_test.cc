// The cores of ranks, with daemons and libferry: ferryd's threads keep off those of ranks that are
// bound, and ranks that are not bound leave a core that they share.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "common/topology/affinity.h"
#include "common/topology/discover.h"
#include "tests/e2e/command.h"
#include "tests/e2e/hosts_here.h"
#include "tests/e2e/two_cores.h"

namespace ferry::e2e {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class CoresTest : public TwoCoresTest {
 protected:
  // A job that may use two cores.
  Words Job(const Words& placement, const Words& program) const {
    return InOwnNetwork(On(both_, PrivateJob(placement, program)));
  }
};

// The CPUs on which the process's threads may run, but for those that start processes of jobs.
std::set<std::string> CpusOfThreads(pid_t process) {
  std::set<std::string> found;
  std::error_code error;
  const std::string tasks = "/proc/" + std::to_string(process) + "/task";
  for (const auto& task : std::filesystem::directory_iterator(tasks, error)) {
    std::string name;
    std::getline(std::ifstream(task.path() / "comm"), name);
    const auto cpus = topology::AffinityOf(std::stoi(task.path().filename().string()));
    if (name != "ferry-spawner" && cpus.ok()) {
      found.insert(cpus->Text());
    }
  }
  return found;
}

TEST_F(CoresTest, ThreadsOfTheDaemonKeepOffTheCoresOfRanks) {
  Command job(Job({"-n", "1", "--bind-to", "core"}, {"tests/e2e/ranks/waits", "unmatched"}));
  ASSERT_TRUE(UnderWay(&job, 1));
  const std::vector<pid_t> daemons = job.Find("--ready-fd");
  ASSERT_EQ(daemons.size(), 1U);
  EXPECT_THAT(CpusOfThreads(daemons[0]), ElementsAre(second_.Text()));
  job.Signal(SIGTERM);
  job.WaitCleanly();
}

TEST_F(CoresTest, ThreadsOfTheDaemonRunAnywhereWhereRanksHaveAllCores) {
  Command job(Job({"-n", "2"}, {"tests/e2e/ranks/waits", "unmatched"}));
  ASSERT_TRUE(UnderWay(&job, 2));
  const std::vector<pid_t> daemons = job.Find("--ready-fd");
  ASSERT_EQ(daemons.size(), 1U);
  EXPECT_THAT(CpusOfThreads(daemons[0]), ElementsAre(both_.Text()));
  job.Signal(SIGTERM);
  job.WaitCleanly();
}

TEST_F(CoresTest, ThreadsOfTheDaemonStayWhereTheyAreTold) {
  Command job(Job({"-n", "1", "--bind-to", "core", "--progress_affinity", "none"},
                  {"tests/e2e/ranks/waits", "unmatched"}));
  ASSERT_TRUE(UnderWay(&job, 1));
  const std::vector<pid_t> daemons = job.Find("--ready-fd");
  ASSERT_EQ(daemons.size(), 1U);
  EXPECT_THAT(CpusOfThreads(daemons[0]), ElementsAre(both_.Text()));
  job.Signal(SIGTERM);
  job.WaitCleanly();
}

TEST_F(CoresTest, RanksThatAreNotBoundLeaveACoreThatTheyShare) {
  EXPECT_THAT(RunWell(Job({"-n", "2", "--bind-to", "none"}, {"tests/e2e/ranks/shared_core"})),
              HasSubstr("apart after "));
}

TEST_F(CoresTest, RanksThatBoundThemselvesStay) {
  RunWell(Job({"-n", "2", "--bind-to", "none"}, {"tests/e2e/ranks/shared_core", "quiet"}));
}

TEST_F(CoresTest, RanksThatShareACoreLeaveItToEachOtherInLoopsOfLooks) {
  EXPECT_THAT(RunWell(Job({"-n", "2", "--bind-to", "none"}, {"tests/e2e/ranks/looks"})),
              HasSubstr("ferry_iprobe: "));
}

// ---- A rankfile ---------------------------------------------------------------------------------

// Two hosts, each with a daemon; ranks that say where they are, and then meet.
class RankfileTest : public CoresTest {
 protected:
  Words RankfileJob(const std::string& lines) const {
    std::ofstream(folder_ / "ranks") << lines;
    return Job(Joined({"-l", "-rf", folder_ / "ranks"}, HostsHere(folder_, "10.99.0.1,10.99.0.2")),
               {"sh", "-c",
                "echo node $FERRY_NODE, CPUs $(grep Cpus_allowed_list /proc/self/status | "
                "cut -f 2); exec examples/hello/hello"});
  }
  // The number by which a rankfile knows the core of these CPUs.
  static std::string NumberOf(const topology::CpuSet& core) {
    const auto machine = topology::ReadThisMachine(topology::Devices::kLeaveOut);
    size_t number = 0;
    while (number < machine->cores.size() && !machine->cores[number].Intersects(core)) {
      ++number;
    }
    return std::to_string(number);
  }

  const TempDirectory folder_;
};

TEST_F(RankfileTest, RanksRunWhereItSays) {
  const std::string first = NumberOf(first_);
  const std::string second = NumberOf(second_);
  const std::string out = RunWell(
      RankfileJob("rank 0=10.99.0.2 slot=" + second + "   # the second core of the second host\n" +
                  "rank 2=10.99.0.2 slot=" + first + "\n" + "rank 1=10.99.0.1 slot=" + first + "," +
                  second + "\n" + "rank 3=+n0\n"));
  EXPECT_THAT(
      SortedLines(out),
      ElementsAre("[0] node 1, CPUs " + second_.Text(), "[0] rank 0 of 4: rank 3 says hello",
                  "[1] node 0, CPUs " + both_.Text(), "[1] rank 1 of 4: rank 0 says hello",
                  "[2] node 1, CPUs " + first_.Text(), "[2] rank 2 of 4: rank 1 says hello",
                  "[3] node 0, CPUs " + both_.Text(), "[3] rank 3 of 4: rank 2 says hello"));
}

TEST_F(RankfileTest, ACoreThatAHostLacksIsNamedAndNoRankStarts) {
  const CommandResult result =
      RunCleanly(RankfileJob("rank 0=10.99.0.1 slot=0\nrank 1=10.99.0.2 slot=999\n"));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, testing::AllOf(HasSubstr("10.99.0.2"), HasSubstr("slot=999: ")));
}

TEST_F(RankfileTest, AHostThatTheJobHasNotIsAMistake) {
  const CommandResult result = RunCleanly(RankfileJob("rank 0=10.99.0.3 slot=0\n"));
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("10.99.0.3"));
}

}  // namespace
}  // namespace ferry::e2e
