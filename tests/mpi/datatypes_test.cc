// The calls on datatypes and operations, by programs on libmpi_abi.
#include <gtest/gtest.h>

#include "tests/mpi/ranks.h"

namespace ferry::mpi {
namespace {

TEST(DatatypesProgramTest, CallsDoWhatTheySayAndMistakesAreNamed) {
  EXPECT_EQ(RunRanks(1, "tests/mpi/datatypes_program"), AllOk(1));
}

TEST(OperationsProgramTest, CallsDoWhatTheySayAndMistakesAreNamed) {
  EXPECT_EQ(RunRanks(2, "tests/mpi/operations_program"), AllOk(2));
}

}  // namespace
}  // namespace ferry::mpi
