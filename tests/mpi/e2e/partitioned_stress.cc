// Threads that ready and ask for partitions of the same requests, for hundreds of rounds.
#include "tests/mpi/e2e/mpi_job.h"

namespace ferry::mpi_tests {
namespace {

class PartitionedStressTest : public testing::TestWithParam<Placement> {};

TEST_P(PartitionedStressTest, ThreadsReadyAndAskTogether) {
  ExpectJob(GetParam(), {"tests/mpi/ranks/partitioned_threads", "200"}, "all threads were right");
}

INSTANTIATE_TEST_SUITE_P(Placements, PartitionedStressTest, testing::ValuesIn(AllPlacements()),
                         NameOf);

}  // namespace
}  // namespace ferry::mpi_tests
