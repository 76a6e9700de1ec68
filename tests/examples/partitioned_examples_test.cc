// The examples of partitioned communication as whole jobs, on one node and on two. Their kernels
// move data themselves on one node, and ask the daemon between two.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/e2e/command.h"
#include "tests/support/slice.h"

namespace ferry::e2e {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr char kVectorAdd[] = "examples/partitioned_vector_add/partitioned_vector_add";
constexpr char kJacobi[] = "examples/partitioned_jacobi/partitioned_jacobi";
constexpr char kLoss[] = "examples/partitioned_bce/partitioned_bce";

struct Placement {
  const char* ranks;
  const char* nodes;
};

class PartitionedExamplesTest : public testing::TestWithParam<Placement> {
 protected:
  static std::string Run(const Words& words) {
    return RunWell(PrivateJob({"-n", GetParam().ranks, "--nodes", GetParam().nodes}, words));
  }
};

TEST_P(PartitionedExamplesTest, VectorsAreAdded) {
  for (const Words& words : {Words{}, Words{"1", "1"}, Words{"200", "3"}, Words{"3", "10000"}}) {
    EXPECT_THAT(Run(Joined({kVectorAdd}, words)),
                AllOf(HasSubstr(" us with partitions, "),
                      HasSubstr(std::string(GetParam().ranks) +
                                " ranks, sums as they have to be: PASS\n")));
  }
}

TEST_P(PartitionedExamplesTest, JacobiEqualsASerialRun) {
  for (const Words& words : {Words{"16", "8", "20"}, Words{"1", "1", "7"}, Words{"3", "50", "2"}}) {
    EXPECT_THAT(Run(Joined({kJacobi}, words)),
                AllOf(HasSubstr("rows: "), HasSubstr("blocks: "),
                      HasSubstr("cells, equal to a serial run: PASS\n"), Not(HasSubstr("FAIL"))));
  }
}

TEST_P(PartitionedExamplesTest, TheLossIsThatOfOneRank) {
  for (const Words& words : {Words{"8192", "2"}, Words{"8", "1"}}) {
    EXPECT_THAT(Run(Joined({kLoss}, words)), HasSubstr(" as of one rank: PASS\n"));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Placements, PartitionedExamplesTest,
    testing::ValuesIn(tests::Slice<Placement>({{"1", "1"}, {"3", "1"}, {"4", "2"}}, {{"2", "1"}})));

TEST(PartitionedMistakesTest, AreNamed) {
  for (const Words& words :
       {Words{kVectorAdd, "5"}, Words{kVectorAdd, "0", "1"}, Words{kVectorAdd, "65536", "65536"},
        Words{kJacobi, "5"}, Words{kJacobi, "0", "1", "1"}, Words{kJacobi, "1", "1", "x"},
        Words{kLoss, "12", "1"}, Words{kLoss, "8", "65"}, Words{kLoss, "8", "1", "1"}}) {
    const CommandResult result = RunCommand(PrivateJob({"-n", "2"}, words));
    EXPECT_NE(result.exit_code, 0) << words.back();
    EXPECT_THAT(result.err, HasSubstr("usage: partitioned_"));
  }
}

}  // namespace
}  // namespace ferry::e2e
