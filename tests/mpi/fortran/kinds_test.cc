// Options that change the sizes of INTEGER and REAL: a call with integers of eight bytes does not
// compile, in words, and where REAL has eight bytes all that does compile is right.
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "tests/mpi/fortran/programs.h"

namespace ferry::mpi_tests {
namespace {

using e2e::CommandResult;
using e2e::RunCommand;
using testing::HasSubstr;

const std::vector<std::string> kInterfaces = {"mpif.h", "mpi", "mpi_f08"};

class KindsTest : public FortranPrograms {
 protected:
  // `name`: of an interface. Returns the path of the program in Fortran.
  std::string Program(const std::string& name, const std::string& statements) const {
    const bool is_file = name == "mpif.h";
    Write("program.f90", "program main\n  " + (is_file ? "" : "use " + name) +
                             "\n  implicit none\n  " + (is_file ? "include 'mpif.h'" : "") + "\n" +
                             statements + "end program\n");
    return Path("program.f90");
  }

  // By `compiler`; empty: by ferryfc's own.
  CommandResult TryToCompile(const std::string& compiler, const std::string& option,
                             const std::string& source) const {
    return RunCommand({"/usr/bin/env", "XDG_CACHE_HOME=" + Path("cache"), "FERRY_FC=" + compiler,
                       kWrapper, option, "-c", source, "-o", Path("program.o")});
  }

  static std::string Flang() {
    const std::string found =
        RunCommand({"/bin/bash", "-c", "type -P flang-22 flang-19 flang | head -n 1"}).out;
    return found.substr(0, found.find('\n'));
  }
};

constexpr char kWithIntegers[] = R"(
  integer :: rank, ierr
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
)";

constexpr char kWithShortIntegers[] = R"(
  integer(4) :: rank, ierr
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  print '(a,i0,a)', 'rank ', rank, ': ok'
  call MPI_Finalize(ierr)
)";

constexpr char kWithReals[] = R"(
  integer :: n, rank, ierr, bytes
  real :: mine(2), all(2)
  double precision :: start
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, n, ierr)
  start = MPI_Wtime()
  if (kind(mine) /= 8 .or. kind(MPI_Wtime()) /= 8 .or. kind(MPI_Wtick()) /= 8) error stop 'kinds'
  if (MPI_Wtime() < start .or. MPI_Wtime() > start + 600) error stop 'MPI_Wtime'
  if (MPI_Wtick() <= 0 .or. MPI_Wtick() > 0.1) error stop 'MPI_Wtick'
  mine = [1 / 3.0, 1e-300]
  call MPI_Allreduce(mine, all, 2, MPI_REAL8, MPI_SUM, MPI_COMM_WORLD, ierr)
  if (any(abs(all - n * mine) > 1e-15 * all)) error stop 'MPI_REAL8'
  all = 0
  call MPI_Type_match_size(MPI_TYPECLASS_REAL, storage_size(mine) / 8, datatype, ierr)
  call MPI_Allreduce(mine, all, 2, datatype, MPI_MAX, MPI_COMM_WORLD, ierr)
  if (any(all /= mine)) error stop 'MPI_Type_match_size'
  all = 0
  call MPI_Type_create_f90_real(precision(mine), range(mine), datatype, ierr)
  call MPI_Allreduce(mine, all, 2, datatype, MPI_MIN, MPI_COMM_WORLD, ierr)
  if (any(all /= mine)) error stop 'MPI_Type_create_f90_real'
  call MPI_Type_size(MPI_REAL, bytes, ierr)
  if (bytes /= 4) error stop 'MPI_REAL'
  print '(a,i0,a)', 'rank ', rank, ': ok'
  call MPI_Finalize(ierr)
)";

TEST_F(KindsTest, IntegersOfEightBytesDoNotCompile) {
  for (const std::string& name : kInterfaces) {
    const std::string source = Program(name, kWithIntegers);
    EXPECT_EQ(TryToCompile("", "-O2", source).exit_code, 0) << name;
    for (const std::string option : {"-fdefault-integer-8", "-finteger-4-integer-8"}) {
      const CommandResult result = TryToCompile("", option, source);
      EXPECT_EQ(result.exit_code, 1) << name;
      EXPECT_THAT(result.err, HasSubstr("calls of MPI: its integers have 4 bytes, and " + option +
                                        " gives INTEGER 8"));
      EXPECT_THAT(result.err, HasSubstr(name == "mpif.h" ? "mpi_integers_have_4_bytes"
                                        : name == "mpi"  ? "INTEGER(8) to INTEGER(4)"
                                                         : "mpi_comm_rank"));
    }
  }
}

// Even where no call of the program has an integer, as the file's declarations would be wrong.
TEST_F(KindsTest, MpifHIsRefusedAsSuch) {
  const CommandResult result =
      TryToCompile("", "-fdefault-integer-8", Program("mpif.h", "  print *, MPI_WTIME()\n"));
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("mpi_integers_have_4_bytes"));
}

TEST_F(KindsTest, FlangDoesNotCompileThemEither) {
  const std::string flang = Flang();
  if (flang.empty()) {
    GTEST_SKIP() << "flang is not installed: apt-get install flang-22";
  }
  ASSERT_EQ(TryToCompile(flang, "--make-modules", "-w").exit_code, 0);
  for (const std::string& name : kInterfaces) {
    const std::string source = Program(name, kWithIntegers);
    EXPECT_EQ(TryToCompile(flang, "-O2", source).exit_code, 0) << name;
    const CommandResult result = TryToCompile(flang, "-fdefault-integer-8", source);
    EXPECT_EQ(result.exit_code, 1) << name;
    EXPECT_THAT(result.err, HasSubstr("calls of MPI: its integers have 4 bytes"));
    EXPECT_THAT(result.err, HasSubstr(name == "mpif.h" ? "MPI_INTEGERS_HAVE_4_BYTES"
                                                       : "'INTEGER(8)' is not compatible"));
  }
}

TEST_F(KindsTest, ModulesTakeIntegersOfFourBytesUnderTheOption) {
  for (const std::string name : {"mpi", "mpi_f08"}) {
    Compile({"-fdefault-integer-8", Program(name, kWithShortIntegers), "-o", Path("program")});
    ExpectAllOk(2, Path("program"));
  }
}

TEST_F(KindsTest, RealsOfEightBytesAreSentAsWhatTheyAre) {
  for (const std::string& name : kInterfaces) {
    const std::string handle = name == "mpi_f08" ? "  type(MPI_Datatype)" : "  integer";
    const std::string source = Program(name, handle + " :: datatype" + kWithReals);
    Compile({"-fdefault-real-8", source, "-o", Path("program")});
    ExpectAllOk(2, Path("program"));
    Compile({"-fdefault-real-8", "-fdefault-double-8", source, "-o", Path("program")});
    ExpectAllOk(2, Path("program"));
  }
}

}  // namespace
}  // namespace ferry::mpi_tests
