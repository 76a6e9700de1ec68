// Other projects' small programs that are built in seconds: NetPIPE, and the ray tracer Tachyon.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/mpi/programs/source_package.h"

namespace ferry::mpi {
namespace {

using testing::HasSubstr;
using testing::Not;

class ProgramsTest : public SourcePackageTest {};

int Count(const std::string& text, const std::string& wanted) {
  int count = 0;
  for (size_t at = text.find(wanted); at != text.npos; at = text.find(wanted, at + 1)) {
    ++count;
  }
  return count;
}

// Two ranks send messages of every size around powers of two, and check each byte.
TEST_F(ProgramsTest, NetpipeFindsItsMessagesIntact) {
  if (!Fetch("netpipe")) {
    GTEST_SKIP() << why_not();
  }
  Run("make mpi MPICC=\"$FERRYCC\" CFLAGS='-O -w'");
  ExpectOfFerry("NPmpi");
  for (const char* nodes : {"1", "2"}) {
    // -z: from any source; -S: synchronous sends; -2 -a: both ways at once, receives come first.
    for (const std::vector<std::string>& options :
         {std::vector<std::string>{"-z"}, {"-S"}, {"-2", "-a"}}) {
      std::vector<std::string> program = {"./NPmpi", "-i", "-n", "3", "-u", "300000"};
      program.insert(program.end(), options.begin(), options.end());
      const std::string output = RunRanks({"-n", "2", "--nodes", nodes}, program);
      EXPECT_GE(Count(output, "Integrity check passed"), 30) << output;
      EXPECT_THAT(output, Not(HasSubstr("failed")));
    }
  }
}

// The settings of its target linux-mpi, except for the compiler, which that target fixes.
constexpr char kBuildTachyon[] = R"sh(
make -s -C unix all ARCH=ferry CC="$FERRYCC" CFLAGS='-O1 -DLinux -DMPI -DUSE_MPI_IN_PLACE' \
  AR=ar ARFLAGS=r RANLIB=ranlib STRIP=strip LIBS='-L. -ltachyon -lm'
)sh";

// Ranks trace rows of one picture, which is the same for any number of ranks.
TEST_F(ProgramsTest, TachyonDrawsTheSamePictureOnAnyNumberOfRanks) {
  if (!Fetch("tachyon")) {
    GTEST_SKIP() << why_not();
  }
  Run(kBuildTachyon);
  ExpectOfFerry("compile/ferry/tachyon");
  for (const std::string scene : {"2balls", "balls", "lattice"}) {
    const auto trace = [&](const std::vector<std::string>& placement, const std::string& picture) {
      RunRanks(placement, {"compile/ferry/tachyon", "scenes/" + scene + ".dat", "-res", "80", "60",
                           "-o", picture});
    };
    trace({"-n", "1"}, "serial.tga");
    Run("test \"$(stat -c %s serial.tga)\" -gt 14400");  // a header and 80 x 60 points
    for (const std::string ranks : {"2", "4"}) {
      for (const std::string nodes : {"1", "2"}) {
        trace({"-n", ranks, "--nodes", nodes}, "picture.tga");
        Run("cmp serial.tga picture.tga && rm picture.tga");
      }
    }
  }
}

}  // namespace
}  // namespace ferry::mpi
