// Runs the tests of fuzz_test.cc for minutes.
#include "tests/mpi/fuzz/fuzz_job.h"

namespace ferry::mpi_tests {
namespace {

TEST(FuzzStress, AnyValuesOfAllArgumentsAreAnswered) {
  for (int seed = 100; seed < 110; ++seed) {
    SCOPED_TRACE(seed);
    ExpectFuzzed({"random", std::to_string(seed), "150000"});
  }
}

TEST(FuzzStress, MistakesOfOneRankAreFoundOutByTheOthers) {
  for (int seed = 100; seed < 105; ++seed) {
    SCOPED_TRACE(seed);
    ExpectFuzzed({"together", std::to_string(seed), "20000"}, "2");
  }
}

}  // namespace
}  // namespace ferry::mpi_tests
