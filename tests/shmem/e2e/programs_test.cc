// What OpenSHMEM does inside a node, by one PE, by two, and by more than there are cores.
#include "tests/shmem/e2e/shmem_job.h"

namespace ferry::shmem_tests {
namespace {

class ProgramsTest : public testing::TestWithParam<int> {
 protected:
  static void Expect(const std::string& program) { ExpectAllOk({.pes = GetParam()}, {program}); }
};

TEST_P(ProgramsTest, TheHeapIsSymmetric) { Expect("heap"); }
TEST_P(ProgramsTest, PutsGetsAndSignalsArrive) { Expect("puts"); }
TEST_P(ProgramsTest, AtomicsLoseNothing) { Expect("atomics"); }
TEST_P(ProgramsTest, WaitsSeePlainStoresAndTakeNoCore) { Expect("waits"); }
TEST_P(ProgramsTest, LocksServeInOrder) { Expect("locks"); }
TEST_P(ProgramsTest, StaticDataAreSymmetric) { Expect("statics"); }
TEST_P(ProgramsTest, TeamsHaveTheirOwnNumbers) { Expect("teams"); }
TEST_P(ProgramsTest, CollectivesOfAllSizes) { Expect("collectives"); }
TEST_P(ProgramsTest, ThreadsCallAtOnce) { Expect("threads"); }

INSTANTIATE_TEST_SUITE_P(, ProgramsTest, testing::Values(1, 2, 5),
                         [](const auto& info) { return std::to_string(info.param) + "Pes"; });

}  // namespace
}  // namespace ferry::shmem_tests
