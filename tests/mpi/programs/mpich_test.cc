// MPICH's own conformance programs (test/mpi of its source), built with Ferry's compiler wrapper:
// collectives, communicators, datatypes, messages, also partitioned, sessions, topologies, windows
// and wrong arguments.
#include <gtest/gtest.h>

#include <filesystem>
#include <iostream>
#include <string>

#include "tests/mpi/programs/source_package.h"

namespace ferry::mpi {
namespace {

// With what fetching takes, less than the hour that a test gets: so each has a shard of its own.
constexpr unsigned kBuildLimitS = 1400;
constexpr unsigned kRunLimitS = 2000;

// Their library of datatypes calls two functions by names that MPI 3.0 removed. Programs that
// cannot be linked because of others mpich_suite.py lists. $folders are those of the programs.
constexpr char kBuild[] = R"sh(
cd test/mpi
export CFLAGS='-O2 -DMPI_Type_hvector=MPI_Type_create_hvector'
CFLAGS+=' -DMPI_Type_hindexed=MPI_Type_create_hindexed'
MPICC="$FERRYCC" ./configure -q --enable-strictmpi --without-cuda --without-ze --without-hip \
  --disable-fortran --disable-cxx --disable-romio --disable-spawn --disable-ft-tests \
  --with-pm=no >configure.log 2>&1
for folder in dtpools util $folders; do
  make -s -k -j2 -C "$folder" >>make.log 2>&1 || true
done
)sh";

class MpichTest : public SourcePackageTest {
 protected:
  // The programs in these folders of test/mpi and below, of which `program` is one.
  void Check(const std::string& folders, const std::string& program) const {
    Run("folders='" + folders + "'" + kBuild, kBuildLimitS);
    ExpectOfFerry("test/mpi/" + program);
    const std::string suite = std::filesystem::absolute("tests/mpi/programs/mpich_suite.py");
    const std::string report =
        Run("cd test/mpi\npython3 '" + suite + "' \"$FERRYRUN\" " + folders, kRunLimitS);
    std::cout << report;
  }
};

TEST_F(MpichTest, MostProgramsPassButForThoseListed) {
  if (!Fetch("mpich")) {
    GTEST_SKIP() << why_not();
  }
  Check("attr coll comm datatype errors group info init part pt2pt topo", "pt2pt/sendrecv2");
}

TEST_F(MpichTest, ThreadsPassButForThoseListed) {
  if (!Fetch("mpich")) {
    GTEST_SKIP() << why_not();
  }
  Check("threads", "threads/pt2pt/threads");
}

TEST_F(MpichTest, WindowsPassButForThoseListed) {
  if (!Fetch("mpich")) {
    GTEST_SKIP() << why_not();
  }
  Check("rma", "rma/putfence1");
}

}  // namespace
}  // namespace ferry::mpi
