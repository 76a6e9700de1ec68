// Ranks that the system refuses process_vm calls, as the filter of a container may, while their
// daemon lives outside: every one of them, or every other. A slice;
// tests/faults/refused_calls_test.cc has each of these ways with a few programs of libferry.
#include "tests/mpi/e2e/mpi_job.h"
#include "tests/support/slice.h"

namespace ferry::mpi_tests {
namespace {

constexpr char kEveryOther[] =
    "test $((FERRY_RANK % 2)) = 0 && exec \"$0\" \"$@\"; exec tests/fixtures/refuse_calls ENOSYS "
    "process_vm_readv process_vm_writev -- \"$0\" \"$@\"";

class RefusedCopiesTest : public testing::TestWithParam<Placement> {
 protected:
  static void Run(const std::string& program, const std::string& line) {
    ExpectJob(GetParam(), {"tests/mpi/ranks/" + program}, line);
  }
};

TEST_P(RefusedCopiesTest, MessagesArrive) { Run("messages", "all messages were right"); }
TEST_P(RefusedCopiesTest, CollectivesAreRight) { Run("collectives", "all collectives were right"); }
TEST_P(RefusedCopiesTest, PutsAndGetsMoveEveryByte) { Run("rma_moves", "all moves were right"); }
TEST_P(RefusedCopiesTest, EpochsKeepApart) { Run("rma_epochs", "all epochs were right"); }
TEST_P(RefusedCopiesTest, AccumulatesAgree) {
  Run("rma_accumulates", "all accumulates were right");
}
TEST_P(RefusedCopiesTest, MemoryIsShared) { Run("rma_shared", "all memory was right"); }
TEST_P(RefusedCopiesTest, PartitionsArrive) { Run("partitioned_rounds", "all rounds were right"); }
TEST_P(RefusedCopiesTest, PartitionedDataAreRight) {
  Run("partitioned_data", "all data were right");
}

INSTANTIATE_TEST_SUITE_P(, RefusedCopiesTest,
                         testing::ValuesIn(tests::Slice<Placement>(
                             {{"ByEveryOther", {"-n", "3", "/bin/sh", "-c", kEveryOther}}},
                             {{"ByAll",
                               {"-n", "3", "tests/fixtures/refuse_calls", "EPERM",
                                "process_vm_readv", "process_vm_writev", "--"}},
                              {"ByEveryOtherOnTwoNodes",
                               {"-n", "4", "--nodes", "2", "/bin/sh", "-c", kEveryOther}}})),
                         NameOf);

}  // namespace
}  // namespace ferry::mpi_tests
