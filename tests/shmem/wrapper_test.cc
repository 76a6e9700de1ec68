// Programs that oshcc and oshc++ build, as users do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/e2e/command.h"

namespace ferry::shmem_tests {
namespace {

namespace fs = std::filesystem;
using e2e::CommandResult;
using e2e::RunCommand;
using testing::HasSubstr;

constexpr char kCProgram[] = R"(
#include <shmem.h>
#include <stdio.h>
long slot;
int main(void) {
  shmem_init();
  shmem_p(&slot, (long)shmem_my_pe() + 1, (shmem_my_pe() + 1) % shmem_n_pes());
  shmem_barrier_all();
  const long got = slot;
  shmem_finalize();
  printf("got %ld\n", got);
  return 0;
}
)";

constexpr char kCxxProgram[] = R"(
#include <shmem.h>
#include <iostream>
int main() {
  shmem_init();
  long* const slot = static_cast<long*>(shmem_calloc(1, sizeof(long)));
  shmem_long_p(slot, shmem_my_pe() + 1, (shmem_my_pe() + 1) % shmem_n_pes());
  shmem_barrier_all();
  std::cout << "got " + std::to_string(*slot) + "\n";
  shmem_finalize();
}
)";

class WrapperTest : public testing::Test {
 protected:
  WrapperTest() { EXPECT_NE(mkdtemp(folder_.data()), nullptr); }
  ~WrapperTest() override { fs::remove_all(folder_); }

  void ExpectToRun(const std::string& wrapper, const std::string& source, const char* text) {
    const std::string file = folder_ + "/" + source;
    const std::string program = folder_ + "/program";
    std::ofstream(file) << text;
    const CommandResult built =
        RunCommand({"tools/wrappers/" + wrapper, "-O1", "-Wall", "-Werror", file, "-o", program});
    ASSERT_EQ(built.exit_code, 0) << built.out << built.err;
    const CommandResult run = RunCommand({"tools/ferryrun/ferryrun", "--private", "--ferryd",
                                          "daemon/ferryd", "--no-label", "-n", "2", program});
    EXPECT_EQ(run.exit_code, 0) << run.err;
    EXPECT_THAT(e2e::SortedLines(run.out), testing::ElementsAre("got 1", "got 2")) << run.err;
  }

  std::string folder_ = "/tmp/ferry-oshcc-XXXXXX";
};

TEST_F(WrapperTest, OshccBuildsCPrograms) { ExpectToRun("oshcc", "program.c", kCProgram); }

TEST_F(WrapperTest, OshcxxBuildsCxxPrograms) { ExpectToRun("oshc++", "program.cc", kCxxProgram); }

TEST_F(WrapperTest, SaysWhatItIs) {
  const CommandResult told = RunCommand({"tools/wrappers/oshcc", "-showme:version"});
  EXPECT_THAT(told.out, HasSubstr("oshcc: Ferry"));
  EXPECT_THAT(told.out, HasSubstr("OpenSHMEM 1.6"));
  EXPECT_THAT(RunCommand({"tools/wrappers/oshcc", "-showme:libs"}).out, HasSubstr("ferry_shmem"));
  EXPECT_THAT(RunCommand({"tools/wrappers/ferrycc", "-showme:libs"}).out, HasSubstr("mpi_abi"));
}

}  // namespace
}  // namespace ferry::shmem_tests
