// What examples/sycl_exchange does with the list of a queue of SYCL's, with lists of Level Zero's
// stand-in.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/e2e/command.h"

namespace ferry::e2e {
namespace {

class ListExchangeTest : public testing::TestWithParam<std::string> {};  // the number of nodes

TEST_P(ListExchangeTest, IsOrderedWithWhatElseIsOnTheList) {
  const std::string driver =
      std::filesystem::absolute("tests/fixtures/level_zero/libferry_level_zero.so").string();
  const std::string out = RunWell(
      PrivateJob({"-n", "2", "--nodes", GetParam()}, {"tests/examples/list_exchange"}),
      {"FERRY_GPU_BACKEND=auto", "ZE_ENABLE_ALT_DRIVERS=" + driver, "ZE_FIXTURE=atomics,imports"});
  EXPECT_THAT(SortedLines(out), testing::ElementsAre("rank 0: right", "rank 1: right"));
}

INSTANTIATE_TEST_SUITE_P(Nodes, ListExchangeTest, testing::Values("1", "2"));

}  // namespace
}  // namespace ferry::e2e
