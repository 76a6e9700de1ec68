// As rma_order_test.cc, for a million rounds, while other threads take the CPUs.
#include "tests/mpi/e2e/mpi_job.h"
#include "tests/support/load.h"

namespace ferry::mpi_tests {
namespace {

struct Path {
  const char* name;
  const char* nodes;
  std::vector<std::string> variables;
};
void PrintTo(const Path& path, std::ostream* out) { *out << path.name; }

class RmaOrderStressTest : public testing::TestWithParam<Path> {};

TEST_P(RmaOrderStressTest, WhatIsToldOfIsThere) {
  const tests::Load load;
  ExpectJob({"", {"-n", "2", "--nodes", GetParam().nodes}, 3'000},
            {"tests/mpi/ranks/rma_order", "1000000"}, "all was in order", GetParam().variables);
}

INSTANTIATE_TEST_SUITE_P(
    , RmaOrderStressTest,
    testing::Values(Path{"OneNode", "1", {}}, Path{"TwoNodes", "2", {"FERRY_DIRECT_LINKS=off"}},
                    Path{"TwoNodesByLinks", "2", {"FERRY_DIRECT_LINKS=always"}}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace ferry::mpi_tests
