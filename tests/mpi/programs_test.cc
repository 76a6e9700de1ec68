// Programs on libmpi_abi: the queries of another language's binding, and calls that Ferry does not
// have yet.
#include "tests/mpi/declared_calls.h"
#include "tests/mpi/e2e/mpi_job.h"

namespace ferry::mpi_tests {
namespace {

TEST(AbiProgramTest, LearnsWhatTheLibraryLeavesOpen) { ExpectAllOk(1, "tests/mpi/abi_program"); }

TEST(AbiProgramTest, RunsOnAnyLibraryWithTheInterface) {
  ExpectAllOk(2, "tests/mpi/abi/portable_program");
}

TEST(UnsupportedTest, EveryCallSaysSo) {
  ExpectJob({"", {"-n", "1"}}, {"tests/mpi/abi_program", "unsupported"},
            std::to_string(mpi::CallsNotThereYet().size()) + " calls are not there yet");
}

}  // namespace
}  // namespace ferry::mpi_tests
