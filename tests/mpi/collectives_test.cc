// Collectives as whole jobs: on one node and two, with ranks that do and do not share a node.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/e2e/command.h"

namespace ferry::e2e {
namespace {

using testing::IsEmpty;

using Words = std::vector<std::string>;

class CollectivesTest : public testing::TestWithParam<Words> {};

TEST_P(CollectivesTest, GiveWhatASimpleComputationGives) {
  Words job = {"tools/ferryrun/ferryrun", "--private", "--ferryd", "daemon/ferryd", "--no-label"};
  job.insert(job.end(), GetParam().begin(), GetParam().end());
  job.push_back("tests/mpi/ranks/collectives");
  Command command(job, {}, "", 240);
  const CommandResult result = command.Wait();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "PASS\n");
  EXPECT_THAT(command.Leftovers(), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Jobs, CollectivesTest,
                         testing::Values(Words{"-n", "1"}, Words{"-n", "2"}, Words{"-n", "3"},
                                         Words{"-n", "4"}, Words{"-n", "4", "--nodes", "2"},
                                         Words{"-n", "2", "--nodes", "2"}));

}  // namespace
}  // namespace ferry::e2e
