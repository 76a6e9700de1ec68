// The MPI examples as whole jobs, on one node and on two.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/e2e/command.h"

namespace ferry::e2e {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

using Words = std::vector<std::string>;

constexpr char kHello[] = "examples/mpi_hello/mpi_hello";
constexpr char kPingpong[] = "examples/mpi_pingpong/mpi_pingpong";
constexpr char kJacobi[] = "examples/mpi_jacobi/mpi_jacobi";
constexpr char kCheckpoint[] = "examples/mpi_checkpoint/mpi_checkpoint";
constexpr char kWindows[] = "examples/mpi_windows/mpi_windows";

TEST(MpiHelloTest, GreetsAroundTheRing) {
  const std::string out = RunWell(PrivateJob({"-n", "3"}, {kHello}));
  const Words lines = SortedLines(out);
  ASSERT_EQ(lines.size(), 3U) << out;
  for (int rank = 0; rank < 3; ++rank) {
    const std::string& line = lines[static_cast<size_t>(rank)];
    EXPECT_THAT(line, StartsWith("rank " + std::to_string(rank) + " of 3 on "));
    EXPECT_THAT(line, HasSubstr(": rank " + std::to_string((rank + 2) % 3) + " says hello"));
  }
}

class MpiExamplesTest : public testing::TestWithParam<std::string> {};  // the number of nodes

TEST_P(MpiExamplesTest, PingpongSendsHostAndDeviceBuffers) {
  EXPECT_THAT(RunWell(PrivateJob({"-n", "2", "--nodes", GetParam()}, {kPingpong, "300000"})),
              AllOf(HasSubstr("host          1 bytes"), HasSubstr("host     262144 b"),
                    HasSubstr("device        1 bytes"), HasSubstr("device   262144 b"),
                    Not(HasSubstr("WRONG"))));
}

TEST_P(MpiExamplesTest, JacobiEqualsTheSerialSolve) {
  for (const std::string ranks : {"2", "4", "6"}) {
    const CommandResult result =
        RunCommand(PrivateJob({"-n", ranks, "--nodes", GetParam()}, {kJacobi, "41", "30", "0.05"}));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    // The steps do not depend on the number of ranks.
    EXPECT_THAT(result.out, AllOf(StartsWith("41 x 30 points on "), HasSubstr(": 542 steps of "),
                                  HasSubstr("from a serial solve 0: PASS\n")));
  }
}

TEST_P(MpiExamplesTest, WindowsHoldATableAndAHalo) {
  for (const std::string ranks : {"2", "4"}) {
    EXPECT_THAT(RunWell(PrivateJob({"-n", ranks, "--nodes", GetParam()}, {kWindows, "500"})),
                AllOf(HasSubstr("keys added"), HasSubstr("windows: PASS\n")));
  }
}

TEST_P(MpiExamplesTest, CheckpointsGoOnWithOtherNumbersOfRanks) {
  const TempDirectory folder;
  const std::string file = folder / "checkpoint";
  int steps = 0;
  for (const std::string ranks : {"4", "6", "2"}) {
    EXPECT_THAT(
        RunWell(PrivateJob({"-n", ranks, "--nodes", GetParam()}, {kCheckpoint, file, "20"})),
        AllOf(HasSubstr("steps " + std::to_string(steps) + " to " + std::to_string(steps + 20)),
              HasSubstr("ranks: PASS\n")));
    steps += 20;
  }
  // The file without its last byte is no checkpoint.
  std::filesystem::resize_file(file, std::filesystem::file_size(file) - 1);
  const CommandResult cut = RunCommand(PrivateJob({"-n", "2"}, {kCheckpoint, file}));
  EXPECT_NE(cut.exit_code, 0);
  EXPECT_THAT(cut.err, HasSubstr("the checkpoint is cut off"));
}

INSTANTIATE_TEST_SUITE_P(Nodes, MpiExamplesTest, testing::Values("1", "2"));

TEST(MpiMistakesTest, AreNamed) {
  const CommandResult alone = RunCommand(PrivateJob({"-n", "1"}, {kPingpong}));
  EXPECT_NE(alone.exit_code, 0);
  EXPECT_THAT(alone.err, HasSubstr("usage: mpi_pingpong [LARGEST_BYTES], 1 to 268435456, on two"));
  const CommandResult odd = RunCommand(PrivateJob({"-n", "2"}, {kJacobi, "4", "many"}));
  EXPECT_NE(odd.exit_code, 0);
  EXPECT_THAT(odd.err, HasSubstr("usage: mpi_jacobi [WIDTH HEIGHT [TOLERANCE]]"));
  const CommandResult small = RunCommand(PrivateJob({"-n", "4"}, {kJacobi, "3", "3"}));
  EXPECT_NE(small.exit_code, 0);
  EXPECT_THAT(small.err, HasSubstr("3 x 3 points are too few for 2 x 2 ranks"));
}

}  // namespace
}  // namespace ferry::e2e
