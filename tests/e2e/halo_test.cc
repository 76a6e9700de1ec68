// Halo exchanges of all shapes, on one node and on two.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/e2e/command.h"

namespace ferry::e2e {
namespace {

using Words = std::vector<std::string>;

void ExpectPasses(const Words& placement, const Words& variables, const Words& program) {
  Words job = {"tools/ferryrun/ferryrun", "--private", "--ferryd", "daemon/ferryd", "--no-label"};
  job.insert(job.end(), placement.begin(), placement.end());
  job.push_back("/usr/bin/env");
  job.insert(job.end(), variables.begin(), variables.end());
  job.insert(job.end(), program.begin(), program.end());
  Command command(job);
  const CommandResult result = command.Wait();
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_THAT(command.Leftovers(), testing::IsEmpty());
}

struct Layout {
  int ranks;
  int nodes;
};

class HaloTest : public testing::TestWithParam<Layout> {};

TEST_P(HaloTest, EveryCellIsThatOfTheWholeGrid) {
  ExpectPasses(
      {"-n", std::to_string(GetParam().ranks), "--nodes", std::to_string(GetParam().nodes)}, {},
      {"tests/e2e/ranks/halo"});
}

INSTANTIATE_TEST_SUITE_P(Layouts, HaloTest,
                         testing::Values(Layout{1, 1}, Layout{2, 1}, Layout{2, 2}, Layout{3, 1},
                                         Layout{4, 2}, Layout{6, 2}, Layout{8, 1}, Layout{8, 2}),
                         [](const auto& info) {
                           return std::to_string(info.param.ranks) + "Ranks" +
                                  std::to_string(info.param.nodes) + "Nodes";
                         });

TEST(HaloCellsTest, SendsThatWaitUntilTheReceiverIsReady) {
  ExpectPasses({"-n", "4", "--nodes", "2"}, {"FERRY_MATCHED_CELL_BYTES=0"},
               {"tests/e2e/ranks/halo"});
}

TEST(HaloMistakesTest, NeighboursThatDisagreeBothSaySo) {
  ExpectPasses({"-n", "2"}, {}, {"tests/e2e/ranks/halo", "disagree"});
}

TEST(HaloDeathTest, StreamsAndHalosOfTheOthersEnd) {
  for (const std::string nodes : {"1", "2"}) {
    for (const Words& sends : {Words{}, Words{"standard"}}) {
      Words job = {"tools/ferryrun/ferryrun",
                   "--private",
                   "--ferryd",
                   "daemon/ferryd",
                   "--no-label",
                   "--keep-going",
                   "-n",
                   "2",
                   "--nodes",
                   nodes,
                   "tests/e2e/ranks/halo",
                   "death"};
      job.insert(job.end(), sends.begin(), sends.end());
      Command command(job);
      const CommandResult result = command.Wait();
      EXPECT_NE(result.exit_code, 0);
      EXPECT_THAT(result.out, testing::HasSubstr("rank 0 has seen it")) << result.err;
      EXPECT_THAT(command.Leftovers(), testing::IsEmpty());
    }
  }
}

}  // namespace
}  // namespace ferry::e2e
