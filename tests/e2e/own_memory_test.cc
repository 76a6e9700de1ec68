// Device memory that programs allocate themselves, on every vendor's backend over its stand-in in
// software (tests/fixtures).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

INSTANTIATE_TEST_SUITE_P(All, OwnMemoryTest,
                         testing::Combine(testing::ValuesIn(Vendors()), testing::Bool()),
                         [](const auto& info) {
                           return std::get<0>(info.param).name +
                                  (std::get<1>(info.param) ? "TwoNodes" : "OneNode");
                         });

}  // namespace
}  // namespace ferry::e2e
