// Ranks whose kernels run on an OpenCL run time, by the real libraries and daemons.
#include <gmock/gmock.h>

#include <string>

#include "tests/e2e/command.h"
#include "tests/opencl/runtime.h"
#include "tests/support/slice.h"

namespace ferry::opencl {
namespace {

using e2e::Words;

// Groups that run at once, however many cores there are: some wait for others.
constexpr char kGroups[] = "4";

// The launches: GROUPSxSIZE.
Words Shapes() {
  return tests::RunsAll() ? Words{"1x1", "4x2", "3x33", "2x256"} : Words{"4x2", "1x32"};
}

class RanksTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (const std::string why = WhyNone(); !why.empty()) {
      GTEST_SKIP() << why;
    }
  }

  // On that many nodes.
  void Expect(const Words& program) {
    // Loops over the threads of a group: for groups of two PoCL 3.1 copies their code, and aborts.
    const Words variables = {"FERRY_GPU_BACKEND=host", "POCL_CACHE_DIR=" + (cache_ / "pocl"),
                             "POCL_WORK_GROUP_METHOD=workitemloops",
                             std::string("POCL_MAX_PTHREAD_COUNT=") + kGroups};
    EXPECT_THAT(e2e::RunWell(e2e::PrivateJob({"-n", "2", "--nodes", GetParam()},
                                             e2e::With(variables, e2e::Joined(program, Shapes())))),
                testing::HasSubstr("all kernels were right"));
  }

  const e2e::TempDirectory cache_;
};

TEST_P(RanksTest, KernelsAskTheirDaemon) { Expect({"tests/opencl/ranks/ring"}); }
TEST_P(RanksTest, KernelsUseOpenShmem) { Expect({"tests/opencl/ranks/shmem"}); }
TEST_P(RanksTest, KernelsReadyPartitions) { Expect({"tests/opencl/ranks/partitioned", "auto"}); }

INSTANTIATE_TEST_SUITE_P(Nodes, RanksTest, testing::Values("1", "2"));

}  // namespace
}  // namespace ferry::opencl
