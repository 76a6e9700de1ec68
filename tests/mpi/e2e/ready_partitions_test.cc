// Partitioned messages (MPI 5.0, chapter 4), first things first.
#include "tests/mpi/e2e/mpi_job.h"

namespace ferry::mpi_tests {
namespace {

class ReadyPartitionsTest : public testing::TestWithParam<Placement> {};

TEST_P(ReadyPartitionsTest, ArriveByThemselves) {
  ExpectJob(GetParam(), {"tests/mpi/ranks/ready_partitions"}, "all pairs were right");
}

INSTANTIATE_TEST_SUITE_P(Placements, ReadyPartitionsTest, testing::ValuesIn(AllPlacements()),
                         NameOf);

}  // namespace
}  // namespace ferry::mpi_tests
