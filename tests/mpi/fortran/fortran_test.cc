// Every procedure of MPI is called from Fortran and does its work, over mpif.h, over the module mpi
// and over mpi_f08, in programs that ferryfc has compiled; and what libmpifort_abi shows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/e2e/exports.h"
#include "tests/mpi/e2e/mpi_job.h"
#include "tests/mpi/fortran/programs.h"
#include "tests/support/processes.h"

namespace ferry::mpi_tests {
namespace {

using e2e::CommandResult;
using e2e::RunCommand;
using testing::HasSubstr;

constexpr char kLibrary[] = "mpi/libmpifort_abi.so.1";

struct Program {
  const char* name;
  int ranks;
};
// Their procedures together are all that there are.
constexpr Program kPrograms[] = {{"collectives", 3}, {"environment", 2}, {"files", 2},
                                 {"messages", 2},    {"objects", 2},     {"windows", 2}};

class FortranTest : public FortranPrograms {
 protected:
  // `interface`: "use mpi", or the line that includes mpif.h.
  void CompileCases(const std::string& name, bool with_module) const {
    Compile({with_module ? "-DUSE_LINE=use mpi" : "-DUSE_LINE=",
             with_module ? "-DINCLUDE_LINE=" : "-DINCLUDE_LINE=include 'mpif.h'",
             "-DHANDLE(kind)=integer", kFolder + "checks.f90", kFolder + name + ".F90", "-o",
             Path(name)});
  }
  void CompileQueues() const {
    Compile(Joined({kFolder + "checks.f90", kFolder + "queues.f90", "-o", Path("queues")},
                   OfLibferry()));
  }
  // With kernels, which are in C++.
  void CompilePrequests() const {
    const CommandResult kernels =
        RunCommand({"tools/wrappers/ferrycxx", "-std=c++17", "-O2", "-pthread", "-c",
                    kFolder + "kernels.cc", "-o", Path("kernels.o")});
    EXPECT_EQ(kernels.exit_code, 0) << kernels.err;
    Compile(Joined({kFolder + "checks.f90", kFolder + "prequests.f90", Path("kernels.o"), "-o",
                    Path("prequests"), "-lstdc++", "-pthread"},
                   OfLibferry()));
  }
  // Four ranks on two nodes, or so many.
  void ExpectAllOkOnTwoNodes(const std::string& name, int ranks = 4) const {
    const CommandResult result =
        RunJob({"", {"-n", std::to_string(ranks), "--nodes", "2"}}, {Path(name)});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    std::vector<std::string> lines;
    for (int rank = 0; rank < ranks; ++rank) {
      lines.push_back("rank " + std::to_string(rank) + ": ok");
    }
    EXPECT_EQ(e2e::SortedLines(result.out), lines) << name;
  }
  // One of mpi_f08.
  void CompileTyped(const std::string& source, const std::string& name) const {
    Compile({kFolder + "checks.f90", kFolder + source, "-o", Path(name)});
  }
  void RunCases(bool with_module) const {
    for (const auto& [name, ranks] : kPrograms) {
      CompileCases(name, with_module);
      ExpectAllOk(ranks, Path(name));
    }
  }

  static std::vector<std::string> Joined(std::vector<std::string> words,
                                         const std::vector<std::string>& more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  static std::vector<std::string> OfLibferry() {
    const std::string client = std::filesystem::current_path() / "client";
    return {"-L" + client, "-Wl,-rpath," + client, "-l:libferry.so.0"};
  }
};

TEST_F(FortranTest, EveryProcedureDoesItsWorkOverMpifH) { RunCases(false); }
TEST_F(FortranTest, EveryProcedureDoesItsWorkOverTheModule) { RunCases(true); }

TEST_F(FortranTest, ProgramsInFixedFormRun) {
  Compile({kFolder + "ring.f", "-o", Path("ring")});
  ExpectAllOk(3, Path("ring"));
  EXPECT_EQ(RunJob({"", {"-n", "2"}}, {Path("ring"), "abort"}).exit_code, 7);
}

// Collectives between nodes, too.
TEST_F(FortranTest, ProgramsRunOnSeveralNodes) {
  CompileCases("collectives", true);
  ExpectAllOkOnTwoNodes("collectives");
}

// On two grids its error falls by four.
TEST_F(FortranTest, TheFlowOfTheExampleIsTheExactOne) {
  Compile({"examples/mpi_vortex/vortex.f90", "-o", Path("vortex")});
  for (const char* ranks : {"1", "4"}) {
    const CommandResult result = RunJob({"", {"-n", ranks}}, {Path("vortex")});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.out, HasSubstr("second order, as it should be")) << ranks << " ranks";
  }
}

TEST_F(FortranTest, AToolInFortranTakesTheCalls) {
  Compile({kFolder + "checks.f90", kFolder + "tool.f90", "-o", Path("tool")});
  ExpectAllOk(2, Path("tool"));
}

// ---- mpi_f08 ------------------------------------------------------------------------------------

TEST_F(FortranTest, ProceduresOfMpiF08DoTheirWork) {
  CompileTyped("typed.f90", "typed");
  ExpectAllOk(2, Path("typed"));
  ExpectAllOk(3, Path("typed"));
  CompileTyped("typed_collectives.F90", "collectives");
  ExpectAllOk(3, Path("collectives"));
}

TEST_F(FortranTest, ProceduresOfFilesDoTheirWorkOverMpiF08) {
  Compile({"-DUSE_LINE=use mpi_f08", "-DINCLUDE_LINE=", "-DTYPED", "-DHANDLE(kind)=type(kind)",
           kFolder + "checks.f90", kFolder + "files.F90", "-o", Path("files")});
  ExpectAllOk(2, Path("files"));
}

TEST_F(FortranTest, SectionsOfArraysAreBuffersOfMpiF08) {
  CompileTyped("sections.f90", "sections");
  ExpectAllOk(1, Path("sections"));
  ExpectAllOk(2, Path("sections"));
  ExpectAllOkOnTwoNodes("sections");
}

TEST_F(FortranTest, DatatypesOfSectionsAreKeptForOthersOfTheSameForm) {
  Compile({"-fopenmp", kFolder + "checks.f90", kFolder + "kept_types.f90", "-o", Path("kept")});
  ExpectAllOk(1, Path("kept"));
  ExpectAllOk(2, Path("kept"));
  ExpectAllOkOnTwoNodes("kept", 2);
}

TEST_F(FortranTest, AToolInFortranTakesTheCallsOfMpiF08) {
  CompileTyped("typed_tool.f90", "tool");
  ExpectAllOk(2, Path("tool"));
}

// ---- Constants of several libraries -------------------------------------------------------------

// Each of three libraries that a program opens for itself alone has its own MPI_IN_PLACE and so on:
// all are known, also where the one before was closed. Over mpif.h and mpi_f08, and both in a
// process.
TEST_F(FortranTest, LibrariesThatAreOpenedHaveConstantsOfTheirOwn) {
  const CommandResult compiled =
      RunCommand({"/usr/bin/gcc", "-O1", kFolder + "plugins.c", "-o", Path("plugins"), "-ldl"});
  ASSERT_EQ(compiled.exit_code, 0) << compiled.err;
  for (const std::string name : {"one", "two", "three"}) {
    Compile({"-shared", "-fPIC", kFolder + "plugin.F90", "-o", Path(name + "_low.so")});
    Compile({"-shared", "-fPIC", "-DTYPED", kFolder + "plugin.F90", "-o", Path(name + "_f08.so")});
  }
  for (const auto& [first, others] :
       {std::pair{"_low.so", "_low.so"}, std::pair{"_f08.so", "_f08.so"},
        std::pair{"_low.so", "_f08.so"}}) {
    const CommandResult result = RunJob(
        {"", {"-n", "2"}},
        {Path("plugins"), Path("one") + first, Path("two") + others, Path("three") + others});
    EXPECT_EQ(result.out, "all right\nall right\n") << first << others << result.err;
  }
}

// ---- Ferry's additions --------------------------------------------------------------------------

// Between ranks of one node and of two; arrays in memory of emulated devices.
TEST_F(FortranTest, QueuesMoveArraysOfDevices) {
  CompileQueues();
  ExpectAllOk(2, Path("queues"));
  ExpectAllOkOnTwoNodes("queues", 2);
}

TEST_F(FortranTest, PartitionedCollectivesDoTheirWorkOverMpifHAndTheModule) {
  for (const bool with_module : {false, true}) {
    CompileCases("partitioned", with_module);
    ExpectAllOk(3, Path("partitioned"));
  }
  ExpectAllOkOnTwoNodes("partitioned");
}

TEST_F(FortranTest, PartitionedCollectivesDoTheirWorkOverMpiF08) {
  CompileTyped("typed_partitioned.F90", "partitioned");
  ExpectAllOk(1, Path("partitioned"));
  ExpectAllOk(2, Path("partitioned"));
  ExpectAllOkOnTwoNodes("partitioned");
}

TEST_F(FortranTest, KernelsReadyPartitionsByPrequests) {
  CompilePrequests();
  ExpectAllOk(1, Path("prequests"));
  ExpectAllOk(2, Path("prequests"));
  ExpectAllOkOnTwoNodes("prequests", 2);
  ExpectAllOkOnTwoNodes("prequests");
}

// ---- What there is ------------------------------------------------------------------------------

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    lines.push_back(line);
  }
  return lines;
}

// MPI 5.0 has 434 procedures in Fortran, three of them in modules alone. Those that give memory
// have a second form; each is there under MPI and PMPI, in four spellings. 13 predefined callbacks,
// five helpers of the modules with their twins, and ten constants that are common blocks.
//
// mpi_f08 has all but the five deprecated ones and those that the modules share: 426, of which 155
// have a form of large counts (159 less the four that would be the same twice). 146 and 129 of them
// have buffers: those are there with addresses, for other compilers, and with descriptions. Large
// counts have a predefined callback of their own.
//
// Of Ferry's 45 additions 41 have handles, of which 22 have buffers. C's conversions of 11 kinds of
// handles and of statuses have twins.
TEST(LibraryTest, ShowsWhatTheTableSays) {
  std::set<std::string> names;
  for (const std::string& line : Lines(tests::ReadFile(kFolder + "names.txt"))) {
    EXPECT_TRUE(names.insert(line).second) << line;
  }
  EXPECT_EQ(names.size(), (434u - 3 + 4) * 2 * 4 + 13 * 4 + 3 + 4 + 10 +
                              (426 + 155 + 146 + 129) * 2 + 1 + 45 * 4 + 41 + 22 +
                              (11 * 2 + 6) * 2);
  std::set<std::string> shown;
  for (const auto& [name, symbol] : e2e::ExportsOf(kLibrary)) {
    shown.insert(name);
  }
  for (const std::string& name : names) {
    EXPECT_TRUE(shown.contains(name)) << name << " is not shown";
  }
  for (const std::string& name : shown) {
    EXPECT_TRUE(names.contains(name)) << name << " is shown";
  }
}

bool IsOfMpiF08(const std::string& name) {
  return !name.starts_with("mpix_") && (name.ends_with("_f08_") || name.ends_with("_f08ts_"));
}

std::set<std::string> SymbolsThatItCalls(const std::string& program) {
  std::set<std::string> called;
  for (const std::string& line : Lines(RunCommand({"/usr/bin/nm", "-uP", program}).out)) {
    called.insert(line.substr(0, line.find(' ')));
  }
  return called;
}

// Each interface of mpi_f08 takes a call, with and without large counts, with `ierror` and without,
// and there is a procedure behind each.
TEST_F(FortranTest, EachProcedureOfMpiF08IsLinked) {
  Compile({"-O0", kFolder + "typed_calls.f90", "-o", Path("calls")});
  ExpectAllOk(1, Path("calls"));
  const std::set<std::string> called = SymbolsThatItCalls(Path("calls"));
  const std::vector<std::string> all = Lines(tests::ReadFile(kFolder + "names.txt"));
  const std::set<std::string> names(all.begin(), all.end());
  size_t procedures = 0;
  for (const std::string& name : names) {
    // Of those that are there with addresses, too, gfortran has the others.
    const bool has_other =
        name.ends_with("_f08_") && names.contains(name.substr(0, name.size() - 1) + "ts_");
    if (IsOfMpiF08(name) && !has_other) {
      ++procedures;
      EXPECT_TRUE(called.contains(name)) << name << " is never called";
    }
  }
  EXPECT_EQ(procedures, (426u + 155) * 2);
}

// The programs above leave none out: each procedure that they call is an undefined symbol of
// theirs.
TEST_F(FortranTest, ThereIsACaseForEachProcedure) {
  std::set<std::string> called = {"mpi_abort_"};  // ring.f
  for (const auto& [name, ranks] : kPrograms) {
    CompileCases(name, true);
    called.merge(SymbolsThatItCalls(Path(name)));
  }
  size_t procedures = 0;
  for (const std::string& name : Lines(tests::ReadFile(kFolder + "names.txt"))) {
    const bool is_procedure = name.starts_with("mpi_") && name.ends_with('_') &&
                              !name.ends_with("__") && !name.starts_with("mpi_status_f") &&
                              !name.ends_with("_fn_") && !name.ends_with("_fn_null_") &&
                              !name.ends_with("_fn_null_c_") && !IsOfMpiF08(name);
    if (is_procedure) {
      ++procedures;
      EXPECT_TRUE(called.contains(name)) << name << " is never called";
    }
  }
  EXPECT_EQ(procedures, 434u - 3 + 4);
}

// Additions are procedures with typed handles, of which gfortran has the ones with descriptors if
// there are any, and procedures without handles; collectives also have forms with integers.
TEST_F(FortranTest, ThereIsACaseForEachAddition) {
  CompileQueues();
  CompilePrequests();
  std::set<std::string> called = SymbolsThatItCalls(Path("queues"));
  called.merge(SymbolsThatItCalls(Path("prequests")));
  CompileCases("partitioned", true);
  called.merge(SymbolsThatItCalls(Path("partitioned")));
  CompileTyped("typed_partitioned.F90", "partitioned");
  called.merge(SymbolsThatItCalls(Path("partitioned")));
  const std::vector<std::string> all = Lines(tests::ReadFile(kFolder + "names.txt"));
  const std::set<std::string> names(all.begin(), all.end());
  size_t additions = 0;
  for (const std::string& name : names) {
    if (!name.starts_with("mpix_") || !names.contains(name + "_") || name.ends_with('_')) {
      continue;
    }
    ++additions;
    const bool is_typed = names.contains(name + "_f08_");
    const std::string described = name + "_f08ts_";
    const std::string typed = names.contains(described) ? described : name + "_f08_";
    EXPECT_TRUE(called.contains(is_typed ? typed : name + "_")) << name << " is never called";
    if (name.ends_with("_init") && is_typed) {
      EXPECT_TRUE(called.contains(name + "_")) << name << " is never called with integers";
    }
  }
  EXPECT_EQ(additions, 45u);
}

// A program has the constants as symbols of its own: the library must ask for those.
TEST(LibraryTest, BindsConstantsToThoseOfTheProgram) {
  const std::string relocations = RunCommand({"/usr/bin/readelf", "-rW", kLibrary}).out;
  for (const std::string name :
       {"bottom", "in_place", "buffer_automatic", "status_ignore", "statuses_ignore",
        "errcodes_ignore", "unweighted", "weights_empty", "argv_null", "argvs_null"}) {
    EXPECT_THAT(relocations, HasSubstr(" ferry_mpi_" + name + "_ + 0")) << name;
  }
  const std::string dynamic = RunCommand({"/usr/bin/readelf", "-dW", kLibrary}).out;
  EXPECT_THAT(dynamic, HasSubstr("soname: [libmpifort_abi.so.1]"));
  EXPECT_THAT(dynamic, HasSubstr("Shared library: [libmpi_abi.so.1]"));
  EXPECT_THAT(dynamic, testing::Not(HasSubstr("gfortran")));
}

}  // namespace
}  // namespace ferry::mpi_tests
