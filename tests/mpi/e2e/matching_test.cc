// Matched persistent requests and queues through MPI (mpix.h).
#include <gtest/gtest.h>

#include "tests/mpi/e2e/mpi_job.h"

namespace ferry::mpi_tests {
namespace {

class MatchingTest : public testing::TestWithParam<Placement> {};

TEST_P(MatchingTest, KeepsItsPromises) {
  ExpectJob(GetParam(), {"tests/mpi/ranks/matching"}, "all matched");
}

INSTANTIATE_TEST_SUITE_P(Placements, MatchingTest, testing::ValuesIn(Pairs()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace ferry::mpi_tests
