// Whole jobs over the real daemon and the real library.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/e2e/command.h"

namespace ferry::e2e {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

constexpr char kHeat[] = "examples/heat2d/heat2d";

std::string TempFile(const std::string& name) { return testing::TempDir() + name; }

TEST(JobTest, EveryRankGreetsTheNext) {
  EXPECT_THAT(SortedLines(RunWell(PrivateJob({"-n", "3", "--nodes", "2", "examples/hello/hello"}))),
              ElementsAre("rank 0 of 3: rank 2 says hello", "rank 1 of 3: rank 0 says hello",
                          "rank 2 of 3: rank 1 says hello"));
}

// A rank has one socket to its daemon, and one thread beside the program's own.
TEST(JobTest, ARankCarriesNoGrpc) {
  EXPECT_THAT(SortedLines(RunWell(PrivateJob({"-n", "2", "tests/e2e/ranks/light"}))),
              ElementsAre("rank 0: 2 threads, 0 libraries of gRPC",
                          "rank 1: 2 threads, 0 libraries of gRPC"));
}

// Where one thread was not to be had, gRPC's calls waited for ever.
TEST(JobTest, RanksWithLittleAddressSpaceDoNotHang) {
  for (int round = 0; round < 10; ++round) {
    const std::string said = RunWell(
        PrivateJob({"-n", "2", "sh", "-c", "ulimit -v 400000; exec tests/e2e/ranks/light"}));
    EXPECT_THAT(SortedLines(said).size(), 2U) << round;
  }
}

// Others fail because of it, and may be the first to end.
TEST(JobTest, AnAbortHasItsOwnExitCode) {
  for (const std::string who : {"0", "3"}) {
    const CommandResult result =
        RunCleanly(PrivateJob({"-n", "4", "--nodes", "2", "tests/e2e/ranks/ends", "abort", who}));
    EXPECT_EQ(result.exit_code, 37) << result.err;
    EXPECT_THAT(result.err,
                HasSubstr("ferryrun: rank " + who + " aborted the job with exit code 37\n"));
  }
}

TEST(JobTest, ADescriptorThatIsNoPipeIsNotWrittenTo) {
  const std::string file = TempFile("not_a_pipe");
  Command command(
      PrivateJob({"-n", "1", "sh", "-c",
                  "exec 9>" + file + "; FERRY_ABORT_FD=9 exec tests/e2e/ranks/ends abort 0"}));
  EXPECT_EQ(command.Wait().exit_code, 37);
  EXPECT_EQ(std::filesystem::file_size(file), 0U);
}

// In a new network namespace no interface is up.
TEST(JobTest, OneNodeNeedsNoNetwork) {
  const Words unshared = {"/usr/bin/unshare", "-n"};
  if (RunCommand(Joined(unshared, {"true"})).exit_code != 0) {
    GTEST_SKIP() << "network namespaces are not permitted here";
  }
  EXPECT_THAT(
      SortedLines(RunWell(Joined(unshared, PrivateJob({"-n", "2", "examples/hello/hello"})))),
      ElementsAre("rank 0 of 2: rank 1 says hello", "rank 1 of 2: rank 0 says hello"));
  const CommandResult several =
      RunCleanly(Joined(unshared, PrivateJob({"-n", "2", "--nodes", "2", "examples/hello/hello"})));
  EXPECT_EQ(several.exit_code, 1);
  EXPECT_THAT(several.err,
              AllOf(HasSubstr(" has 2 nodes, but this one has no network (no interface "
                              "has 127.0.0.1; is the loopback interface down?)\n"),
                    Not(HasSubstr("did not stop as it should"))));
  // All who ask are told.
  EXPECT_THAT(RunWell(Joined(unshared, PrivateJob({"sh", "-c", "tools/ferryctl/ferryctl status"}))),
              HasSubstr("provider none (no interface has 127.0.0.1"));
}

// ferryd's own streams, which its ranks do not see.
TEST(JobTest, ADaemonWithoutStreamsHasOthersThanItsSockets) {
  const TempDirectory place;
  Command daemon(
      {"/bin/sh", "-c", "exec daemon/ferryd 0<&- >&- 2>&-"},
      {"FERRY_RUN_DIRECTORY=" + (place / "run"), "FERRY_FABRIC_PORT=0", "FERRY_CONTROL_PORT=0"});
  ASSERT_TRUE(Eventually([&] { return std::filesystem::exists(place / "run/ferryd.json"); }));
  for (const char* stream : {"0", "1", "2"}) {
    EXPECT_EQ(
        std::filesystem::read_symlink("/proc/" + std::to_string(daemon.pid()) + "/fd/" + stream),
        "/dev/null");
  }
  daemon.Signal(SIGTERM);
  EXPECT_EQ(daemon.Wait().exit_code, 0);
}

class PointToPointTest : public testing::TestWithParam<Words> {};

TEST_P(PointToPointTest, KeepsItsPromises) {
  EXPECT_EQ(RunWell(PrivateJob(GetParam(), {"tests/e2e/ranks/point_to_point"})),
            "point_to_point: ok\n");
}

// The small heap has room for the program's own requests, but for few copies of private buffers.
INSTANTIATE_TEST_SUITE_P(
    Placements, PointToPointTest,
    testing::Values(Words{"-n", "1"}, Words{"-n", "2"}, Words{"-n", "2", "--nodes", "2"},
                    Words{"-n", "4", "--nodes", "2"},
                    Words{"-n", "2", "--nodes", "2", "/usr/bin/env", "FERRY_HEAP_BYTES=12582912"}));

class HeatTest : public testing::TestWithParam<Words> {};

TEST_P(HeatTest, EqualsTheSerialSolve) {
  const std::string picture = TempFile("heat.png");
  std::filesystem::remove(picture);
  EXPECT_THAT(RunWell(PrivateJob(GetParam(), {kHeat, "--iterations", "50", "--output", picture})),
              AllOf(HasSubstr("largest difference 0 (must be 0)"), HasSubstr("\n  all "),
                    EndsWith("\ndemo: PASS\n")));
  EXPECT_TRUE(std::filesystem::exists(picture));
}

INSTANTIATE_TEST_SUITE_P(Placements, HeatTest,
                         testing::Values(Words{"-n", "1"}, Words{"-n", "3"},
                                         Words{"-n", "4", "--nodes", "2"},
                                         Words{"-n", "3", "--nodes", "3"}));

TEST(HeatImageTest, TakesAnImageOfOddSize) {
  const std::string image = TempFile("odd.pgm");
  std::ofstream file(image);
  file << "P2 7 9 100\n";
  for (int i = 0; i < 63; ++i) {
    file << i * 37 % 101 << ' ';
  }
  file.close();
  EXPECT_THAT(
      RunWell(PrivateJob({"-n", "4", kHeat, "--image", image, "--output", TempFile("odd.png")})),
      HasSubstr("heat2d: 7 x 9 points"));
}

struct BadImage {
  std::string bytes;
  std::string message;
};

TEST(HeatImageTest, SaysWhatIsWrongWithAnImage) {
  for (const BadImage& bad :
       {BadImage{"", "the file is empty"}, BadImage{"P5 9 9 255 abc", "truncated: 3 of 81 pixels"},
        BadImage{"P2 3 3 1 0 0 0 0 1 0 0 0 0",
                 "3 x 3 is too small: 2 ranks need at least 3 x 4"}}) {
    const std::string image = TempFile("bad");
    std::ofstream(image, std::ios::binary) << bad.bytes;
    const CommandResult result = RunCleanly(PrivateJob({"-n", "2", kHeat, "--image", image}));
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_THAT(result.out, AllOf(HasSubstr("demo: FAIL: " + image), HasSubstr(bad.message)));
    EXPECT_THAT(result.out, Not(HasSubstr("PASS")));
  }
}

}  // namespace
}  // namespace ferry::e2e
