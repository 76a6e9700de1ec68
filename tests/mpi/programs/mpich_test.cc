// MPICH's own conformance programs (test/mpi of its source), built with Ferry's compiler wrapper:
// collectives, communicators, datatypes, messages, sessions, topologies, windows and wrong
// arguments.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/mpi/programs/source_package.h"

namespace ferry::mpi {
namespace {

constexpr unsigned kBuildLimitS = 1200;
constexpr unsigned kRunLimitS = 3000;

class MpichTest : public SourcePackageTest {};

// Their library of datatypes calls two functions by names that MPI 3.0 removed. Programs that
// cannot be linked because of others mpich_suite.py lists.
constexpr char kBuild[] = R"sh(
cd test/mpi
export CFLAGS='-O2 -DMPI_Type_hvector=MPI_Type_create_hvector'
CFLAGS+=' -DMPI_Type_hindexed=MPI_Type_create_hindexed'
MPICC="$FERRYCC" ./configure -q --enable-strictmpi --without-cuda --without-ze --without-hip \
  --disable-fortran --disable-cxx --disable-romio --disable-spawn --disable-part \
  --disable-ft-tests --with-pm=no >configure.log 2>&1
for folder in dtpools util attr coll comm datatype errors group info init pt2pt rma threads topo; do
  make -s -k -j2 -C "$folder" >>make.log 2>&1 || true
done
)sh";

TEST_F(MpichTest, ProgramsPassButForThoseListed) {
  const std::string suite = std::filesystem::absolute("tests/mpi/programs/mpich_suite.py");
  if (!Fetch("mpich")) {
    GTEST_SKIP() << why_not();
  }
  Run(kBuild, kBuildLimitS);
  ExpectOfFerry("test/mpi/pt2pt/sendrecv2");
  Run("cd test/mpi\npython3 '" + suite + "' \"$FERRYRUN\"", kRunLimitS);
}

}  // namespace
}  // namespace ferry::mpi
