// The stencils as whole jobs: every kind of memory, straight and staged by hand, on one node and
// two.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/e2e/command.h"

namespace ferry::e2e {
namespace {

using testing::AllOf;
using testing::Combine;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Values;

constexpr char kStencil3d[] = "examples/stencil3d/stencil3d";
constexpr char kStencil5[] = "examples/stencil5/stencil5";

using Words = std::vector<std::string>;

struct Case {
  Words placement;
  Words program;
  std::string title;  // how its report begins
};

class StencilsTest : public testing::TestWithParam<std::tuple<Case, std::string>> {};

TEST_P(StencilsTest, EqualTheSerialSolve) {
  const auto& [job, memory] = GetParam();
  Words program = job.program;
  program.insert(program.end(), {"--iterations", "12", "--compare", "--memory", memory});
  Command command(PrivateJob(job.placement, program));
  const CommandResult result = command.Wait();
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr(job.title), HasSubstr(memory + " memory\nstraight: "),
                                HasSubstr("\nstaged by hand: "), HasSubstr("\n  all "),
                                HasSubstr("\nstaged by hand / straight: "), EndsWith(": PASS\n")));
  EXPECT_THAT(command.Leftovers(), IsEmpty());
}

// Faces of 80 KB take other paths than small ones.
const Case kCases[] = {
    {{"-n", "1"}, {kStencil5, "--size", "40x30", "--threads", "2"}, "40 x 30 points, 1 ranks"},
    {{"-n", "4"}, {kStencil5, "--size", "66x50"}, "66 x 50 points, 4 ranks"},
    {{"-n", "8", "--nodes", "2"}, {kStencil5, "--size", "1282x18"}, "on 2 node(s)"},
    {{"-n", "1"}, {kStencil3d, "--size", "9"}, "9 x 9 x 9 points, ranks 1 x 1 x 1"},
    {{"-n", "4", "--nodes", "2"}, {kStencil3d, "--size", "17x12x14"}, "ranks 2 x 1 x 2"},
    {{"-n", "8"}, {kStencil3d, "--size", "20"}, "ranks 2 x 2 x 2"},
    {{"-n", "8", "--nodes", "2"}, {kStencil3d, "--size", "21x20x19"}, "ranks 2 x 2 x 2"},
    {{"-n", "4", "--nodes", "2"},
     {kStencil3d, "--size", "102x102x14", "--grid", "1x1x4"},
     "ranks 1 x 1 x 4"},
};
INSTANTIATE_TEST_SUITE_P(Jobs, StencilsTest,
                         Combine(testing::ValuesIn(kCases), Values("device", "heap", "private")));

TEST(StencilReportTest, OneWayAloneIsNotCompared) {
  for (const bool naive : {false, true}) {
    Words program = {kStencil3d, "--size", "8", "--iterations", "3"};
    if (naive) {
      program.push_back("--naive");
    }
    const CommandResult result = RunCommand(PrivateJob({"-n", "2"}, program));
    EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
    EXPECT_THAT(result.out, HasSubstr(naive ? "staged by hand: " : "straight: "));
    EXPECT_THAT(result.out, Not(HasSubstr(naive ? "straight" : "by hand")));
    // Two ranks, 3 iterations, one face of 6 x 6 doubles out and one in for each.
    EXPECT_EQ(
        result.out.find("copied by hand, through host memory: 3456 bytes") != std::string::npos,
        naive);
    EXPECT_THAT(result.out, EndsWith("stencil3d: PASS\n"));
  }
}

TEST(StencilReportTest, DoesNotClaimWhatWasNotCompared) {
  const CommandResult result =
      RunCommand(PrivateJob({"-n", "2"}, {kStencil5, "--size", "30", "--no-check"}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, EndsWith("DONE, not compared with a serial solve (--check does)\n"));
  EXPECT_THAT(result.out, Not(HasSubstr("PASS")));
}

struct Mistake {
  Words program;
  std::string message;
  int exit_code = 2;
};

TEST(StencilMistakeTest, IsNamedOnceAndEndsEveryRank) {
  for (const Mistake& mistake :
       {Mistake{{kStencil3d, "--grid", "2x2x1"}, "has places for 4 ranks, but the job has 3"},
        Mistake{{kStencil3d, "--size", "3"}, "no grid of 3 ranks fits 3 x 3 x 3 points"},
        Mistake{{kStencil5, "--size", "9x4"}, "3 ranks need at least 5 rows"},
        Mistake{{kStencil5, "--iterations", "-1"}, "--iterations -1: not a number from 0"},
        Mistake{{kStencil5, "--size", "100000", "--no-check"},
                "out of memory: device 0 cannot allocate",
                1}}) {
    Command command(PrivateJob({"-n", "3"}, mistake.program));
    const CommandResult result = command.Wait();
    EXPECT_EQ(result.exit_code, mistake.exit_code) << result.err;
    EXPECT_THAT(result.err, HasSubstr(mistake.message));
    EXPECT_THAT(result.out, Not(HasSubstr("PASS")));
    EXPECT_THAT(command.Leftovers(), IsEmpty());
  }
}

}  // namespace
}  // namespace ferry::e2e
