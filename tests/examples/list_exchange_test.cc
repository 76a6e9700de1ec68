// examples/sycl_exchange by a stand-in for SYCL, and what it does with the list of a queue on lists
// that are not in order by themselves: on the stand-in of Level Zero.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/e2e/command.h"

namespace ferry::e2e {
namespace {

// The number of nodes.
class ListExchangeTest : public testing::TestWithParam<std::string> {
 protected:
  static void Expect(const std::string& program) {
    const std::string driver =
        std::filesystem::absolute("tests/fixtures/level_zero/libferry_level_zero.so").string();
    const std::string out = RunWell(PrivateJob({"-n", "2", "--nodes", GetParam()}, {program}),
                                    {"FERRY_GPU_BACKEND=auto", "ZE_ENABLE_ALT_DRIVERS=" + driver,
                                     "ZE_FIXTURE=atomics,imports"});
    EXPECT_THAT(SortedLines(out), testing::ElementsAre("rank 0: right", "rank 1: right"));
  }
};

TEST_P(ListExchangeTest, IsOrderedWithWhatElseIsOnTheList) {
  Expect("tests/examples/list_exchange");
}
TEST_P(ListExchangeTest, IsOrderedWithTheKernelsOfAQueueOfSycl) {
  Expect("tests/examples/sycl_exchange");
}

INSTANTIATE_TEST_SUITE_P(Nodes, ListExchangeTest, testing::Values("1", "2"));

}  // namespace
}  // namespace ferry::e2e
