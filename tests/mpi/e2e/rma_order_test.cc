// What a rank does in another one's window is there when it says so: inside a node, and between
// two, by the daemons and by direct links.
#include "tests/mpi/e2e/mpi_job.h"

namespace ferry::mpi_tests {
namespace {

struct Path {
  const char* name;
  const char* nodes;
  std::vector<std::string> variables;
};
void PrintTo(const Path& path, std::ostream* out) { *out << path.name; }

class RmaOrderTest : public testing::TestWithParam<Path> {};

// Each operation, with each call, by each word of it and in each way to wait, twice.
TEST_P(RmaOrderTest, WhatIsToldOfIsThere) {
  ExpectJob({"", {"-n", "2", "--nodes", GetParam().nodes}}, {"tests/mpi/ranks/rma_order", "640"},
            "all was in order", GetParam().variables);
}

INSTANTIATE_TEST_SUITE_P(
    , RmaOrderTest,
    testing::Values(Path{"OneNode", "1", {}}, Path{"TwoNodes", "2", {"FERRY_DIRECT_LINKS=off"}},
                    Path{"TwoNodesByLinks", "2", {"FERRY_DIRECT_LINKS=always"}}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace ferry::mpi_tests
