// The examples of ferry/halo.h as whole jobs: each compares what it has with a serial run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/e2e/command.h"

namespace ferry::e2e {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;

using Words = std::vector<std::string>;

constexpr char kLife[] = "examples/game_of_life/game_of_life";
constexpr char kHalo3d[] = "examples/halo3d/halo3d";
constexpr char kGun[] = "examples/game_of_life/glider_gun.rle";

struct Case {
  const char* name;
  Words placement;
  Words program;
  std::string said;
};

class HalosTest : public testing::TestWithParam<Case> {};

TEST_P(HalosTest, EqualTheSerialRun) {
  const auto& [name, placement, program, said] = GetParam();
  Command command(PrivateJob(placement, program));
  const CommandResult result = command.Wait();
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr(said), EndsWith(": PASS\n")));
  EXPECT_THAT(command.Leftovers(), IsEmpty());
}

const Case kCases[] = {
    {"LifeAlone", {"-n", "1"}, {kLife, "--generations", "200"}, "ranks 1 x 1, 200 generations"},
    {"LifeForAThousandGenerations",
     {"-n", "4", "--nodes", "2"},
     {kLife, "--generations", "1000"},
     "256 x 192 cells of a torus, rule B3/S23, ranks"},
    {"LifeOnAPlaneOfAnyGrid",
     {"-n", "6", "--nodes", "2"},
     {kLife, "--grid", "3x2", "--plane", "--size", "61x47", "--generations", "300", "--sends",
      "standard"},
     "61 x 47 cells of a plane, rule B3/S23, ranks 3 x 2, 300 generations, on 2 node(s), standard"},
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
     "ranks 1 x 2 x 2, 3 neighbours, 30 iterations, on 2 node(s)\nready "},
};
INSTANTIATE_TEST_SUITE_P(Jobs, HalosTest, testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

std::string TextOf(const std::filesystem::path& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

// A pattern is written as the format has it, and read again without a generation in between.
TEST(LifeFilesTest, WritesWhatItReads) {
  const auto folder = std::filesystem::path(testing::TempDir());
  const std::string first = folder / "first.rle";
  const std::string second = folder / "second.rle";
  const auto run = [](const Words& options) {
    Words program = {kLife};
    program.insert(program.end(), options.begin(), options.end());
    return RunCommand(PrivateJob({"-n", "2"}, program));
  };
  ASSERT_EQ(run({"--pattern", kGun, "--generations", "30", "--output", first}).exit_code, 0);
  ASSERT_EQ(run({"--pattern", first, "--size", "164x137", "--generations", "0", "--output", second})
                .exit_code,
            0);
  EXPECT_THAT(TextOf(first), HasSubstr("x = 164, y = 137, rule = B3/S23\n"));
  EXPECT_EQ(TextOf(first), TextOf(second));
}

TEST(LifeMistakesTest, EndWithASentence) {
  const auto expect = [](const Words& options, const std::string& said) {
    Words program = {kLife};
    program.insert(program.end(), options.begin(), options.end());
    const CommandResult result = RunCommand(PrivateJob({"-n", "2"}, program));
    EXPECT_NE(result.exit_code, 0);
    EXPECT_THAT(result.err, HasSubstr(said));
  };
  expect({"--grid", "3x1"}, "--grid 3 x 1 has places for 3 ranks, but the job has 2");
  expect({"--grid", "2"}, "--grid \"2\" is not a box such as 2x2");
  expect({"--sends", "now"}, "is not ready, standard, cpu or staged");
  expect({"--pattern", "/nowhere"}, "/nowhere cannot be read");
  expect({"--size", "8x8", "--pattern", kGun}, "make --size larger");
}

}  // namespace
}  // namespace ferry::e2e
