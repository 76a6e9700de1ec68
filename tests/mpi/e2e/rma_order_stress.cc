// For a million rounds, half of them in each kind of memory that other nodes reach, while other
// threads take the CPUs.
#include "tests/mpi/e2e/rma_order.h"
#include "tests/support/load.h"

namespace ferry::mpi_tests {
namespace {

using RmaOrderStressTest = RmaOrderTest;

TEST_P(RmaOrderStressTest, WhatIsToldOfIsThere) {
  const tests::Load load;
  Expect("500000", 3'000);
}

INSTANTIATE_TEST_SUITE_P(, RmaOrderStressTest, testing::ValuesIn(RmaOrderTest::Paths()),
                         NameOfPath);

}  // namespace
}  // namespace ferry::mpi_tests
