#include "tests/mpi/e2e/rma_order.h"

namespace ferry::mpi_tests {
namespace {

// Each operation, with each call, by each word of it and in each way to wait, twice.
TEST_P(RmaOrderTest, WhatIsToldOfIsThere) { Expect("640"); }

INSTANTIATE_TEST_SUITE_P(, RmaOrderTest, testing::ValuesIn(RmaOrderTest::Paths()), NameOfPath);

}  // namespace
}  // namespace ferry::mpi_tests
