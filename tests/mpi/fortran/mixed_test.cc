// Programs of several languages: what one makes serves the others, and tools see the calls of all.
#include <filesystem>
#include <string>
#include <vector>

#include "tests/mpi/fortran/programs.h"

namespace ferry::mpi_tests {
namespace {

using e2e::CommandResult;
using e2e::RunCommand;

class MixedTest : public FortranPrograms {
 protected:
  static void RunCompiler(const std::vector<std::string>& words) {
    const CommandResult result = RunCommand(words);
    EXPECT_EQ(result.exit_code, 0) << testing::PrintToString(words) << "\n" << result.err;
    EXPECT_EQ(result.err, "");
  }

  // Compiles mixed.F90 for one interface; its procedures are called `name`_x.
  std::string Unit(const std::string& name, const std::string& interface, bool is_profiled) const {
    const bool is_typed = interface == "mpi_f08";
    const bool is_file = interface == "mpif.h";
    std::vector<std::string> words = {
        "-c",
        "-DUNIT=unit_" + name,
        "-DUNIT_NAME='" + name + "'",
        is_file ? "-DUSE_LINE=" : "-DUSE_LINE=use " + interface,
        is_file ? "-DINCLUDE_LINE=include 'mpif.h'" : "-DINCLUDE_LINE=",
        is_typed ? "-DHANDLE(kind)=type(kind)" : "-DHANDLE(kind)=integer",
        kFolder + "mixed.F90",
        "-o",
        Path(name + ".o")};
    if (is_typed) {
      words.emplace_back("-DTYPED");
    }
    if (is_profiled) {
      for (const char* call :
           {"Error_class", "Comm_create_keyval", "Comm_set_attr", "Comm_get_attr", "Comm_dup",
            "Comm_free", "Op_create", "Allreduce", "Reduce_local", "Comm_create_errhandler",
            "Comm_set_errhandler", "Send", "Get_address", "Type_create_struct", "Type_commit",
            "Recv", "Get_count"}) {
        words.push_back("-DMPI_" + std::string(call) + "=PMPI_" + call);
      }
    }
    Compile(words);
    return Path(name + ".o");
  }

  // C by ferrycc, Fortran by ferryfc, which also links.
  void CompileProgram() const {
    RunCompiler({"tools/wrappers/ferrycc", "-O2", "-Wall", "-Wextra", "-c", kFolder + "mixed.c",
                 "-o", Path("mixed.o")});
    Compile({Path("mixed.o"), kFolder + "mixed_old.f", Unit("file", "mpif.h", false),
             Unit("module", "mpi", false), Unit("typed", "mpi_f08", false),
             Unit("module_profiled", "mpi", true), Unit("typed_profiled", "mpi_f08", true), "-ldl",
             "-o", Path("mixed")});
  }
};

TEST_F(MixedTest, LanguagesAndInterfacesShareTheirObjects) {
  CompileProgram();
  ExpectAllOk(1, Path("mixed"));
  ExpectAllOk(3, Path("mixed"));
}

TEST_F(MixedTest, AToolInCSeesTheCallsOfAllLanguagesButThoseOfPmpi) {
  CompileProgram();
  RunCompiler({"tools/wrappers/ferrycc", "-O2", "-Wall", "-Wextra", "-shared", "-fPIC",
               kFolder + "mixed_tool.c", "-o", Path("tool.so")});
  const CommandResult result =
      RunJob({"", {"-n", "2"}},
             {"/usr/bin/env", "LD_PRELOAD=" + Path("tool.so"), Path("mixed"), "with the tool"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(e2e::SortedLines(result.out), (std::vector<std::string>{"rank 0: ok", "rank 1: ok"}));
}

}  // namespace
}  // namespace ferry::mpi_tests
