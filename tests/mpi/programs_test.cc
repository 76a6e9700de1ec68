// Programs on libmpi_abi: the queries of another language's binding.
#include "tests/mpi/e2e/mpi_job.h"

namespace ferry::mpi_tests {
namespace {

TEST(AbiProgramTest, LearnsWhatTheLibraryLeavesOpen) { ExpectAllOk(1, "tests/mpi/abi_program"); }

TEST(AbiProgramTest, RunsOnAnyLibraryWithTheInterface) {
  ExpectAllOk(2, "tests/mpi/abi/portable_program");
}

}  // namespace
}  // namespace ferry::mpi_tests
