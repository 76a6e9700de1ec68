// MPI programs that know nothing of Ferry's malloc do the same with it.
#include "tests/mpi/e2e/mpi_job.h"

namespace ferry::mpi_tests {
namespace {

class MallocTest : public testing::TestWithParam<Placement> {};

TEST_P(MallocTest, MessagesAreTheSame) {
  ExpectJob(GetParam(), {"tests/mpi/ranks/messages"}, "all messages were right",
            {"FERRY_MALLOC=ferry"});
}

TEST_P(MallocTest, MessagesOfThreadsAreTheSame) {
  ExpectJob(GetParam(), {"tests/mpi/ranks/messages", "multiple"}, "all messages were right",
            {"FERRY_MALLOC=ferry"});
}

TEST_P(MallocTest, WindowsOfMessagesAreTheSame) {
  ExpectJob(GetParam(), {"tests/mpi/ranks/windows"}, "all windows were right",
            {"FERRY_MALLOC=ferry"});
}

INSTANTIATE_TEST_SUITE_P(Placements, MallocTest, testing::ValuesIn(Pairs()), NameOf);

class MallocCollectivesTest : public testing::TestWithParam<Placement> {};

TEST_P(MallocCollectivesTest, AreTheSame) {
  ExpectJob(GetParam(), {"tests/mpi/ranks/collectives"}, "all collectives were right",
            {"FERRY_MALLOC=ferry"});
}

INSTANTIATE_TEST_SUITE_P(Placements, MallocCollectivesTest, testing::ValuesIn(AllPlacements()),
                         NameOf);

}  // namespace
}  // namespace ferry::mpi_tests
