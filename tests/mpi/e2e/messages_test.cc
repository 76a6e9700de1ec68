// Messages of MPI programs, by the real library and daemon: all modes, forms and sizes, threads,
// and every mistake a program can make with them.
#include <gtest/gtest.h>

#include "tests/mpi/e2e/mpi_job.h"

namespace ferry::mpi_tests {
namespace {

std::string NameOf(const testing::TestParamInfo<Placement>& info) { return info.param.name; }

class MessagesTest : public testing::TestWithParam<Placement> {};

TEST_P(MessagesTest, AreRightInAllModesFormsAndSizes) {
  ExpectJob(GetParam(), {"tests/mpi/ranks/messages"}, "all messages were right");
}

TEST_P(MessagesTest, AreRightWithThreadMultiple) {
  ExpectJob(GetParam(), {"tests/mpi/ranks/messages", "multiple"}, "all messages were right");
}

TEST_P(MessagesTest, OfManyThreadsDoNotMeet) {
  ExpectJob(GetParam(), {"tests/mpi/ranks/threads"}, "all threads were served");
}

INSTANTIATE_TEST_SUITE_P(Placements, MessagesTest, testing::ValuesIn(AllPlacements()), NameOf);

class MistakesTest : public testing::TestWithParam<Placement> {};

TEST_P(MistakesTest, AreNamedAndHarmNothing) {
  ExpectJob(GetParam(), {"tests/mpi/ranks/mistakes"}, "all mistakes were named");
}

INSTANTIATE_TEST_SUITE_P(Placements, MistakesTest, testing::ValuesIn(Pairs()), NameOf);

}  // namespace
}  // namespace ferry::mpi_tests
