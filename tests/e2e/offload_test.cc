// Offloaded send buffers of all kinds of memory, by the real library and daemon. Device memory lies
// behind an emulated link: any access to it without a stream is a fault.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/types.h>

#include <string>
#include <vector>

#include "tests/e2e/command.h"

namespace ferry::e2e {
namespace {

std::vector<std::string> WithLink(std::vector<std::string> variables = {}) {
  for (const char* variable :
       {"FERRY_HOST_LINK_H2D_MB_PER_S=8000", "FERRY_HOST_LINK_D2H_MB_PER_S=8000",
        "FERRY_HOST_LINK_LATENCY_US=5", "FERRY_HOST_LINK_GUARD=1"}) {
    variables.emplace_back(variable);
  }
  return variables;
}

void RunJob(const std::vector<std::string>& flags, const std::string& what,
            std::vector<std::string> variables) {
  std::vector<std::string> arguments = {"tools/ferryrun/ferryrun", "--private", "--ferryd",
                                        "daemon/ferryd", "--no-label"};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  arguments.insert(arguments.end(), {"tests/e2e/ranks/offload", what});
  Command command(arguments, std::move(variables));
  const CommandResult result = command.Wait();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "offload: ok\n");
  EXPECT_THAT(command.Leftovers(), testing::IsEmpty());
}

struct Placement {
  const char* name;
  std::vector<std::string> flags;
  std::vector<std::string> variables;
};

class OffloadTest : public testing::TestWithParam<Placement> {};

TEST_P(OffloadTest, SendsWhatWasSynchronizedLast) {
  RunJob(GetParam().flags, "contents", GetParam().variables);
}

TEST_P(OffloadTest, WhatIsUnderWayLosesNothing) {
  RunJob(GetParam().flags, "flight", GetParam().variables);
}

INSTANTIATE_TEST_SUITE_P(
    Placements, OffloadTest,
    testing::Values(Placement{"ThreeRanks", {"-n", "3"}, WithLink()},
                    Placement{"TwoNodes", {"-n", "2", "--nodes", "2"}, WithLink()},
                    Placement{"ThreeRanksOnTwoNodes", {"-n", "3", "--nodes", "2"}, WithLink()},
                    Placement{"RanksStage",
                              {"-n", "3", "--nodes", "2"},
                              WithLink({"FERRY_PIPELINE_STAGING_BLOCKS=0"})},
                    Placement{"DeviceMemoryThatAllReach", {"-n", "3", "--nodes", "2"}, {}}),
    [](const auto& info) { return std::string(info.param.name); });

// Ranks that stage device memory by themselves always send its contents at the start of the send.
// With kept shadows, of all messages and of the longest ones, and without any.
TEST(AutomaticOffloadTest, SendsWhatTheBufferHolds) {
  for (const char* min_bytes : {"8192", "1000000", "0"}) {
    SCOPED_TRACE(min_bytes);
    RunJob({"-n", "2", "--nodes", "2"}, "automatic",
           WithLink({"FERRY_PIPELINE_STAGING_BLOCKS=0", "FERRY_HEAP_BYTES=16777216",
                     std::string("FERRY_OFFLOAD_MIN_BYTES=") + min_bytes}));
  }
}

// Where ferryd has a pipeline, messages that it would not cut are sent from shadows; the pipeline
// sends longer ones.
TEST(AutomaticOffloadTest, LeavesLongMessagesToThePipeline) {
  RunJob({"-n", "2", "--nodes", "2"}, "mixed", WithLink({"FERRY_HEAP_BYTES=16777216"}));
}

TEST(AutomaticOffloadTest, ThePipelineNeedsNone) {
  RunJob({"-n", "2", "--nodes", "2"}, "pipelined",
         WithLink({"FERRY_HEAP_BYTES=16777216", "FERRY_OFFLOAD_MIN_BYTES=0"}));
}

// A request that could not be started gives back the heap block that stands in for its buffer.
TEST(GivenUpRequestTest, KeepsNoBlockOfTheHeap) {
  RunJob({"-n", "2", "--nodes", "2"}, "gives_up",
         WithLink({"FERRY_PIPELINE_STAGING_BLOCKS=0", "FERRY_HEAP_BYTES=16777216",
                   "FERRY_UNEXPECTED_LIMIT=64"}));
}

TEST(OffloadRefusalTest, InAForkOfARank) { RunJob({"-n", "1"}, "fork", {}); }

TEST(OffloadRefusalTest, AfterTheDeathOfTheDaemon) {
  Command command({"tools/ferryrun/ferryrun", "--private", "--ferryd", "daemon/ferryd",
                   "--no-label", "--keep-going", "-n", "1", "tests/e2e/ranks/offload", "orphan"});
  ASSERT_TRUE(command.WaitForOutput("under way\n"));
  const std::vector<pid_t> daemons = command.Find("--ready-fd");
  ASSERT_THAT(daemons, testing::SizeIs(1));
  kill(daemons.front(), SIGKILL);
  EXPECT_EQ(command.Wait().out, "under way\noffload: ok\n");
}

}  // namespace
}  // namespace ferry::e2e
