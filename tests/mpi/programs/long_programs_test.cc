// Other projects' programs that take a minute or more to build: the HPC Challenge, and FFTW's
// benchmark for MPI, which compares its transforms with slow ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/mpi/programs/source_package.h"

namespace ferry::mpi {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr unsigned kBuildLimitS = 600;

class LongProgramsTest : public SourcePackageTest {};

// HPL still calls two functions by names that MPI 3.0 removed.
constexpr char kBuildHpcc[] = R"sh(
cp hpl/setup/Make.Linux_PII_FBLAS hpl
make -s arch=Linux_PII_FBLAS TOPdir=../../.. CC="$FERRYCC" LINKER="$FERRYCC" \
  MPdir= MPinc= MPlib= LAdir= LAinc= LAlib="-lblas -lm" LINKFLAGS= \
  CCFLAGS='$(HPL_DEFS) -O2 -w -DMPI_Address=MPI_Get_address -DMPI_Type_struct=MPI_Type_create_struct'
)sh";

// Its input file has a grid of ranks and the number of equations that HPL solves.
constexpr char kRunHpcc[] = R"sh(
rm -f hpccoutf.txt
sed -e 's/^[0-9]* *Ns$/300 Ns/' -e "s/^[0-9]* *Ps$/$rows Ps/" _hpccinf.txt >hpccinf.txt
"$FERRYRUN" --private --no-label -n "$ranks" --nodes "$nodes" ./hpcc
cat hpccoutf.txt
)sh";

TEST_F(LongProgramsTest, HpcChallengePassesItsOwnTests) {
  if (!HasLibrary("blas")) {
    GTEST_SKIP() << "there is no BLAS: apt-get install libblas-dev";
  }
  if (!Fetch("hpcc")) {
    GTEST_SKIP() << why_not();
  }
  Run(kBuildHpcc, kBuildLimitS);
  ExpectOfFerry("hpcc");
  for (const std::string ranks : {"2", "4"}) {
    for (const std::string nodes : {"1", "2"}) {
      const std::string job =
          "ranks=" + ranks + " nodes=" + nodes + " rows=" + (ranks == "4" ? "2" : "1") + "\n";
      const std::string output = Run(job + kRunHpcc, kBuildLimitS);
      EXPECT_THAT(output, AllOf(HasSubstr("\nSuccess=1"), HasSubstr("...... PASSED"),
                                HasSubstr("0 tests completed and failed residual checks"),
                                Not(HasSubstr("FAILED"))));
    }
  }
}

// Codelets are built without optimisation: the test is about how their results travel.
constexpr char kBuildFftw[] = R"sh(
./configure -q --enable-mpi --disable-fortran --disable-doc MPICC="$FERRYCC" CFLAGS=-O0
make -s -j2
)sh";

TEST_F(LongProgramsTest, FftwTransformsAsItDoesAlone) {
  if (!Fetch("fftw3")) {
    GTEST_SKIP() << why_not();
  }
  Run(kBuildFftw, kBuildLimitS);
  ExpectOfFerry("mpi/mpi-bench");
  // The problems: in and out of place; backward and forward; complex, real and half-complex, with
  // the kinds of real transforms; one to three dimensions, which do not divide evenly; many at
  // once.
  const std::vector<std::string> problems = {
      "ib64x48",   "of37x29",       "obc1024",    "if12x18x7", "ofr30x17",
      "ibr8x10x6", "ok50e10x24o01", "ik9e11x20b", "of24x15v3", "obrd16x12x5"};
  for (const std::vector<std::string>& placement :
       {std::vector<std::string>{"-n", "2"}, {"-n", "4"}, {"-n", "4", "--nodes", "2"}}) {
    std::vector<std::string> program = {"mpi/mpi-bench", "-v"};
    for (const std::string& problem : problems) {
      program.insert(program.end(), {"--verify", problem});
    }
    const std::string output = RunRanks(placement, program, 120);
    for (const std::string& problem : problems) {
      EXPECT_THAT(output, HasSubstr(problem + " "));  // and its errors, which are small
    }
  }
}

}  // namespace
}  // namespace ferry::mpi
