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
#include "tests/e2e/command.h"
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

}  // namespace
}  // namespace ferry::e2e
