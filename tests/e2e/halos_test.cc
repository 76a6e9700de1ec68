// Halo exchanges as whole jobs: of all shapes, the examples of ferry/halo.h, and the stencils with
// every kind of memory. Each compares what it has with a serial run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/e2e/command.h"
#include "tests/support/processes.h"
#include "tests/support/slice.h"

namespace ferry::e2e {
namespace {

using testing::AllOf;
using testing::Combine;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::Values;

// ---- All shapes

struct Layout {
  int ranks;
  int nodes;
};

class HaloTest : public testing::TestWithParam<Layout> {};

TEST_P(HaloTest, EveryCellIsThatOfTheWholeGrid) {
  RunWell(PrivateJob(
      {"-n", std::to_string(GetParam().ranks), "--nodes", std::to_string(GetParam().nodes)},
      {"tests/e2e/ranks/halo"}));
}

INSTANTIATE_TEST_SUITE_P(Layouts, HaloTest,
                         testing::ValuesIn(tests::Slice<Layout>({{1, 1}, {2, 2}, {3, 1}, {6, 2}},
                                                                {{2, 1}, {4, 2}, {8, 1}, {8, 2}})),
                         [](const auto& info) {
                           return std::to_string(info.param.ranks) + "Ranks" +
                                  std::to_string(info.param.nodes) + "Nodes";
                         });

TEST(HaloCellsTest, SendsThatWaitUntilTheReceiverIsReady) {
  RunWell(PrivateJob({"-n", "4", "--nodes", "2"},
                     With({"FERRY_MATCHED_CELL_BYTES=0"}, {"tests/e2e/ranks/halo"})));
}

TEST(HaloByCpuTest, MessagesThatComeBeforeTheLastOneIsUnpackedHurtNothing) {
  RunWell(PrivateJob({"-n", "2"}, {"tests/e2e/ranks/halo", "late"}));
}

TEST(HaloMistakesTest, NeighboursThatDisagreeBothSaySo) {
  RunWell(PrivateJob({"-n", "2"}, {"tests/e2e/ranks/halo", "disagree"}));
}

TEST(HaloDeathTest, StreamsAndHalosOfTheOthersEnd) {
  for (const std::string nodes : {"1", "2"}) {
    for (const Words& sends : {Words{}, Words{"standard"}}) {
      const CommandResult result =
          RunCleanly(PrivateJob({"--keep-going", "-n", "2", "--nodes", nodes},
                                Joined({"tests/e2e/ranks/halo", "death"}, sends)));
      EXPECT_NE(result.exit_code, 0);
      EXPECT_THAT(result.out, HasSubstr("rank 0 has seen it")) << result.err;
    }
  }
}

// ---- The examples of ferry/halo.h

constexpr char kLife[] = "examples/game_of_life/game_of_life";
constexpr char kHalo3d[] = "examples/halo3d/halo3d";
constexpr char kGun[] = "examples/game_of_life/glider_gun.rle";

struct Example {
  const char* name;
  Words placement;
  Words program;
  std::string said;
};

class HalosTest : public testing::TestWithParam<Example> {};

TEST_P(HalosTest, EqualTheSerialRun) {
  const auto& [name, placement, program, said] = GetParam();
  EXPECT_THAT(RunWell(PrivateJob(placement, program)),
              AllOf(HasSubstr(said), EndsWith(": PASS\n")));
}

const Example kExamples[] = {
    {"LifeAlone", {"-n", "1"}, {kLife, "--generations", "200"}, "ranks 1 x 1, 200 generations"},
    {"LifeForAThousandGenerations",
     {"-n", "4", "--nodes", "2"},
     {kLife, "--generations", "1000"},
     "256 x 192 cells of a torus, rule B3/S23, ranks"},
    {"LifeOnAPlaneOfAnyGrid",
     {"-n", "6", "--nodes", "2"},
     {kLife, "--grid", "3x2", "--plane", "--size", "61x47", "--generations", "300", "--sends",
      "standard"},
     "61 x 47 cells of a plane, rule B3/S23, ranks 3 x 2, 300 generations, on 2 nodes, standard"},
    {"LifeByCpus", {"-n", "3"}, {kLife, "--generations", "100", "--sends", "cpu"}, "cpu sends"},
    {"LifeOfAPattern",
     {"-n", "8", "--nodes", "2"},
     {kLife, "--pattern", kGun, "--generations", "1000", "--plane"},
     "164 x 137 cells of a plane"},
    {"Halo3dAllWays",
     {"-n", "8"},
     {kHalo3d, "--size", "14x13x12", "--iterations", "20"},
     "ranks 2 x 2 x 2, 26 neighbours"},
    {"Halo3dOnTwoNodes",
     {"-n", "4", "--nodes", "2"},
     {kHalo3d, "--size", "40x9x8", "--open", "--grid", "1x2x2", "--iterations", "30"},
     "ranks 1 x 2 x 2, 3 neighbours, 30 iterations, on 2 nodes\nready "},
};
INSTANTIATE_TEST_SUITE_P(Jobs, HalosTest, testing::ValuesIn(kExamples),
                         [](const auto& info) { return info.param.name; });

Words Life(const Words& options) { return PrivateJob({"-n", "2"}, Joined({kLife}, options)); }

// A pattern is written as the format has it, and read again without a generation in between.
TEST(LifeFilesTest, WritesWhatItReads) {
  const std::string first = testing::TempDir() + "/first.rle";
  const std::string second = testing::TempDir() + "/second.rle";
  RunWell(Life({"--pattern", kGun, "--generations", "30", "--output", first}));
  RunWell(
      Life({"--pattern", first, "--size", "164x137", "--generations", "0", "--output", second}));
  EXPECT_THAT(tests::ReadFile(first), HasSubstr("x = 164, y = 137, rule = B3/S23\n"));
  EXPECT_EQ(tests::ReadFile(first), tests::ReadFile(second));
}

TEST(LifeMistakesTest, EndWithASentence) {
  const auto expect = [](const Words& options, const std::string& said) {
    const CommandResult result = RunCommand(Life(options));
    EXPECT_NE(result.exit_code, 0);
    EXPECT_THAT(result.err, HasSubstr(said));
  };
  expect({"--grid", "3x1"}, "--grid 3 x 1 has places for 3 ranks, but the job has 2");
  expect({"--grid", "2"}, "--grid \"2\" is not a box such as 2x2");
  expect({"--sends", "now"}, "is not ready, standard, cpu or staged");
  expect({"--pattern", "/nowhere"}, "/nowhere cannot be read");
  expect({"--size", "8x8", "--pattern", kGun}, "make --size larger");
}

// ---- Stencils: straight, and staged by hand

constexpr char kStencil3d[] = "examples/stencil3d/stencil3d";
constexpr char kStencil5[] = "examples/stencil5/stencil5";

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
  EXPECT_THAT(RunWell(PrivateJob(job.placement, program)),
              AllOf(HasSubstr(job.title), HasSubstr(memory + " memory\nstraight: "),
                    HasSubstr("\nstaged by hand: "), HasSubstr("\n  all "),
                    HasSubstr("\nstaged by hand / straight: "), EndsWith(": PASS\n")));
}

// Faces of 80 KB take other paths than small ones.
const Case kCases[] = {
    {{"-n", "1"}, {kStencil5, "--size", "40x30", "--threads", "2"}, "40 x 30 points, 1 ranks"},
    {{"-n", "4"}, {kStencil5, "--size", "66x50"}, "66 x 50 points, 4 ranks"},
    {{"-n", "8", "--nodes", "2"}, {kStencil5, "--size", "1282x18"}, "on 2 nodes"},
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
    const std::string out = RunWell(PrivateJob({"-n", "2"}, program));
    EXPECT_THAT(out, HasSubstr(naive ? "staged by hand: " : "straight: "));
    EXPECT_THAT(out, Not(HasSubstr(naive ? "straight" : "by hand")));
    // Two ranks, 3 iterations, one face of 6 x 6 doubles out and one in for each.
    EXPECT_EQ(out.find("copied by hand, through host memory: 3456 bytes") != std::string::npos,
              naive);
    EXPECT_THAT(out, EndsWith("stencil3d: PASS\n"));
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
    const CommandResult result = RunCleanly(PrivateJob({"-n", "3"}, mistake.program));
    EXPECT_EQ(result.exit_code, mistake.exit_code) << result.err;
    EXPECT_THAT(result.err, HasSubstr(mistake.message));
    EXPECT_THAT(result.out, Not(HasSubstr("PASS")));
  }
}

}  // namespace
}  // namespace ferry::e2e
