// ferryrun and ferryctl with ferryd's real control plane and a data plane that does nothing: the
// cost and the leftovers of a job whose ranks never call Ferry.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/e2e/command.h"

namespace ferry::e2e {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

constexpr char kFerryrun[] = "tools/ferryrun/ferryrun";
constexpr char kFerryctl[] = "tools/ferryctl/ferryctl";
constexpr char kFerryd[] = "tests/daemon/ferryd_for_test";

Words Script(const Words& flags, const std::string& script) {
  return Joined(Joined({kFerryrun, "--private", "--ferryd", kFerryd}, flags),
                {"sh", "-c", script, kFerryctl});
}

TEST(ControlPlaneTest, RunsAJobOnTwoNodesAndLeavesNothing) {
  const CommandResult result =
      RunCleanly(Script({"-l", "-n", "3", "--nodes", "2"}, "echo $FERRY_RANK on $FERRY_NODE"));
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.err, "");
  EXPECT_THAT(SortedLines(result.out), ElementsAre("[0] 0 on 0", "[1] 1 on 0", "[2] 2 on 1"));
}

TEST(ControlPlaneTest, EachDaemonKnowsTheJobAndTheOtherDaemon) {
  // `$0` is ferryctl, which finds the rank's own daemon in its environment.
  const CommandResult result =
      RunCleanly(Script({"-n", "2", "--nodes", "2", "--no-label"},
                        "test $FERRY_RANK = 1 || exec \"$0\" status --json"));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto status = json::parse(result.out, nullptr, false);
  ASSERT_TRUE(status.is_object()) << result.out;
  ASSERT_THAT(status["jobs"], SizeIs(1));
  EXPECT_EQ(status["jobs"][0]["size"], 2);
  EXPECT_EQ(status["jobs"][0]["local"], 1);
  EXPECT_EQ(status["node"]["name"], "node0");
  ASSERT_THAT(status["peers"], SizeIs(1));
}

TEST(ControlPlaneTest, AnswersEveryQuestion) {
  for (const char* question : {"status", "sessions", "counters", "nics", "gpus", "version"}) {
    const CommandResult result =
        RunCommand(Script({"--no-label"}, std::string("exec \"$0\" ") + question));
    EXPECT_EQ(result.exit_code, 0) << question << ": " << result.err;
    EXPECT_NE(result.out, "") << question;
  }
}

TEST(ControlPlaneTest, NamesAnUnknownRank) {
  const CommandResult result = RunCommand(Script({"--no-label"}, "exec \"$0\" why nosuchjob.7"));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, AllOf(HasSubstr("ferryctl: "), HasSubstr("nosuchjob")));
}

TEST(ControlPlaneTest, ADaemonThatIsKilledEndsTheJobAndLeavesNothing) {
  Command command(Script({"-n", "2", "--nodes", "2", "--grace-ms", "100"},
                         "echo ready $FERRY_RANK; exec sleep 100"));
  ASSERT_TRUE(command.WaitForOutput("ready 0"));
  ASSERT_TRUE(command.WaitForOutput("ready 1"));
  const std::vector<pid_t> daemons = command.Find("--ready-fd");
  ASSERT_THAT(daemons, SizeIs(2));
  kill(daemons[1], SIGKILL);
  const CommandResult result = command.WaitCleanly();
  EXPECT_EQ(result.exit_code, 128 + SIGTERM);
  EXPECT_THAT(result.err, HasSubstr("was killed by SIGKILL while the job ran"));
}

TEST(ControlPlaneTest, DaemonsEndWithAKilledFerryrun) {
  Command command(Script({"-n", "2", "--nodes", "2"}, "echo ready; exec sleep 100"));
  ASSERT_TRUE(command.WaitForOutput("ready"));
  command.Signal(SIGKILL);
  command.WaitCleanly();
}

// A daemon that belongs to no job, and gives ranks little time when a signal stops it.
class DrainTest : public testing::Test {
 protected:
  Words Ferryctl(const Words& arguments) const {
    return Joined({kFerryctl, "--run_directory=" + directory_ / "run"}, arguments);
  }
  std::unique_ptr<Command> StartJob(const std::string& script) const {
    auto job = std::make_unique<Command>(
        Words{kFerryrun, "--run_directory=" + directory_ / "run", "-n", "1", "sh", "-c", script});
    EXPECT_TRUE(job->WaitForOutput("here"));
    return job;
  }

  const TempDirectory directory_;
  const std::unique_ptr<Command> daemon_ =
      StartDaemon({kFerryd, "--drain_timeout_ms=100"}, directory_ / "run");
};

// The jobs run longer than any answer may take.
TEST_F(DrainTest, WaitsForAsLongAsJobsRunAndSaysSo) {
  const auto job = StartJob("echo here; exec sleep 4");
  Command drain(Ferryctl({"drain"}));
  ASSERT_TRUE(drain.WaitForOutput("takes no new jobs; waiting for 0 ranks of 1 job"));
  const CommandResult result = drain.Wait();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("no job runs any more\n"));
  EXPECT_EQ(job->Wait().exit_code, 0);
  EXPECT_THAT(RunCommand(Ferryctl({"drain"})).out, HasSubstr("takes no new jobs; none runs\n"));
}

TEST_F(DrainTest, IsTakenBackByUndrain) {
  const auto job = StartJob("echo here; exec sleep 100");
  Command drain(Ferryctl({"drain"}));
  ASSERT_TRUE(drain.WaitForOutput("takes no new jobs; waiting for"));
  EXPECT_THAT(RunCommand(Ferryctl({"undrain"})).out, HasSubstr("takes new jobs again\n"));
  const CommandResult waited = drain.Wait();
  EXPECT_EQ(waited.exit_code, 1);
  EXPECT_THAT(waited.err, HasSubstr("takes new jobs again"));
  EXPECT_THAT(RunCommand(Ferryctl({"undrain"})).out, HasSubstr("was not drained\n"));
  EXPECT_EQ(RunCommand({kFerryrun, "--run_directory=" + directory_ / "run", "true"}).exit_code, 0);
}

TEST_F(DrainTest, NeedNotBeWaitedFor) {
  const auto job = StartJob("echo here; exec sleep 100");
  const CommandResult result = RunCommand(Ferryctl({"drain", "--no-wait"}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("0 ranks of 1 job still here\n"));
}

TEST_F(DrainTest, AShutdownLeavesJobsTheirTime) {
  const auto job =
      StartJob("echo here; until test -e " + directory_ / "go" + "; do sleep 0.05; done");
  const CommandResult result = RunCommand(Ferryctl({"shutdown"}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out,
              HasSubstr("takes no new jobs and stops once 0 ranks of 1 job have ended"));
  const auto status = [&] {
    return json::parse(RunCommand(Ferryctl({"status", "--json"})).out, nullptr, false);
  };
  const json first = status();
  ASSERT_TRUE(first.is_object());
  EXPECT_EQ(first["state"], "draining");
  EXPECT_TRUE(Eventually([&] {  // for several times drain_timeout_ms
    const json now = status();
    return now.is_object() && now["uptime_ms"] > first["uptime_ms"].get<uint64_t>() + 500;
  }));
  std::ofstream(directory_ / "go") << "";
  EXPECT_EQ(job->Wait().exit_code, 0);
  EXPECT_EQ(daemon_->Wait().exit_code, 0);
}

TEST_F(DrainTest, AShutdownAfterSoManySecondsWaitsNoLonger) {
  const auto job = StartJob("echo here; exec sleep 100");
  EXPECT_EQ(RunCommand(Ferryctl({"shutdown", "--after", "1", "--now"})).exit_code, 2);
  const CommandResult result = RunCommand(Ferryctl({"shutdown", "--after", "0"}));
  EXPECT_THAT(result.out, HasSubstr("at the latest in 0 s"));
  EXPECT_EQ(daemon_->Wait().exit_code, 0);
}

// ---- Private daemons, from another terminal ----

class FoundTest : public testing::Test {
 protected:
  void Start(const std::string& nodes) {
    job_ = std::make_unique<Command>(
        Script({"-n", "2", "--nodes", nodes, "--name", "night"}, "echo ready; exec sleep 100"));
    ASSERT_TRUE(job_->WaitForOutput("ready"));
    const json list = json::parse(Ferryctl({"--json"}).out, nullptr, false);
    for (const json& daemon : list["daemons"]) {
      const std::string directory = daemon["run_directory"];
      if (directory.starts_with(job_->runtime_directory())) {
        directories_.push_back(directory);
        EXPECT_EQ(daemon["kind"], "private");
        EXPECT_EQ(daemon["jobs"].size(), 1U);
        id_ = daemon["jobs"][0];
      }
    }
  }
  // Runs ferryctl without telling it where its daemon is.
  CommandResult Ferryctl(const Words& arguments) const {
    return RunCommand(Joined({kFerryctl}, arguments), {"TMPDIR=" + job_->runtime_directory()});
  }

  std::unique_ptr<Command> job_;
  Words directories_;
  std::string id_;
};

TEST_F(FoundTest, TheyAreListedWithTheirJobs) {
  Start("1");
  ASSERT_THAT(directories_, SizeIs(1));
  const CommandResult list = Ferryctl({});
  EXPECT_EQ(list.exit_code, 0) << list.err;
  EXPECT_THAT(list.out,
              AllOf(HasSubstr("private"), HasSubstr("night"), HasSubstr(directories_[0])));
  const CommandResult status = Ferryctl({"status"});
  EXPECT_EQ(status.exit_code, 0) << status.err;
  EXPECT_THAT(status.out, AllOf(HasSubstr("run directory " + directories_[0]), HasSubstr("night")));
  const CommandResult why = Ferryctl({"why"});
  EXPECT_EQ(why.exit_code, 0) << why.err;
}

TEST_F(FoundTest, AJobsDaemonsAreFoundByItsName) {
  Start("2");
  ASSERT_THAT(directories_, SizeIs(2));
  const auto all = json::parse(Ferryctl({"-j", id_, "--json"}).out, nullptr, false);
  ASSERT_THAT(all["daemons"], SizeIs(2));
  for (const json& status : all["daemons"]) {
    ASSERT_THAT(status["jobs"], SizeIs(1));
    EXPECT_EQ(status["jobs"][0]["job_id"], id_);
  }
  EXPECT_THAT(Ferryctl({"-j", id_}).out,
              AllOf(HasSubstr("---- " + directories_[0]), HasSubstr("---- " + directories_[1])));
  const CommandResult why = Ferryctl({"why", id_});
  EXPECT_EQ(why.exit_code, 0) << why.err;
  EXPECT_THAT(why.out, HasSubstr("has not attached"));
  EXPECT_THAT(Ferryctl({"why", "night"}).out, HasSubstr("has not attached"));
  EXPECT_EQ(Ferryctl({"-j", "night", "sessions"}).exit_code, 0);
  const CommandResult unknown = Ferryctl({"-j", "nosuch", "status"});
  EXPECT_EQ(unknown.exit_code, 1);
  EXPECT_THAT(unknown.err, HasSubstr("no ferryd here has a job nosuch of yours"));
}

TEST_F(FoundTest, AnOrderNeedsOneDaemon) {
  Start("2");
  ASSERT_THAT(directories_, SizeIs(2));
  const CommandResult unclear = Ferryctl({"-j", id_, "drain", "--no-wait"});
  EXPECT_EQ(unclear.exit_code, 2);
  EXPECT_THAT(unclear.err, HasSubstr("choose by\n  --run_directory=" + directories_[0] + "\n"));
  EXPECT_EQ(Ferryctl({"--run_directory=" + directories_[1], "drain", "--no-wait"}).exit_code, 0);
}

TEST(ControlPlaneTest, AShutdownUnderAJobIsReported) {
  const CommandResult result =
      RunCleanly(Script({"--grace-ms", "100"}, "\"$0\" shutdown --now; exec sleep 100"));
  EXPECT_EQ(result.exit_code, 128 + SIGTERM);
  EXPECT_THAT(result.out, HasSubstr("stops now"));
  EXPECT_THAT(result.err, HasSubstr("ferryd of node 0"));
}

}  // namespace
}  // namespace ferry::e2e
