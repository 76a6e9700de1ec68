// Messages from and to device memory that only streams reach, over an emulated link, by the real
// library and daemon: any other access to it is a fault. Offloaded send buffers are sent so, too.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <string>
#include <vector>

#include "tests/e2e/command.h"

namespace ferry::e2e {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

Words WithLink(const Words& variables = {}) {
  return Joined(variables,
                {"FERRY_HOST_LINK_H2D_MB_PER_S=8000", "FERRY_HOST_LINK_D2H_MB_PER_S=8000",
                 "FERRY_HOST_LINK_LATENCY_US=5", "FERRY_HOST_LINK_GUARD=1"});
}

struct Placement {
  const char* name;
  Words flags;
  Words variables;
};

Words Job(const Words& flags, const std::string& what) {
  return PrivateJob(flags, {"tests/e2e/ranks/device", what});
}

class DeviceTest : public testing::TestWithParam<Placement> {
 protected:
  static void Run(const std::string& what) {
    EXPECT_EQ(RunWell(Job(GetParam().flags, what), WithLink(GetParam().variables)), "device: ok\n");
  }
};

TEST_P(DeviceTest, MovesAllSizesBetweenAllKindsOfMemory) { Run("sizes"); }
TEST_P(DeviceTest, MovesManyAtATime) { Run("windows"); }

// With few and small staging blocks, so that messages wait for each other's.
INSTANTIATE_TEST_SUITE_P(
    Placements, DeviceTest,
    testing::Values(
        Placement{"OneRank", {"-n", "1"}, {}}, Placement{"TwoRanks", {"-n", "2"}, {}},
        Placement{"TwoNodes", {"-n", "2", "--nodes", "2"}, {}},
        Placement{"TwoNics", {"-n", "2", "--nodes", "2"}, {"FERRY_FABRIC_RAILS=127.0.0.2"}},
        Placement{"ThreeRanksOnTwoNodes", {"-n", "3", "--nodes", "2"}, {}},
        Placement{"FewBlocks",
                  {"-n", "2", "--nodes", "2"},
                  {"FERRY_PIPELINE_BLOCK_BYTES=65536", "FERRY_PIPELINE_STAGING_BLOCKS=2",
                   "FERRY_PIPELINE_MODE=even"}},
        Placement{"ByLinks",
                  {"-n", "3", "--nodes", "2"},
                  {"FERRY_DIRECT_LINKS=always", "FERRY_PIPELINE_THRESHOLD_BYTES=4194304"}},
        Placement{"DaemonsStageAll", {"-n", "3", "--nodes", "2"}, {"FERRY_OFFLOAD_MIN_BYTES=0"}},
        Placement{"RanksStage", {"-n", "3", "--nodes", "2"}, {"FERRY_PIPELINE_STAGING_BLOCKS=0"}},
        Placement{"WorkerProcess", {"-n", "3", "--nodes", "2"}, {"FERRY_WORKER_MODE=process"}}),
    [](const auto& info) { return std::string(info.param.name); });

class DeviceLinksTest : public testing::TestWithParam<Words> {
 protected:
  static void Run(const std::string& what, const Words& variables = {}) {
    EXPECT_EQ(
        RunWell(Job({"-n", "2", "--nodes", "2"}, what), WithLink(Joined(GetParam(), variables))),
        "device: ok\n");
  }
};

TEST_P(DeviceLinksTest, AreGivenUpForLongMessages) { Run("late"); }
TEST_P(DeviceLinksTest, AreKeptForShortOnes) { Run("short"); }
TEST_P(DeviceLinksTest, AreGivenUpForWindows) { Run("window"); }

TEST_P(DeviceLinksTest, BringWhatTheHeapHasNoRoomFor) {
  Run("landings", {"FERRY_HEAP_BYTES=4194304"});
}

INSTANTIATE_TEST_SUITE_P(Rules, DeviceLinksTest,
                         testing::Values(Words{"FERRY_DIRECT_LINKS=always"},
                                         Words{"FERRY_DIRECT_LINKS=auto",
                                               "FERRY_DIRECT_LINK_MESSAGES=3"}),
                         [](const auto& info) { return info.index == 0 ? "Always" : "Auto"; });

TEST(DeviceMistakesTest, AreNamed) {
  for (const char* nodes : {"1", "2"}) {
    RunWell(Job({"-n", "2", "--nodes", nodes}, "mistakes"), WithLink());
  }
}

// A rank that loads from such memory is ended, so that the other tests notice it.
TEST(DeviceGuardTest, EndsWhoTouchesDeviceMemory) {
  const CommandResult result = RunCommand(Job({"-n", "1"}, "touch"), WithLink());
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(result.err, HasSubstr("was killed by SIGSEGV"));
}

TEST(DeviceDeathTest, TheOtherRankIsTold) {
  for (const char* nodes : {"1", "2"}) {
    for (const char* what : {"hold", "vanish"}) {
      SCOPED_TRACE(std::string(what) + " on " + nodes);
      const CommandResult result =
          RunCleanly(Job({"-n", "2", "--keep-going", "--nodes", nodes}, what), WithLink());
      EXPECT_THAT(result.out, HasSubstr("survivor: "));
    }
  }
}

// ---- Small messages inside a node

CommandResult RunSmall(const std::string& what, const Words& flags = {}) {
  return RunCleanly(PrivateJob(Joined({"-n", "2"}, flags), {"tests/e2e/ranks/device_small", what}),
                    WithLink());
}

TEST(SmallDeviceMessagesTest, TakeOneCopyWhereTheReceiveIsThere) {
  EXPECT_EQ(RunSmall("one_copy").out, "device_small: ok\n");
}

TEST(SmallDeviceMessagesTest, WaitForNobodyWhoIsLate) {
  EXPECT_EQ(RunSmall("late").out, "device_small: ok\n");
}

TEST(SmallDeviceMessagesTest, WaitForNobodyAmongThreads) {
  EXPECT_EQ(RunSmall("threads").out, "device_small: ok\n");
}

TEST(SmallDeviceMessagesTest, OfTheDeadAreTold) {
  for (const char* what : {"hold", "vanish"}) {
    SCOPED_TRACE(what);
    EXPECT_THAT(RunSmall(what, {"--keep-going"}).out, HasSubstr("survivor: "));
  }
}

// A failed copy of ferryd's is an error of both ranks' requests, and of nothing else.
TEST(DeviceFaultTest, ACopyThatFailsIsToldToBothRanks) {
  for (const char* point : {"staging.copy_in:3:SYSTEM", "staging.copy_out:3:SYSTEM"}) {
    SCOPED_TRACE(point);
    EXPECT_THAT(RunWell(Job({"-n", "2", "--nodes", "2"}, "fails"),
                        WithLink({std::string("FERRY_FAULTS=") + point})),
                HasSubstr("device: ok\n"));
  }
}

// ---- Offloaded send buffers of all kinds of memory

void RunOffload(const Words& flags, const std::string& what, const Words& variables) {
  EXPECT_EQ(RunWell(PrivateJob(flags, {"tests/e2e/ranks/offload", what}), variables),
            "offload: ok\n");
}

class OffloadTest : public testing::TestWithParam<Placement> {};

TEST_P(OffloadTest, SendsWhatWasSynchronizedLast) {
  RunOffload(GetParam().flags, "contents", GetParam().variables);
}

TEST_P(OffloadTest, WhatIsUnderWayLosesNothing) {
  RunOffload(GetParam().flags, "flight", GetParam().variables);
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
// With kept bounce buffers, of all messages and of the longest ones, and without any.
TEST(AutomaticOffloadTest, SendsWhatTheBufferHolds) {
  for (const char* min_bytes : {"8192", "1000000", "0"}) {
    SCOPED_TRACE(min_bytes);
    RunOffload({"-n", "2", "--nodes", "2"}, "automatic",
               WithLink({"FERRY_PIPELINE_STAGING_BLOCKS=0", "FERRY_HEAP_BYTES=16777216",
                         std::string("FERRY_OFFLOAD_MIN_BYTES=") + min_bytes}));
  }
}

// Where ferryd has a pipeline, messages that it would not cut are sent from bounce buffers; the
// pipeline sends longer ones. Without links: by one that the short ones have brought, the first
// long one leaves from a bounce buffer, too.
TEST(AutomaticOffloadTest, LeavesLongMessagesToThePipeline) {
  RunOffload({"-n", "2", "--nodes", "2"}, "mixed",
             WithLink({"FERRY_HEAP_BYTES=16777216", "FERRY_DIRECT_LINKS=off"}));
}

TEST(AutomaticOffloadTest, ThePipelineNeedsNone) {
  RunOffload({"-n", "2", "--nodes", "2"}, "pipelined",
             WithLink({"FERRY_HEAP_BYTES=16777216", "FERRY_OFFLOAD_MIN_BYTES=0"}));
}

// A request that could not be started gives back the heap block that stands in for its buffer.
TEST(GivenUpRequestTest, KeepsNoBlockOfTheHeap) {
  RunOffload({"-n", "2", "--nodes", "2"}, "gives_up",
             WithLink({"FERRY_PIPELINE_STAGING_BLOCKS=0", "FERRY_HEAP_BYTES=16777216",
                       "FERRY_UNEXPECTED_LIMIT=64"}));
}

TEST(OffloadRefusalTest, InAForkOfARank) { RunOffload({"-n", "1"}, "fork", {}); }

TEST(OffloadRefusalTest, AfterTheDeathOfTheDaemon) {
  Command command(PrivateJob({"--keep-going", "-n", "1"}, {"tests/e2e/ranks/offload", "orphan"}));
  ASSERT_TRUE(command.WaitForOutput("under way\n"));
  const std::vector<pid_t> daemons = command.Find("--ready-fd");
  ASSERT_THAT(daemons, SizeIs(1));
  kill(daemons.front(), SIGKILL);
  EXPECT_EQ(command.Wait().out, "under way\noffload: ok\n");
}

}  // namespace
}  // namespace ferry::e2e
