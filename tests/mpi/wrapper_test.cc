// Programs that were compiled without Ferry's mpi.h, and programs that the wrappers and CMake
// build.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/mpi/e2e/mpi_job.h"
#include "tests/support/processes.h"

namespace ferry::mpi_tests {
namespace {

namespace fs = std::filesystem;
using e2e::CommandResult;
using e2e::RunCommand;
using testing::HasSubstr;

TEST(IndependentProgramTest, RunsOnFerrysLibrary) {
  for (const int ranks : {2, 3}) {
    ExpectAllOk(ranks, "tests/mpi/independent_program");
  }
}

class WrapperTest : public testing::Test {
 protected:
  WrapperTest() { EXPECT_NE(mkdtemp(folder_.data()), nullptr); }
  ~WrapperTest() override { fs::remove_all(folder_); }

  std::string Path(const std::string& name) const { return folder_ + "/" + name; }

  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(Path(name)) << text;
  }

  void WriteProgram(const std::string& folder, const std::string& name,
                    const std::string& text) const {
    fs::create_directories(Path(folder));
    Write(folder + "/" + name, text);
    fs::permissions(Path(folder + "/" + name), fs::perms::owner_all);
  }

  static void Succeed(const std::vector<std::string>& command) {
    const CommandResult result = RunCommand(command);
    EXPECT_EQ(result.exit_code, 0) << testing::PrintToString(command) << "\n"
                                   << result.out << result.err;
  }

  std::string folder_ = "/tmp/ferry-wrapper-XXXXXX";
};

constexpr char kCxxProgram[] = R"(
#include <mpi.h>
#include <iostream>
int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = -1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  std::cout << "rank " + std::to_string(rank) + ": ok\n" << std::flush;
  return MPI_Finalize();
}
)";

TEST_F(WrapperTest, FerryccBuildsAProgram) {
  Succeed({"tools/wrappers/ferrycc", "-I.", "-O1", "tests/mpi/independent_program.c", "-o",
           Path("program")});
  ExpectAllOk(2, Path("program"));
}

TEST_F(WrapperTest, FerrycxxBuildsAProgramInTwoSteps) {
  Write("program.cc", kCxxProgram);
  Succeed({"tools/wrappers/ferrycxx", "-c", Path("program.cc"), "-o", Path("program.o")});
  Succeed({"tools/wrappers/ferrycxx", Path("program.o"), "-o", Path("program")});
  ExpectAllOk(2, Path("program"));
}

TEST_F(WrapperTest, ATwoStepsLinkFailureIsTheCompilersOwn) {
  Write("program.c", "int main(void) { return no_such_function(); }");
  const CommandResult result = RunCommand(
      {"tools/wrappers/ferrycc", "-std=gnu89", Path("program.c"), "-o", Path("program")});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("no_such_function"));
}

// Ferry's names first in PATH, as an installation has them, and another MPI behind, which has all.
TEST_F(WrapperTest, CMakeTakesNothingFromAnotherMpi) {
  if (!fs::exists("/usr/bin/cmake") || !fs::exists("/usr/bin/gfortran")) {
    GTEST_SKIP() << "cmake or gfortran is not installed: apt-get install cmake gfortran";
  }
  const std::string here = fs::current_path();
  const std::string library = here + "/mpi";
  std::string wrapper = tests::ReadFile("tools/wrappers/ferrycc");
  for (const auto& [value, path] :
       {std::pair{"@INCLUDE@", here + "/include"},
        {"@LIB@", library},
        {"@RPATH@", library},
        {"fortran_include=$include/ferry/mpi fortran_modules=$lib/ferry/fortran/gfortran-mod-15",
         "fortran_include=" + here + "/mpi/fortran/include fortran_modules=$fortran_include"}}) {
    ASSERT_NE(wrapper.find(value), std::string::npos);
    wrapper.replace(wrapper.find(value), std::string(value).size(), path);
  }
  for (const std::string name :
       {"mpicc", "mpicxx", "mpic++", "mpiCC", "mpifort", "mpif90", "mpif77"}) {
    WriteProgram("ferry", name, wrapper);
    WriteProgram("other", name, "#!/bin/sh\necho $0 $* >>" + Path("asked") + "\necho -lm\n");
  }
  fs::create_symlink(here + "/tools/ferryrun/ferryrun", Path("ferry/mpiexec"));
  for (const std::string name : {"c", "cxx", "fort"}) {
    Write("other/mpi-" + name + ".pc",
          "Name: other\nDescription: another MPI\nVersion: 1\nLibs: -lm\n");
  }
  Write("CMakeLists.txt", R"(
cmake_minimum_required(VERSION 3.13)
project(ferry_test C CXX Fortran)
find_package(MPI COMPONENTS C CXX Fortran)
message(STATUS "Found ${MPI_C_COMPILER} ${MPI_CXX_COMPILER}, Fortran: ${MPI_Fortran_FOUND}")
)");
  const CommandResult configured = RunCommand(
      {"/usr/bin/env", "PATH=" + Path("ferry") + ":" + Path("other") + ":/usr/bin:/bin",
       "PKG_CONFIG_PATH=" + Path("other"), "/usr/bin/cmake", "-S", folder_, "-B", Path("build")});
  EXPECT_EQ(configured.exit_code, 0) << configured.out << configured.err;
  EXPECT_THAT(configured.out, HasSubstr("Found " + Path("ferry/mpicc") + " " +
                                        Path("ferry/mpicxx") + ", Fortran: TRUE"));
  EXPECT_FALSE(fs::exists(Path("asked"))) << tests::ReadFile(Path("asked"));
}

TEST_F(WrapperTest, CMakeFindsMpi) {
  if (!fs::exists("/usr/bin/cmake")) {
    GTEST_SKIP() << "cmake is not installed: apt-get install cmake";
  }
  const std::string here = fs::current_path();
  Write("program.cc", kCxxProgram);
  Write("CMakeLists.txt", R"(
cmake_minimum_required(VERSION 3.13)
project(ferry_test C CXX)
find_package(MPI REQUIRED COMPONENTS C CXX)
message(STATUS "MPI ${MPI_C_VERSION} ${MPI_CXX_VERSION}")
add_executable(c_program )" + here +
                              R"(/tests/mpi/independent_program.c)
target_include_directories(c_program PRIVATE )" +
                              here + R"()
target_link_libraries(c_program MPI::MPI_C)
add_executable(cxx_program program.cc)
target_link_libraries(cxx_program MPI::MPI_CXX)
)");
  const CommandResult configured =
      RunCommand({"/usr/bin/cmake", "-S", folder_, "-B", Path("build"),
                  "-DMPI_C_COMPILER=" + here + "/tools/wrappers/ferrycc",
                  "-DMPI_CXX_COMPILER=" + here + "/tools/wrappers/ferrycxx",
                  "-DMPIEXEC_EXECUTABLE=" + here + "/tools/ferryrun/ferryrun"});
  EXPECT_EQ(configured.exit_code, 0) << configured.out << configured.err;
  EXPECT_THAT(configured.out, HasSubstr("MPI 5.0 5.0"));
  Succeed({"/usr/bin/cmake", "--build", Path("build")});
  ExpectAllOk(2, Path("build/c_program"));
  ExpectAllOk(2, Path("build/cxx_program"));
}

TEST_F(WrapperTest, CMakeFindsFortran) {
  if (!fs::exists("/usr/bin/cmake") || !fs::exists("/usr/bin/gfortran")) {
    GTEST_SKIP() << "cmake or gfortran is not installed: apt-get install cmake gfortran";
  }
  const std::string here = fs::current_path();
  Write("CMakeLists.txt", R"(
cmake_minimum_required(VERSION 3.13)
project(ferry_test Fortran)
set(MPI_DETERMINE_Fortran_CAPABILITIES TRUE)
find_package(MPI REQUIRED COMPONENTS Fortran)
message(STATUS "MPI ${MPI_Fortran_VERSION} mpif.h: ${MPI_Fortran_HAVE_F77_HEADER}, mpi: ${MPI_Fortran_HAVE_F90_MODULE}, mpi_f08: ${MPI_Fortran_HAVE_F08_MODULE} ${MPI_Fortran_F08_MODULE_SUBARRAYS}")
set(FOLDER )" + here + R"(/tests/mpi/fortran)
add_executable(ring ${FOLDER}/ring.f)
target_link_libraries(ring MPI::MPI_Fortran)
add_executable(typed ${FOLDER}/checks.f90 ${FOLDER}/typed.f90)
target_link_libraries(typed MPI::MPI_Fortran)
)");
  const CommandResult configured =
      RunCommand({"/usr/bin/cmake", "-S", folder_, "-B", Path("build"),
                  "-DMPI_Fortran_COMPILER=" + here + "/tools/wrappers/ferryfc",
                  "-DMPIEXEC_EXECUTABLE=" + here + "/tools/ferryrun/ferryrun"});
  EXPECT_EQ(configured.exit_code, 0) << configured.out << configured.err;
  EXPECT_THAT(configured.out, HasSubstr("MPI 5.0 mpif.h: TRUE, mpi: TRUE, mpi_f08: TRUE TRUE"));
  Succeed({"/usr/bin/cmake", "--build", Path("build")});
  ExpectAllOk(2, Path("build/ring"));
  ExpectAllOk(2, Path("build/typed"));
}

// LLVM's compiler: its modules, and programs over mpif.h, `mpi` and mpi_f08.
TEST_F(WrapperTest, FlangCompilesModulesAndPrograms) {
  const CommandResult found =
      RunCommand({"/bin/bash", "-c", "type -P flang-22 flang-19 flang | head -n 1"});
  const std::string flang = found.out.substr(0, found.out.find('\n'));
  if (flang.empty()) {
    GTEST_SKIP() << "flang is not installed: apt-get install flang-22";
  }
  const std::vector<std::string> wrapper = {"/usr/bin/env", "XDG_CACHE_HOME=" + Path("cache"),
                                            "FERRY_FC=" + flang, "tools/wrappers/ferryfc"};
  const auto compile = [&](const std::vector<std::string>& words) {
    std::vector<std::string> all = wrapper;
    all.insert(all.end(), words.begin(), words.end());
    Succeed(all);
  };
  compile({"--make-modules"});
  compile({"-w", "tests/mpi/fortran/ring.f", "-o", Path("ring")});
  ExpectAllOk(2, Path("ring"));
  const std::string program = R"(
module sums
  use, intrinsic :: iso_c_binding
  use mpi_f08
contains
  subroutine add(invec, inoutvec, len, datatype)
    type(c_ptr), value :: invec, inoutvec
    integer :: len
    type(MPI_Datatype) :: datatype
    integer, pointer :: a(:), b(:)
    if (datatype /= MPI_INTEGER) return
    call c_f_pointer(invec, a, [len])
    call c_f_pointer(inoutvec, b, [len])
    b = a + b
  end subroutine
end module
program main
  use sums
  implicit none
  type(MPI_Comm) :: ring
  type(MPI_Op) :: op
  type(MPI_Status) :: status
  type(MPI_Request) :: requests(2)
  character(MPI_MAX_OBJECT_NAME) :: name
  integer :: rank, n, left, right, got, total(3), length, mine(3, 2)
  logical :: periods(1)
  call MPI_Init()
  call MPI_Comm_size(MPI_COMM_WORLD, n)
  call MPI_Cart_create(MPI_COMM_WORLD, 1, [n], [.true.], .false., ring)
  call MPI_Comm_rank(ring, rank)
  call MPI_Cart_shift(ring, 0, 1, left, right)
  call MPI_Cart_get(ring, 1, total, periods, mine(:, 1))
  if (.not. periods(1)) error stop 'periods'
  call MPI_Irecv(got, 1, MPI_INTEGER, left, 3, ring, requests(1))
  call MPI_Isend(rank, 1, MPI_INTEGER, right, 3, ring, requests(2))
  call MPI_Wait(requests(1), status)
  call MPI_Wait(requests(2), MPI_STATUS_IGNORE)
  if (got /= left .or. status%MPI_TAG /= 3) error stop 'a ring'
  call MPI_Op_create(add, .true., op)
  mine = rank
  call MPI_Allreduce(mine(1:3:2, 1), total, 2, MPI_INTEGER, op, ring)
  if (any(total(1:2) /= n * (n - 1) / 2)) error stop 'an operation'
  total = rank
  call MPI_Allreduce(MPI_IN_PLACE, total, 3, MPI_INTEGER, MPI_MAX, ring)
  if (any(total /= n - 1)) error stop 'MPI_IN_PLACE'
  call MPI_Comm_set_name(ring, 'a name')
  call MPI_Comm_get_name(ring, name, length)
  if (name /= 'a name' .or. length /= 6) error stop 'a name'
  print '(a,i0,a)', 'rank ', rank, ': ok'
  call MPI_Finalize()
end program
)";
  Write("typed.f90", program);
  compile({"-J" + folder_, Path("typed.f90"), "-o", Path("typed")});
  ExpectAllOk(2, Path("typed"));
  ExpectAllOk(3, Path("typed"));
  Write("untyped.f90", R"(
program main
  use mpi
  implicit none
  integer :: rank, ierr, status(MPI_STATUS_SIZE), got
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Sendrecv(rank, 1, MPI_INTEGER, rank, 5, got, 1, MPI_INTEGER, rank, 5, MPI_COMM_WORLD, &
                    status, ierr)
  if (got == rank .and. status(MPI_TAG) == 5) print '(a,i0,a)', 'rank ', rank, ': ok'
  call MPI_Finalize(ierr)
end program
)");
  compile({Path("untyped.f90"), "-o", Path("untyped")});
  ExpectAllOk(2, Path("untyped"));
}

}  // namespace
}  // namespace ferry::mpi_tests
