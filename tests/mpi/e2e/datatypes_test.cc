// The calls on datatypes and operations, by programs on libmpi_abi.
#include <gtest/gtest.h>

#include "tests/mpi/e2e/mpi_job.h"

namespace ferry::mpi_tests {
namespace {

TEST(DatatypesTest, CallsDoWhatTheySayAndMistakesAreNamed) {
  ExpectJob({"", {"-n", "1"}}, {"tests/mpi/ranks/datatypes"}, "all datatypes were right");
}

TEST(OperationsTest, CallsDoWhatTheySayAndMistakesAreNamed) {
  ExpectJob({"", {"-n", "2"}}, {"tests/mpi/ranks/operations"}, "all operations were right");
}

}  // namespace
}  // namespace ferry::mpi_tests
