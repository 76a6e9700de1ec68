// MPI's facts for programs about their start: which of the job's programs they are, for how many
// there is room, and the effect of errors at first.
#include <gmock/gmock.h>

#include "tests/mpi/e2e/mpi_job.h"

namespace ferry::mpi_tests {
namespace {

using testing::HasSubstr;

constexpr char kProgram[] = "tests/mpi/ranks/start";
const Placement kOneRank{"", {"-n", "1"}};

TEST(StartTest, ProgramsOfAJobHaveNumbers) {
  const e2e::CommandResult result =
      RunJob(kOneRank, {kProgram, ":", "-n", "2", kProgram, ":", "-n", "1", kProgram});
  EXPECT_EQ(result.out,
            "0: app 0 of 1 ranks, universe 4, fatal fatal\n"
            "1: app 1 of 2 ranks, universe 4, fatal fatal\n"
            "2: app 1 of 2 ranks, universe 4, fatal fatal\n"
            "3: app 2 of 1 ranks, universe 4, fatal fatal\n")
      << result.err;
}

TEST(StartTest, TheUniverseHasTheSlotsOfTheHosts) {
  EXPECT_EQ(RunJob({"", {"-n", "2"}}, {"-host", "localhost:6", kProgram}).out,
            "0: app 0 of 2 ranks, universe 6, fatal fatal\n"
            "1: app 0 of 2 ranks, universe 6, fatal fatal\n");
  // There is room for at least as many ranks as there are.
  EXPECT_THAT(RunJob({"", {"-n", "3"}}, {"-host", "localhost:2", kProgram}).out,
              HasSubstr("universe 3,"));
}

TEST(StartTest, TheLauncherTellsTheNumberOfRanksAlsoWhileMpiDoesNotRun) {
  EXPECT_THAT(RunJob({"", {"-n", "2"}}, {kProgram, "told"}).out,
              HasSubstr("2 before MPI_Init, 2 behind MPI_Finalize\n"));
}

// A program that no launcher started has no number in a job.
TEST(StartTest, AloneThereIsNoNumber) {
  e2e::Command command({kProgram}, {"PATH=tools/ferryrun:/usr/bin:/bin"});
  EXPECT_EQ(command.Wait().out, "0: app -1 of 1 ranks, universe 1, fatal fatal\n");
  EXPECT_THAT(command.Leftovers(), testing::IsEmpty());
}

TEST(StartTest, ErrorsDoWhatTheLauncherWasTold) {
  const e2e::CommandResult returned =
      RunJob(kOneRank, {"-initial-errhandler", "mpi_errors_return", kProgram, "wrong"});
  EXPECT_EQ(returned.out, "0: app 0 of 1 ranks, universe 1, return return\nclass 6\n")
      << "MPI_ERR_RANK: " << returned.err;
  const e2e::CommandResult aborted =
      RunJob(kOneRank, {"--initial-errhandler=mpi_errors_abort", kProgram, "wrong"});
  EXPECT_EQ(aborted.exit_code, 6);
  EXPECT_EQ(aborted.out, "0: app 0 of 1 ranks, universe 1, abort abort\n") << aborted.err;
}

TEST(StartTest, KindsOfMemoryThatWereAskedForAreTold) {
  EXPECT_THAT(
      RunJob(kOneRank, {"-memory-alloc-kinds", "system,cuda:device", kProgram, "kinds"}).out,
      testing::StartsWith("system,cuda:device\n"));
  EXPECT_THAT(RunJob(kOneRank, {kProgram, "kinds"}).out, testing::StartsWith("none\n"));
}

// Emulated device memory that only streams reach, 1 MiB of it.
TEST(MemoryTest, HasTheKindsThatWereAskedFor) {
  const std::vector<std::string> flags = {"--host_gpu_memory_bytes=1048576",
                                          "--host_link_h2d_mb_per_s=20000",
                                          "--host_link_d2h_mb_per_s=20000", "--host_link_guard=1"};
  std::vector<std::string> words = flags;
  words.insert(words.end(), {"tests/mpi/ranks/memory", "mpi,system,ferry"});
  EXPECT_EQ(RunJob(kOneRank, words).out, "all memory was right\n");
  words = flags;
  words.insert(words.end(), {"-memory-alloc-kinds", "system,ferry:device,cuda:device",
                             "tests/mpi/ranks/memory", "mpi,system,ferry,ferry:device"});
  EXPECT_EQ(RunJob({"", {"-n", "2", "--nodes", "2"}}, words).out,
            "all memory was right\nall memory was right\n");
}

TEST(StartTest, TheFirstHandlerCountsBeforeMpiInit) {
  EXPECT_EQ(RunJob(kOneRank, {"--initial-errhandler", "mpi_errors_return", kProgram, "early"}).out,
            "class 16\n")
      << "MPI_ERR_OTHER";
  EXPECT_EQ(RunJob(kOneRank, {kProgram, "early"}).out, "");
}

TEST(StartTest, AnUnknownHandlerIsRefused) {
  const e2e::CommandResult result =
      RunJob(kOneRank, {"-initial-errhandler", "mpi_errors_ignore", kProgram});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("initial_errhandler cannot be \"mpi_errors_ignore\""));
}

}  // namespace
}  // namespace ferry::mpi_tests
