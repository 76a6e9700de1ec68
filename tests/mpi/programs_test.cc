// Programs on libmpi_abi: the queries of another language's binding, and calls that Ferry does not
// have yet.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/mpi/declared_calls.h"
#include "tests/mpi/ranks.h"

namespace ferry::mpi {
namespace {

TEST(AbiProgramTest, LearnsWhatTheLibraryLeavesOpen) {
  EXPECT_EQ(RunRanks(1, "tests/mpi/abi_program"), AllOk(1));
}

TEST(AbiProgramTest, RunsOnAnyLibraryWithTheInterface) {
  EXPECT_EQ(RunRanks(2, "tests/mpi/abi/portable_program"), AllOk(2));
}

TEST(UnsupportedTest, EveryCallSaysSo) {
  EXPECT_EQ(RunRanks(1, "tests/mpi/unsupported_program"),
            std::vector<std::string>{std::to_string(CallsNotThereYet().size()) +
                                     " calls are not there yet"});
}

}  // namespace
}  // namespace ferry::mpi
