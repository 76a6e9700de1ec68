// ferrysim as its user meets it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/e2e/command.h"

namespace ferry::e2e {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

CommandResult Ferrysim(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "tools/ferrysim/ferrysim");
  return RunCommand(std::move(arguments));
}

std::string Contents(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST(FerrysimTest, SimulatesAHalo) {
  const CommandResult result = Ferrysim({"halo", "--ranks", "16", "--send", "regular", "--cells",
                                         "2048", "--entries", "16", "--iterations", "4"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("halo: 16 ranks, regular sends: "));
  EXPECT_THAT(result.out, HasSubstr("entries of a NIC in use: 16 at most"));
  EXPECT_THAT(result.out, HasSubstr("programs: 160 starts, all ended"));
}

TEST(FerrysimTest, SimulatesAnAllreduce) {
  const CommandResult result =
      Ferrysim({"allreduce", "--ranks", "32", "--bytes", "64K", "--on", "nics"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("allreduce: 32 ranks, 65536 bytes, "));
}

TEST(FerrysimTest, FasterNetworksAreFaster) {
  const auto time = [](const std::string& gbit) {
    const std::string out =
        Ferrysim({"allreduce", "--bytes", "1M", "--ranks", "16", "--gbit", gbit}).out;
    return std::stod(out.substr(out.rfind(": ", out.find(" us")) + 2));
  };
  EXPECT_LT(time("400"), time("50"));
}

TEST(FerrysimTest, SaysWhatIsWrong) {
  const struct {
    std::vector<std::string> arguments;
    const char* message;
  } cases[] = {
      {{}, "A subcommand is required"},
      {{"halo", "--send", "fast"}, "--send: fast not in {regular,ready,bounce,cpu}"},
      {{"halo", "--topology", "ring"}, "--topology: ring not in {dragonfly,fat_tree}"},
      {{"halo", "--ranks", "many"}, "--ranks"},
      {{"halo", "--ranks", "0"}, "0 ranks: 1 to 1048576 can be simulated"},
      {{"halo", "--gbit", "0"}, "--gbit"},
      {{"halo", "--ranks-per-node", "6"}, "6 ranks of a node cannot share 4 NICs evenly"},
      {{"halo", "--links", "0"}, "links between groups is 0"},
      {{"allreduce", "--algorithm", "magic"}, "there is no algorithm \"magic\" of allreduce"},
      {{"allreduce", "--bytes", "12"}, "a vector of 12 bytes"},
      {{"paper"}, "--out is required"},
      {{"paper", "--out", "/tmp", "--most-ranks", "8"}, "at most 8 ranks"},
  };
  for (const auto& wrong : cases) {
    const CommandResult result = Ferrysim(wrong.arguments);
    EXPECT_EQ(result.exit_code, 2) << wrong.message;
    EXPECT_THAT(result.err, HasSubstr(wrong.message));
    EXPECT_EQ(result.out, "");
  }
}

TEST(FerrysimTest, WritesThePlotsAlikeEachTime) {
  std::string directory = "/tmp/ferrysim-XXXXXX";
  ASSERT_NE(mkdtemp(directory.data()), nullptr);
  for (const char* run : {"/a", "/b"}) {
    const CommandResult result =
        Ferrysim({"paper", "--out", directory + run, "--most-ranks", "64", "--iterations", "2"});
    ASSERT_EQ(result.exit_code, 0) << result.err;
  }
  for (const char* name : {"strong_scaling.svg", "edge_length.svg", "beyond.svg", "entries.svg",
                           "allreduce.svg", "results.md"}) {
    const std::string text = Contents(fs::path(directory) / "a" / name);
    EXPECT_FALSE(text.empty()) << name;
    EXPECT_EQ(text, Contents(fs::path(directory) / "b" / name)) << name;
    EXPECT_EQ(text.find("nan"), text.npos) << name;
    EXPECT_EQ(text.find("inf"), text.npos) << name;
  }
  EXPECT_THAT(Contents(fs::path(directory) / "a" / "results.md"),
              HasSubstr("2 GB: us for an iteration"));
  fs::remove_all(directory);
}

}  // namespace
}  // namespace ferry::e2e
