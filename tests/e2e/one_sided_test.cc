// Puts, gets, atomic operations and signals between ranks, by ferry/one_sided.h: on one node, and
// on two.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/e2e/command.h"

namespace ferry::e2e {
namespace {

using testing::HasSubstr;

// How many ranks, and on how many nodes.
class OneSidedTest : public testing::TestWithParam<std::string> {
 protected:
  static Words Placement() {
    return {"-n", GetParam().substr(0, 1), "--nodes", GetParam().substr(GetParam().size() - 1)};
  }
};

TEST_P(OneSidedTest, EveryOperationOfEveryRankWithEveryOther) {
  const std::string out =
      RunWell(PrivateJob(Placement(), {"tests/e2e/ranks/one_sided"}), {}, /*limit_s=*/240);
  EXPECT_THAT(out, HasSubstr("one_sided: ok"));
}

TEST_P(OneSidedTest, AccumulatesOfEveryRankOnEveryOther) {
  const std::string out = RunWell(PrivateJob(Placement(), {"tests/e2e/ranks/accumulate"}));
  EXPECT_THAT(out, HasSubstr("accumulate: ok"));
}

TEST_P(OneSidedTest, AccumulatesWithMemoryOfDevices) {
  const std::string out =
      RunWell(PrivateJob(Placement(), {"tests/e2e/ranks/accumulate", "device"}),
              {"FERRY_GPU_BACKEND=host", "FERRY_HOST_LINK_H2D_MB_PER_S=20000",
               "FERRY_HOST_LINK_D2H_MB_PER_S=20000", "FERRY_HOST_LINK_GUARD=1"});
  EXPECT_THAT(out, HasSubstr("accumulate: ok"));
}

TEST_P(OneSidedTest, QueuesMakeCalls) {
  RunWell(PrivateJob(Placement(), {"tests/e2e/ranks/queue_calls"}), {"FERRY_GPU_BACKEND=host"});
}

INSTANTIATE_TEST_SUITE_P(Placements, OneSidedTest,
                         testing::Values("1RankOn1", "3RanksOn1", "2RanksOn2", "4RanksOn2"),
                         [](const auto& placement) { return placement.param; });

}  // namespace
}  // namespace ferry::e2e
