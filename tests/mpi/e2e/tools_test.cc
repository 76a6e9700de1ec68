// The tool information interface: options and counters as tools see them.
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

}  // namespace
}  // namespace ferry::mpi_tests
