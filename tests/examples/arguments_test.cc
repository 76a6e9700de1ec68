#include "examples/common/arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace examples {
namespace {

using testing::HasSubstr;

constexpr StencilProgram kPlane = {"plane", "a plane", {20, 10, 1}, 2, true};
constexpr StencilProgram kSpace = {"space", "a space", {9, 9, 9}, 3, false};

struct Parsed {
  bool good = false;
  int exit_code = 0;
  StencilArguments arguments;
  std::string error;
};

Parsed Parse(const StencilProgram& program, std::vector<std::string> flags) {
  flags.insert(flags.begin(), program.name);
  std::vector<char*> argv;
  argv.reserve(flags.size() + 1);
  for (std::string& flag : flags) {
    argv.push_back(flag.data());
  }
  argv.push_back(nullptr);
  Parsed parsed;
  testing::internal::CaptureStderr();
  parsed.good = ParseArguments(static_cast<int>(flags.size()), argv.data(), program, true,
                               &parsed.arguments, &parsed.exit_code);
  parsed.error = testing::internal::GetCapturedStderr();
  return parsed;
}

std::string MistakeIn(const StencilProgram& program, const std::vector<std::string>& flags) {
  const Parsed parsed = Parse(program, flags);
  EXPECT_FALSE(parsed.good);
  EXPECT_EQ(parsed.exit_code, 2);
  return parsed.error;
}

TEST(StencilArgumentsTest, HaveDefaults) {
  const Parsed parsed = Parse(kPlane, {});
  ASSERT_TRUE(parsed.good);
  EXPECT_EQ(parsed.arguments.points, kPlane.points);
  EXPECT_EQ(parsed.arguments.memory, Memory::kDevice);
  EXPECT_EQ(parsed.arguments.mode, Mode::kDirect);
  EXPECT_FALSE(parsed.arguments.check.has_value());
}

TEST(StencilArgumentsTest, AreRead) {
  const Parsed parsed = Parse(kSpace, {"--size=5x6x7", "--grid", "1x2x3", "--iterations", "0",
                                       "--memory", "heap", "--compare", "--no-check"});
  ASSERT_TRUE(parsed.good) << parsed.error;
  EXPECT_EQ(parsed.arguments.points, (Triple{5, 6, 7}));
  EXPECT_EQ(parsed.arguments.grid, (Triple{1, 2, 3}));
  EXPECT_EQ(parsed.arguments.iterations, 0);
  EXPECT_EQ(parsed.arguments.memory, Memory::kHeap);
  EXPECT_EQ(parsed.arguments.mode, Mode::kCompared);
  EXPECT_EQ(parsed.arguments.check, false);
  EXPECT_EQ(Parse(kPlane, {"--threads", "3"}).arguments.threads, 3);
}

TEST(StencilArgumentsTest, OneNumberStandsForAllAxes) {
  EXPECT_EQ(Parse(kSpace, {"--size", "12"}).arguments.points, (Triple{12, 12, 12}));
  EXPECT_EQ(Parse(kPlane, {"--size", "12"}).arguments.points, (Triple{12, 12, 1}));
}

TEST(StencilArgumentsTest, MistakesAreNamed) {
  for (const char* size : {"2", "-5", "5x5", "5x5x5x5", "5x2x5", "5x5x", "x5x5", "5 x 5 x 5", "",
                           "1048577", "99999999999"}) {
    EXPECT_THAT(MistakeIn(kSpace, {"--size", size}),
                HasSubstr(std::string("space: --size ") + size +
                          ": must be one number, or 3 with an x between them, from 3"));
  }
  EXPECT_EQ(MistakeIn(kSpace, {"--iterations", "-1"}),
            "space: --iterations -1: not a number from 0\n");
  EXPECT_EQ(MistakeIn(kSpace, {"--iterations", "1e3"}),
            "space: --iterations 1e3: not a number from 0\n");
  EXPECT_EQ(MistakeIn(kSpace, {"--memory", "gpu"}),
            "space: --memory gpu: must be device, heap or private\n");
  EXPECT_EQ(MistakeIn(kSpace, {"--memory", "pinned"}),
            "space: --memory pinned: must be device, heap or private\n");
  EXPECT_EQ(MistakeIn(kPlane, {"--threads", "0"}), "plane: --threads 0: not a number from 1\n");
  EXPECT_THAT(MistakeIn(kSpace, {"--threads", "2"}), HasSubstr("takes no threads"));
  EXPECT_THAT(MistakeIn(kPlane, {"--grid", "2x2"}), HasSubstr("takes no grid"));
  EXPECT_THAT(MistakeIn(kSpace, {"--grid", "2x0x2"}), HasSubstr("must be 3 numbers from 1"));
  EXPECT_THAT(MistakeIn(kSpace, {"--grid", "4"}), HasSubstr("must be 3 numbers from 1"));
  EXPECT_EQ(
      MistakeIn(kSpace, {"--naive", "--compare"}),
      "space: --compare: --naive and --compare exclude each other; --compare runs both ways\n");
  EXPECT_EQ(MistakeIn(kSpace, {"8"}), "space: unexpected argument 8 (--help lists the flags)\n");
  EXPECT_THAT(MistakeIn(kSpace, {"--sizes", "8"}), HasSubstr("unrecognized option '--sizes'"));
  EXPECT_THAT(MistakeIn(kSpace, {"--size"}), HasSubstr("requires an argument"));
}

TEST(StencilArgumentsTest, HelpEndsTheProgramWell) {
  testing::internal::CaptureStdout();
  const Parsed parsed = Parse(kSpace, {"--help"});
  const std::string help = testing::internal::GetCapturedStdout();
  EXPECT_FALSE(parsed.good);
  EXPECT_EQ(parsed.exit_code, 0);
  EXPECT_THAT(help, HasSubstr("--grid"));
  EXPECT_THAT(help, HasSubstr("(9 x 9 x 9)"));
}

}  // namespace
}  // namespace examples
