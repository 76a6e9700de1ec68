// The tool information interface: options, counters and events as tools see them.
#include "tests/mpi/e2e/mpi_job.h"

namespace ferry::mpi_tests {
namespace {

class ToolsTest : public testing::TestWithParam<Placement> {
 protected:
  static void Expect(const char* way) {
    ExpectJob(GetParam(), {"tests/mpi/ranks/tools", way}, "the tool is content");
  }
};

TEST_P(ToolsTest, MayPrecedeInit) { Expect("before"); }
TEST_P(ToolsTest, MayComeAtAnyTime) { Expect("beside"); }
TEST_P(ToolsTest, SetOptionsBeforeInit) { Expect("set"); }
TEST_P(ToolsTest, CountMessages) { Expect("count"); }
TEST_P(ToolsTest, MistakesAreNamed) { Expect("mistakes"); }

INSTANTIATE_TEST_SUITE_P(Placements, ToolsTest,
                         testing::Values(Placement{"OneRank", {"-n", "1"}},
                                         Placement{"TwoNodes", {"-n", "2", "--nodes", "2"}}),
                         NameOf);

// ---- Events -------------------------------------------------------------------------------------

class ToolEventsTest : public testing::TestWithParam<Placement> {
 protected:
  static void Expect(const char* way) {
    const e2e::TempDirectory folder;
    ExpectJob(GetParam(), {"tests/mpi/ranks/tool_events", way, folder / "waits"},
              "the tool is content");
  }
};

TEST_P(ToolEventsTest, TellOfMessages) { Expect("messages"); }
TEST_P(ToolEventsTest, TellOfCollectives) { Expect("collectives"); }
TEST_P(ToolEventsTest, TellOfWaitsWhileTheyLast) { Expect("waits"); }
TEST_P(ToolEventsTest, AreDroppedWhereTooManyWait) { Expect("dropped"); }
TEST_P(ToolEventsTest, EndWithTheirRegistration) { Expect("freed"); }
TEST_P(ToolEventsTest, NeedSafeCallbacksWithThreads) { Expect("threads"); }
TEST_P(ToolEventsTest, FillTimersAndMarks) { Expect("variables"); }

INSTANTIATE_TEST_SUITE_P(Placements, ToolEventsTest,
                         testing::Values(Placement{"OneNode", {"-n", "2"}},
                                         Placement{"Measured", {"-n", "2", "--report"}},
                                         Placement{"TwoNodes", {"-n", "2", "--nodes", "2"}}),
                         NameOf);

}  // namespace
}  // namespace ferry::mpi_tests
