// Wrong arguments of every kind, for every call of MPI: none breaks the rank, and each is answered
// with a fitting error class and message.
#include "tests/mpi/fuzz/fuzz_job.h"

namespace ferry::mpi_tests {
namespace {

TEST(FuzzTest, EachBadValueOfEachArgumentIsAnswered) { ExpectFuzzed({"each"}); }

TEST(FuzzTest, AnyValuesOfAllArgumentsAreAnswered) { ExpectFuzzed({"random", "1", "6000"}); }

TEST(FuzzTest, CallsBeforeInitAndAfterFinalizeAreNamed) { ExpectFuzzed({"outside"}); }

TEST(FuzzTest, MistakesOfOneRankAreFoundOutByTheOthers) {
  ExpectFuzzed({"together", "1", "1000"}, "2");
  ExpectFuzzed({"together", "2", "500"}, "3");
}

}  // namespace
}  // namespace ferry::mpi_tests
