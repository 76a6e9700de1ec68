// A daemon that dies at each step of a message between nodes: its ranks and their peers get an
// error, and nothing stays behind. Also a daemon that stops at each step until it is released.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/faults/fault_fixture.h"

namespace ferry::faults {
namespace {

using e2e::Command;
using e2e::CommandResult;
using e2e::Eventually;
using e2e::RunCleanly;
using e2e::RunCommand;
using nlohmann::json;
using testing::Field;
using testing::HasSubstr;
using testing::SizeIs;

constexpr char kPairs[] = "tests/faults/ranks/pairs";
constexpr char kFerryctl[] = "tools/ferryctl/ferryctl";
constexpr char kBytes[] = "1000000";  // rank 0 sends them on, from and to private memory
constexpr char kHeap[] = "--heap_bytes=1048576";  // too small for them: they are staged

// On two nodes whose daemons carry all messages: the points are theirs.
e2e::Words Job(int ranks, const e2e::Words& flags, const e2e::Words& program) {
  return PrivateJob(ranks, 2, e2e::Joined({e2e::kByDaemons}, flags), program);
}

// Only one node passes the points of one message, since messages go one way.
class InjectedKillTest : public testing::TestWithParam<std::string> {};

TEST_P(InjectedKillTest, IsAnErrorForAllRanks) {
  const CommandResult result =
      RunCleanly(Job(2, {kHeap, "--faults=" + GetParam() + ":kill"}, {kPairs, kBytes}));
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(result.err, HasSubstr("fault at " + GetParam().substr(0, GetParam().find(':'))));
  EXPECT_THAT(result.err, HasSubstr("was killed by SIGKILL"));
  ExpectErrors(result.out, 2, {kDaemonDied, kNodeUnreachable, kPeerDied, kLinkDown});
}

INSTANTIATE_TEST_SUITE_P(All, InjectedKillTest,
                         testing::Values("memory.register:12", "staging.provide:1",
                                         "staging.copy_in:30", "staging.copy_out:30",
                                         "rndv_get.read:30", "send.rts:20", "send.rndv_get:20",
                                         "send.block_ready:40", "send.block_done:40",
                                         "send.result:20", "receive.rts:20", "receive.rndv_get:20",
                                         "receive.block_ready:40", "receive.block_done:40",
                                         "receive.result:20"),
                         [](const auto& info) {
                           std::string name = info.param.substr(0, info.param.find(':'));
                           std::replace(name.begin(), name.end(), '.', '_');
                           return name;
                         });

json Ask(const std::string& run_directory, const e2e::Words& words) {
  const e2e::Words ferryctl = {kFerryctl, "--run_directory=" + run_directory, "--json"};
  return json::parse(RunCommand(e2e::Joined(ferryctl, words)).out, nullptr, false);
}

json Faults(const std::string& run_directory, const e2e::Words& flags = {}) {
  return Ask(run_directory, e2e::Joined({"faults"}, flags));
}

TEST(InjectedStallTest, HoldsTheMessageUntilItIsReleased) {
  Command job(Job(2, {kHeap, "--faults=staging.copy_out:60:stall"}, {kPairs, kBytes}));
  ASSERT_TRUE(UnderWay(&job, 2));
  std::string stalled;
  ASSERT_TRUE(Eventually([&] {
    for (const std::string& directory : Daemons(job)) {
      if (Faults(directory)["faults"][0]["state"] == "stalls") {
        stalled = directory;
      }
    }
    return !stalled.empty();
  }));
  EXPECT_THAT(
      RunCommand({kFerryctl, "--run_directory=" + stalled, "faults"}).out,
      testing::AllOf(HasSubstr("POINT"), HasSubstr("staging.copy_out"), HasSubstr("stalls")));
  for (const pid_t pid : job.Find(kPairs)) {
    kill(pid, SIGUSR1);  // ends the ranks: but the last message has not come through
  }
  EXPECT_EQ(Faults(stalled, {"--release"})["faults"][0]["state"], "done");
  const CommandResult result = job.WaitCleanly();
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_THAT(result.out, HasSubstr("rank 1: all right"));
}

// One block for each direction and node: the receivers' block stops.
TEST(InjectedStallTest, ExhaustsThePoolsAndFerryctlSaysWhoWaitsForThem) {
  Command job(Job(4, {kHeap, "--staging_blocks=2", "--faults=staging.copy_out:200:stall"},
                  {kPairs, kBytes, "across"}));
  const auto stalls = [](const std::string& directory) {
    json answer = Faults(directory);
    return answer.is_object() && answer["faults"][0]["state"] == "stalls";
  };
  // A fast pair brings the stall about alone: the other one then stops at its first messages.
  e2e::Words daemons;
  ASSERT_TRUE(Eventually([&] {
    daemons = Daemons(job);
    return daemons.size() == 2 && std::any_of(daemons.begin(), daemons.end(), stalls);
  }));
  // Both ends report it: the other pair's receiver finds no block, and soon the senders find none.
  for (int node = 0; node < 2; ++node) {
    const std::string& directory = daemons[static_cast<size_t>(node)];
    const std::string id = Ask(directory, {"status"})["jobs"][0]["job_id"];
    std::string why;
    EXPECT_TRUE(Eventually([&] {
      why.clear();
      for (const int rank : {2 * node, 2 * node + 1}) {
        why += Ask(directory, {"why", id + "." + std::to_string(rank)}).dump(2);
      }
      return why.find("waits for a staging block") != std::string::npos;
    })) << why;
    const json nic = Ask(directory, {"nics"})["nics"][0];
    EXPECT_EQ(nic["staging_blocks"], 2) << nic;
    EXPECT_EQ(nic["staging_busy"], 1) << nic;
    EXPECT_GE(nic["staging_waits"], 1) << nic;
  }
  for (const pid_t pid : job.Find(kPairs)) {
    kill(pid, SIGUSR1);
  }
  for (const std::string& directory : daemons) {
    Faults(directory, {"--release"});
  }
  const CommandResult result = job.WaitCleanly();
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  ExpectAllRight(result.out, 4);
}

// Of the two nodes, the sender's is the first that needs its rank's heap.
TEST(InjectedRefusalTest, IsAnErrorForBothRanksOfTheMessage) {
  const CommandResult result =
      RunCleanly(Job(2, {"--faults=memory.register:9:LIMIT"}, {kPairs, kBytes}));
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(ErrorsIn(result.out), SizeIs(2)) << result.out << result.err;
  EXPECT_THAT(ErrorsIn(result.out), testing::Contains(Field(&RankError::code, kLimit)));
}

TEST(InjectedLossTest, IsACutLinkForTheRanks) {
  const CommandResult result =
      RunCleanly(Job(2, {kHeap, "--faults=send.block_ready:60:lose"}, {kPairs, kBytes}));
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(ErrorsIn(result.out), SizeIs(2)) << result.out;
  EXPECT_THAT(ErrorsIn(result.out), testing::Contains(Field(&RankError::code, kLinkDown)));
}

TEST(InjectedFaultTest, AMistakeKeepsTheDaemonFromStarting) {
  const CommandResult result =
      RunCommand({"daemon/ferryd", "--run_directory=/tmp/ferry-no-such-directory/run",
                  "--faults=rndv_get.raed:1:kill"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("there is no such point; there are memory.register, "));
}

}  // namespace
}  // namespace ferry::faults
