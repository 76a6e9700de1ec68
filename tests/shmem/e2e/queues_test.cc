// Calls of OpenSHMEM on queues, by streams of emulated devices.
#include <gmock/gmock.h>

#include "tests/shmem/e2e/shmem_job.h"
#include "tests/support/slice.h"

namespace ferry::shmem_tests {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::vector<std::string> kDevice = {"FERRY_GPU_BACKEND=host", "SHMEM_SYMMETRIC_SIZE=16m"};

// CPUs may not touch the device's memory.
std::vector<std::string> Guarded() {
  std::vector<std::string> variables = kDevice;
  variables.insert(variables.end(),
                   {"FERRY_HOST_LINK_H2D_MB_PER_S=20000", "FERRY_HOST_LINK_D2H_MB_PER_S=20000",
                    "FERRY_HOST_LINK_GUARD=1"});
  return variables;
}

std::vector<std::string> Checking() {
  std::vector<std::string> variables = kDevice;
  variables.emplace_back("FERRY_SHMEM_CHECK=1");
  return variables;
}

struct Layout {
  int pes;
  int nodes;
};
void PrintTo(const Layout& layout, std::ostream* out) {
  *out << layout.pes << "PesOn" << layout.nodes;
}

std::string NameOf(const testing::TestParamInfo<Layout>& info) {
  return testing::PrintToString(info.param);
}

class QueuesTest : public testing::TestWithParam<Layout> {
 protected:
  static JobSettings Settings(const std::vector<std::string>& variables = kDevice) {
    return {.pes = GetParam().pes, .nodes = GetParam().nodes, .variables = variables};
  }
};

TEST_P(QueuesTest, KernelsSeeWhatCallsBring) { ExpectAllOk(Settings(), {"queues", "order"}); }
TEST_P(QueuesTest, CollectivesStandBetweenKernels) {
  ExpectAllOk(Settings(), {"queues", "collectives"});
}
TEST_P(QueuesTest, MemoryMayBeTheDevices) {
  ExpectAllOk(Settings(), {"queues", "device_memory"});
  ExpectAllOk(Settings(Guarded()), {"queues", "device_memory"});
}
TEST_P(QueuesTest, GoSideBySide) { ExpectAllOk(Settings(), {"queues", "side_by_side"}); }
TEST_P(QueuesTest, MeetCallsWithoutOnes) {
  ExpectAllOk(Settings(), {"queues", "mixed"});
  ExpectAllOk(Settings(Checking()), {"queues", "mixed"});
}
TEST_P(QueuesTest, EndWithTheirStreams) { ExpectAllOk(Settings(), {"queues", "ends"}); }
TEST_P(QueuesTest, AreWaitedForByFinalize) {
  ExpectAllOk(Settings(), {"queues", "finalizes", "by_call"});
  ExpectAllOk(Settings(), {"queues", "finalizes", "main"});
}

INSTANTIATE_TEST_SUITE_P(, QueuesTest,
                         testing::ValuesIn(tests::Slice<Layout>({{1, 1}, {3, 1}, {4, 2}},
                                                                {{2, 1}, {2, 2}})),
                         NameOf);

// ---- Device copies that fail --------------------------------------------------------------------

class QueueCopiesTest : public testing::TestWithParam<Layout> {
 protected:
  static JobSettings Settings() {
    return {.pes = GetParam().pes, .nodes = GetParam().nodes, .variables = Guarded()};
  }
};

TEST_P(QueueCopiesTest, OneThatFailsInACollectiveIsToldToAll) {
  ExpectAllOk(Settings(), {"queue_copies", "heap"});
  ExpectAllOk(Settings(), {"queue_copies", "space"});
}
TEST_P(QueueCopiesTest, OneThatFailsInAPutOrGetIsToldByTheQueue) {
  ExpectAllOk(Settings(), {"queue_copies", "moves"});
}
TEST_P(QueueCopiesTest, OneThatFailsWithoutAQueueEndsTheProgram) {
  const e2e::CommandResult result = RunJob(Settings(), {"queue_copies", "put"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("shmem_putmem: "));
}

INSTANTIATE_TEST_SUITE_P(, QueueCopiesTest,
                         testing::ValuesIn(tests::Slice<Layout>({{3, 1}, {4, 2}}, {{2, 2}})),
                         NameOf);

// ---- PEs that are gone --------------------------------------------------------------------------

struct Death {
  const char* where;
  int nodes;
};
void PrintTo(const Death& death, std::ostream* out) { *out << death.where; }

class QueueDeathTest : public testing::TestWithParam<Death> {};

TEST_P(QueueDeathTest, IsToldByTheQueueAndTheStreamGoesOn) {
  const e2e::CommandResult result =
      RunJob({.pes = 3, .nodes = GetParam().nodes, .flags = {"--keep-going"}, .variables = kDevice},
             {"queues", "dies_in", GetParam().where});
  EXPECT_THAT(e2e::SortedLines(result.out), ElementsAre("PE 1: ok", "PE 2: ok")) << result.err;
}

INSTANTIATE_TEST_SUITE_P(, QueueDeathTest,
                         testing::Values(Death{"wait", 1}, Death{"signal", 1}, Death{"barrier", 1},
                                         Death{"reduce", 1}, Death{"wait", 2}, Death{"barrier", 2},
                                         Death{"reduce", 2}, Death{"get", 2}),
                         [](const auto& info) {
                           return std::string(info.param.where) + "On" +
                                  std::to_string(info.param.nodes);
                         });

TEST(QueueLeaveTest, IsToldByTheQueue) {
  for (const int nodes : {1, 2}) {
    ExpectAllOk({.pes = 3, .nodes = nodes, .variables = kDevice}, {"queues", "leaves"});
  }
}

TEST(QueueDaemonTest, ALostOneIsToldByTheQueue) {
  ExpectALostDaemonEnds({"queues", "loses_daemon"}, kDevice);
}
TEST(QueueDaemonTest, ALostOneEndsCollectivesForGood) {
  ExpectALostDaemonEnds({"queues", "loses_daemon_in_collectives"}, kDevice, 4);
}

// ---- Programs that end --------------------------------------------------------------------------

TEST(QueueExitTest, DoesNotWaitForCallsThatNeverEnd) {
  for (const std::string where : {"wait", "barrier"}) {
    for (int i = 0; i < 5; ++i) {
      const e2e::CommandResult result = RunJob({.variables = kDevice}, {"queues", "exits", where});
      EXPECT_EQ(result.exit_code, 5) << result.err;
    }
  }
}

// ---- Misuse -------------------------------------------------------------------------------------

struct Case {
  const char* what;
  const char* sentence;
};
void PrintTo(const Case& one, std::ostream* out) { *out << one.what; }

class QueueMisuseTest : public testing::TestWithParam<Case> {};

TEST_P(QueueMisuseTest, EndsTheProgramWithASentence) {
  const e2e::CommandResult result =
      RunJob({.variables = kDevice}, {"queues", "misuse", GetParam().what});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr(GetParam().sentence));
}

INSTANTIATE_TEST_SUITE_P(
    , QueueMisuseTest,
    testing::Values(
        Case{"before", "shmemx_quiet_on_queue: call shmem_init or shmem_init_thread first"},
        Case{"none", "shmemx_barrier_all_on_queue: queue: the handle names no queue"},
        Case{"freed", "shmemx_quiet_on_queue: queue: the handle names no queue: it was freed"},
        Case{"pe", "shmemx_long_p_on_queue: PE 2 is not between 0 and 1"},
        Case{"memory", "which is no symmetric memory"},
        Case{"comparison", "shmemx_long_wait_until_on_queue: the comparison 17 is none"},
        Case{"team", "shmemx_team_sync_on_queue: the team is SHMEM_TEAM_INVALID"},
        Case{"twice", "shmemx_sync_all_on_queue: another collective of this team is under way"}),
    [](const auto& info) { return std::string(info.param.what); });

}  // namespace
}  // namespace ferry::shmem_tests
