// The OpenSHMEM examples as whole jobs of one node.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/e2e/command.h"

namespace ferry::e2e {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

constexpr char kHello[] = "examples/shmem_hello/shmem_hello";
constexpr char kJacobi[] = "examples/shmem_jacobi/shmem_jacobi";
constexpr char kDot[] = "examples/shmem_dot/shmem_dot";
constexpr char kHistogram[] = "examples/shmem_histogram/shmem_histogram";

TEST(ShmemHelloTest, GreetsAroundTheRing) {
  EXPECT_EQ(SortedLines(RunWell(PrivateJob({"-n", "3"}, {kHello}))),
            Words({"PE 0 of 3: PE 2 says hello", "PE 1 of 3: PE 0 says hello",
                   "PE 2 of 3: PE 1 says hello"}));
}

// The number of PEs. Five do not divide the buckets evenly.
class ShmemHistogramTest : public testing::TestWithParam<int> {};

TEST_P(ShmemHistogramTest, EqualsASerialSort) {
  const std::string pes = std::to_string(GetParam());
  // One key for each PE: some PEs have nothing to send, or nothing to sort.
  for (const int keys : {20000, 1}) {
    std::string beginning = pes;
    beginning.append(" PEs, ")
        .append(std::to_string(keys * GetParam()))
        .append(" keys: counted in ");
    EXPECT_THAT(RunWell(PrivateJob({"-n", pes}, {kHistogram, std::to_string(keys)})),
                AllOf(StartsWith(beginning), HasSubstr("; equal to a serial sort: PASS\n")));
  }
}

INSTANTIATE_TEST_SUITE_P(Pes, ShmemHistogramTest, testing::Values(2, 5));

// Kernels: several PEs share a device, or have one each.
class ShmemKernelsTest : public testing::TestWithParam<int> {};

TEST_P(ShmemKernelsTest, JacobiEqualsASerialRun) {
  const std::string pes = std::to_string(GetParam());
  for (const Words& words : {Words{}, Words{"3", "1", "7"}, Words{"40", "3", "20"}}) {
    const Words job = PrivateJob({"-n", pes}, Joined({kJacobi}, words));
    EXPECT_THAT(RunWell(With({"FERRY_HOST_GPU_COUNT=2"}, job)),
                AllOf(StartsWith(pes + " PEs, "), HasSubstr("; equal to a serial run: PASS\n")));
  }
}

TEST_P(ShmemKernelsTest, DotProductIsExact) {
  const std::string pes = std::to_string(GetParam());
  for (const char* const elements : {"1000", "1"}) {
    const Words job = PrivateJob({"-n", pes}, {kDot, elements});
    EXPECT_THAT(RunWell(With({"FERRY_HOST_GPU_COUNT=2"}, job)),
                AllOf(StartsWith(pes + " PEs, " + elements), HasSubstr(": PASS\n")));
  }
}

INSTANTIATE_TEST_SUITE_P(Pes, ShmemKernelsTest, testing::Values(1, 2, 3));

TEST(ShmemMistakesTest, AreNamed) {
  for (const Words& words : {Words{"many"}, Words{"12x"}, Words{"0"}, Words{"16777217"}, Words{""},
                             Words{"99999999999999999999"}, Words{"8", "9"}}) {
    const CommandResult result = RunCommand(PrivateJob({"-n", "2"}, Joined({kHistogram}, words)));
    EXPECT_NE(result.exit_code, 0) << words.front();
    EXPECT_THAT(result.out, IsEmpty());
    EXPECT_THAT(result.err, HasSubstr("usage: shmem_histogram [KEYS_PER_PE], a number from 1 to "
                                      "16777216"));
  }
}

TEST(ShmemMistakesTest, OfProgramsWithKernelsAreNamed) {
  for (const Words& words : {Words{kJacobi, "5"}, Words{kJacobi, "2", "1", "1"}, Words{kDot, "0"},
                             Words{kDot, "8", "9"}, Words{kDot, "x"}}) {
    const CommandResult result = RunCommand(PrivateJob({"-n", "2"}, words));
    EXPECT_NE(result.exit_code, 0) << words.back();
    EXPECT_THAT(result.err, HasSubstr("usage: shmem_"));
  }
}

}  // namespace
}  // namespace ferry::e2e
