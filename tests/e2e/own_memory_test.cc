// Device memory that programs allocate themselves, on every vendor's backend over its stand-in in
// software (tests/fixtures).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <tuple>

#include "tests/e2e/command.h"
#include "tests/e2e/vendors.h"

namespace ferry::e2e {
namespace {

using testing::HasSubstr;

class OwnMemoryTest : public testing::TestWithParam<std::tuple<Vendor, bool>> {
 protected:
  static Words Placement() {
    return std::get<1>(GetParam()) ? Words{"-n", "2", "--nodes", "2"} : Words{"-n", "2"};
  }
};

TEST_P(OwnMemoryTest, IsSentAndReceived) {
  const Vendor& vendor = std::get<0>(GetParam());
  EXPECT_THAT(RunWell(PrivateJob(Placement(), {"tests/e2e/ranks/own_memory", vendor.name}),
                      vendor.variables()),
              HasSubstr("own memory: ok\n"));
}

// The program loads a library that Ferry has not found, or was told not to use.
TEST_P(OwnMemoryTest, IsFoundLate) {
  const Vendor& vendor = std::get<0>(GetParam());
  const std::string given = vendor.library.front().substr(vendor.library.front().find('=') + 1);
  Words variables = {"FERRY_GPU_BACKEND=auto"};
  Words program = {"tests/e2e/ranks/own_memory", vendor.name};
  if (vendor.name == "level_zero") {  // the loader is installed
    variables = Joined(vendor.library, {"FERRY_GPU_BACKEND=host"});
  } else {
    const std::string path =
        testing::TempDir() + "/" + (vendor.name == "cuda" ? "libcuda.so.1" : "libamdhip64.so.6");
    std::filesystem::remove(path);
    std::filesystem::create_symlink(given, path);
    program.push_back(path);
  }
  EXPECT_THAT(RunWell(PrivateJob(Placement(), program), variables), HasSubstr("own memory: ok\n"));
}

// Few are known at a time, and those that are used again are known anew.
TEST(OwnMemoryLimitTest, ManyAllocationsTakeTurns) {
  const Vendor cuda = Vendors().front();
  EXPECT_THAT(RunWell(PrivateJob({"-n", "2"}, {"tests/e2e/ranks/own_memory", cuda.name, "many"}),
                      cuda.variables()),
              HasSubstr("own memory: ok\n"));
}

INSTANTIATE_TEST_SUITE_P(All, OwnMemoryTest,
                         testing::Combine(testing::ValuesIn(Vendors()), testing::Bool()),
                         [](const auto& info) {
                           return std::get<0>(info.param).name +
                                  (std::get<1>(info.param) ? "TwoNodes" : "OneNode");
                         });

}  // namespace
}  // namespace ferry::e2e
