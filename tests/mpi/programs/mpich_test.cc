// MPICH's own conformance programs (test/mpi of its source), built with Ferry's compiler wrapper:
// collectives, communicators, datatypes, messages, topologies and wrong arguments.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/mpi/programs/source_package.h"

namespace ferry::mpi {
namespace {

constexpr unsigned kBuildLimitS = 900;
constexpr unsigned kRunLimitS = 2400;

class MpichTest : public SourcePackageTest {};

// Some programs call functions that MPI 3.0 removed, and cannot be linked: mpich_suite.py lists
// them.
constexpr char kBuild[] = R"sh(
cd test/mpi
MPICC="$FERRYCC" ./configure -q --enable-strictmpi --without-cuda --disable-fortran --disable-cxx \
  --disable-romio --disable-spawn --disable-rma --disable-part --disable-ft-tests --with-pm=no \
  >configure.log 2>&1
for folder in dtpools util attr coll comm datatype errors group info pt2pt threads topo; do
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
