// ferryrun --output: a file for each stream of each rank.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/e2e/command.h"
#include "tests/support/processes.h"

namespace ferry::e2e {
namespace {

using testing::HasSubstr;

constexpr char kFerryrun[] = "tools/ferryrun/ferryrun";
constexpr char kFakeFerryd[] = "tests/tools/fake_ferryd";

// ferryrun --label FLAGS sh -c SCRIPT, with a private fake daemon.
Words Labelled(const Words& flags, const std::string& script) {
  return Joined(Joined({kFerryrun, "--private", "--ferryd", kFakeFerryd, "--label"}, flags),
                {"sh", "-c", script});
}

TEST(FerryrunOutputTest, WritesTheOutputOfEachRankToFiles) {
  const TempDirectory folder;
  const Words flags = {"-n", "2", "--nodes", "2", "--output", folder / "new"};
  const CommandResult result =
      RunCleanly(Labelled(flags, "printf \"out $FERRY_RANK\\n\\r\"; echo err $FERRY_RANK >&2"));
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.out + result.err, "");
  for (const char* rank : {"0", "1"}) {
    const std::string path = folder / "new/rank." + rank;
    EXPECT_EQ(tests::ReadFile(path + ".out"), std::string("out ") + rank + "\n\r");
    EXPECT_EQ(tests::ReadFile(path + ".err"), std::string("err ") + rank + "\n");
  }
  // ferryrun's own words stay here.
  EXPECT_THAT(RunCommand(Labelled({"--output", folder / "other"}, "echo x; exit 3")).err,
              HasSubstr("exited with code 3"));
}

TEST(FerryrunOutputTest, OutputOverwritesNothing) {
  const TempDirectory folder;
  const std::string victim = folder / "victim";
  std::ofstream(victim) << "mine";
  std::filesystem::create_symlink(victim, folder / "rank.1.err");
  const CommandResult result =
      RunCleanly(Labelled({"-n", "2", "--output", folder.path()}, "echo lost >&2"));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("--output " + folder.path() +
                                    ": rank.1.err is there already, and nothing is overwritten"));
  EXPECT_EQ(tests::ReadFile(victim), "mine");
  EXPECT_FALSE(std::filesystem::exists(folder / "rank.0.out"));  // nothing is left half made
  EXPECT_THAT(RunCommand(Labelled({"--output", victim}, "true")).err,
              HasSubstr("--output " + victim + ": cannot open it as a directory: Not a directory"));
  EXPECT_THAT(RunCommand(Labelled({"--output", folder / "no/such"}, "true")).err,
              HasSubstr("cannot make the directory: No such file"));
}

TEST(FerryrunOutputTest, OutputOfAJobThatCannotStartLeavesNoFiles) {
  const TempDirectory folder;
  const CommandResult result = RunCommand(
      {kFerryrun, "--private", "--ferryd", "/nonexistent", "--output", folder / "new", "true"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_FALSE(std::filesystem::exists(folder / "new"));
}

TEST(FerryrunOutputTest, AFullDiskEndsAJobWithOutput) {
  const TempDirectory folder;
  const CommandResult result = RunCleanly(
      {"/bin/sh", "-c",
       std::string("trap '' XFSZ; ulimit -f 1; exec ") + kFerryrun + " --private --ferryd " +
           kFakeFerryd + " --output " + folder / "new" + " sh -c 'seq 100000; sleep 1000'"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err,
              HasSubstr("cannot write to " + (folder / "new/rank.0.out") + ": File too large"));
}

}  // namespace
}  // namespace ferry::e2e
