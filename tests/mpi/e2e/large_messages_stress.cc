// Messages of more than 2 GiB: they take gigabytes of memory and seconds.
#include "tests/mpi/e2e/mpi_job.h"

namespace ferry::mpi_tests {
namespace {

TEST(LargeMessagesTest, AreRightInsideANodeAndBetweenTwo) {
  for (const Placement& placement : Pairs()) {
    SCOPED_TRACE(placement.name);
    ExpectJob(placement, {"tests/mpi/ranks/large"}, "large messages were right");
  }
}

}  // namespace
}  // namespace ferry::mpi_tests
