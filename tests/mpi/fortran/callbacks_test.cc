// Procedures in Fortran that MPI calls.
#include <string>

#include "tests/mpi/fortran/programs.h"

namespace ferry::mpi_tests {
namespace {

class CallbacksTest : public FortranPrograms {};

TEST_F(CallbacksTest, AreCalledOverEachInterface) {
  for (const std::string name : {"mpif.h", "mpi"}) {
    const bool is_file = name == "mpif.h";
    Compile(
        {is_file ? "-DUSE_LINE=" : "-DUSE_LINE=use mpi",
         is_file ? "-DINCLUDE_LINE=include 'mpif.h'" : "-DINCLUDE_LINE=", "-DHANDLE(kind)=integer",
         kFolder + "checks.f90", kFolder + "callbacks.F90", "-o", Path("callbacks")});
    ExpectAllOk(2, Path("callbacks"));
  }
  Compile({"-DUSE_LINE=use mpi_f08", "-DINCLUDE_LINE=", "-DTYPED", "-DHANDLE(kind)=type(kind)",
           kFolder + "checks.f90", kFolder + "callbacks.F90", "-o", Path("callbacks")});
  ExpectAllOk(2, Path("callbacks"));
}

TEST_F(CallbacksTest, OneProcedureMoreThanThereMayBeIsRefusedInWords) {
  Compile({"-O0", kFolder + "checks.f90", kFolder + "limits.f90", "-o", Path("limits")});
  ExpectAllOk(1, Path("limits"));
}

}  // namespace
}  // namespace ferry::mpi_tests
