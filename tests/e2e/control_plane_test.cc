// ferryrun and ferryctl with ferryd's real control plane, whose data plane does nothing: what a job
// costs and leaves when its ranks never call Ferry.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/e2e/command.h"

namespace ferry::e2e {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr char kFerryrun[] = "tools/ferryrun/ferryrun";
constexpr char kFerryctl[] = "tools/ferryctl/ferryctl";
constexpr char kFerryd[] = "tests/daemon/ferryd_for_test";

std::vector<std::string> Script(std::vector<std::string> flags, const std::string& script) {
  std::vector<std::string> arguments = {kFerryrun, "--private", "--ferryd", kFerryd};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  arguments.insert(arguments.end(), {"sh", "-c", script, kFerryctl});
  return arguments;
}

TEST(ControlPlaneTest, RunsAJobOnTwoNodesAndLeavesNothing) {
  Command command(Script({"-n", "3", "--nodes", "2"}, "echo $FERRY_RANK on $FERRY_NODE"));
  const CommandResult result = command.Wait();
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.err, "");
  EXPECT_THAT(SortedLines(result.out), ElementsAre("[0] 0 on 0", "[1] 1 on 0", "[2] 2 on 1"));
  EXPECT_THAT(command.Leftovers(), IsEmpty());
}

TEST(ControlPlaneTest, EachDaemonKnowsTheJobAndTheOtherDaemon) {
  // `$0` is ferryctl, which finds the rank's own daemon in its environment.
  Command command(Script({"-n", "2", "--nodes", "2", "--no-label"},
                         "test $FERRY_RANK = 1 || exec \"$0\" status --json"));
  const CommandResult result = command.Wait();
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto status = nlohmann::json::parse(result.out, nullptr, false);
  ASSERT_TRUE(status.is_object()) << result.out;
  ASSERT_THAT(status["jobs"], SizeIs(1));
  EXPECT_EQ(status["jobs"][0]["size"], 2);
  EXPECT_EQ(status["jobs"][0]["local"], 1);
  EXPECT_EQ(status["node"]["name"], "node0");
  ASSERT_THAT(status["peers"], SizeIs(1));
  EXPECT_THAT(command.Leftovers(), IsEmpty());
}

TEST(ControlPlaneTest, AnswersEveryQuestion) {
  for (const char* question : {"status", "sessions", "counters", "nics", "gpus", "version"}) {
    Command command(Script({"--no-label"}, std::string("exec \"$0\" ") + question));
    const CommandResult result = command.Wait();
    EXPECT_EQ(result.exit_code, 0) << question << ": " << result.err;
    EXPECT_NE(result.out, "") << question;
  }
}

TEST(ControlPlaneTest, NamesAnUnknownRank) {
  Command command(Script({"--no-label"}, "exec \"$0\" why nosuchjob.7"));
  const CommandResult result = command.Wait();
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
  const CommandResult result = command.Wait();
  EXPECT_EQ(result.exit_code, 128 + SIGTERM);
  EXPECT_THAT(result.err, HasSubstr("was killed by SIGKILL while the job ran"));
  EXPECT_THAT(command.Leftovers(), IsEmpty());
}

TEST(ControlPlaneTest, DaemonsEndWithAKilledFerryrun) {
  Command command(Script({"-n", "2", "--nodes", "2"}, "echo ready; exec sleep 100"));
  ASSERT_TRUE(command.WaitForOutput("ready"));
  command.Signal(SIGKILL);
  command.Wait();
  EXPECT_THAT(command.Leftovers(), IsEmpty());
}

TEST(ControlPlaneTest, AShutdownUnderAJobIsReported) {
  Command command(Script({"--grace-ms", "100"}, "\"$0\" shutdown --now; exec sleep 100"));
  const CommandResult result = command.Wait();
  EXPECT_EQ(result.exit_code, 128 + SIGTERM);
  EXPECT_THAT(result.out, HasSubstr("stops now"));
  EXPECT_THAT(result.err, HasSubstr("ferryd of node 0"));
  EXPECT_THAT(command.Leftovers(), IsEmpty());
}

}  // namespace
}  // namespace ferry::e2e
