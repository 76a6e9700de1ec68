// Programs in Fortran and C++ that the headers, modules and libraries of MPICH and Open MPI have
// made run on Ferry. MPICH's libraries for these languages, as they are, call Ferry's libmpi.so.12;
// those of Open MPI are Ferry's.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "tests/e2e/exports.h"
#include "tests/mpi/e2e/mpi_job.h"

namespace ferry::mpi_tests {
namespace {

namespace fs = std::filesystem;
using e2e::CommandResult;
using e2e::RunCommand;
using e2e::SortedLines;

const std::string kLibraries = "/usr/lib/x86_64-linux-gnu/";
const std::string kHeaders = "/usr/include/x86_64-linux-gnu/mpich";
const std::string kFolder = "tests/mpi/foreign/";

void ExpectAllOk(int ranks, int nodes, const std::string& program,
                 const std::string& line_of_each = "") {
  std::vector<std::string> lines;
  std::string said;
  for (int rank = 0; rank < ranks; ++rank) {
    lines.push_back("rank " + std::to_string(rank) + ": ok");
    said += line_of_each;
  }
  const CommandResult result =
      RunJob({"", {"-n", std::to_string(ranks), "--nodes", std::to_string(nodes)}}, {program});
  EXPECT_EQ(SortedLines(result.out), lines) << result.err;
  EXPECT_EQ(result.err, said);
}

// On one node and on several.
void ExpectOk(const std::string& program, const std::string& line_of_each = "") {
  for (const auto& [ranks, nodes] :
       {std::pair{1, 1}, std::pair{2, 1}, std::pair{4, 1}, std::pair{3, 3}}) {
    ExpectAllOk(ranks, nodes, program, line_of_each);
  }
}

// ---- MPICH --------------------------------------------------------------------------------------

class LanguagesTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(kHeaders + "/mpif.h") || !fs::exists(kLibraries + "libmpichfort.so.12")) {
      GTEST_SKIP() << kHeaders << "/mpif.h is not there: apt-get install libmpich-dev";
    }
  }

  // With what mpif90.mpich and mpicxx.mpich call. `library`: MPICH's, of the language.
  std::string Compile(std::vector<std::string> words, const std::string& name,
                      const std::string& library) const {
    const std::string program = folder_ / name;
    words.insert(words.end(), {"-I" + kHeaders, "-o", program, kLibraries + library,
                               kLibraries + "libmpich.so.12"});
    const CommandResult result = RunCommand(words);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return program;
  }
  std::string CompileFortran(const std::string& source, const std::vector<std::string>& more,
                             const std::string& name) const {
    std::vector<std::string> words = {"/usr/bin/gfortran", "-O2", "-w", "-fallow-argument-mismatch",
                                      "-J" + folder_.path()};
    words.insert(words.end(), more.begin(), more.end());
    words.insert(words.end(), {"tests/mpi/fortran/checks.f90", kFolder + source});
    return Compile(words, name, "libmpichfort.so.12");
  }

  // Debian's library for Fortran with the names that MPICH gives it and the one that it needs: they
  // are shorter, and stand in the same place.
  static void WriteRenamed(const std::string& to) {
    std::ifstream original(kLibraries + "libmpichfort.so.12", std::ios::binary);
    std::string bytes{std::istreambuf_iterator<char>(original), {}};
    for (const auto& [theirs, elsewhere] :
         {std::pair<std::string, std::string>{"libmpichfort.so.12", "libmpifort.so.12"},
          {"libmpich.so.12", "libmpi.so.12"}}) {
      const size_t place = bytes.find(theirs + std::string(1, '\0'));
      ASSERT_NE(place, std::string::npos) << theirs;
      bytes.replace(place, theirs.size(),
                    elsewhere + std::string(theirs.size() - elsewhere.size(), '\0'));
    }
    std::ofstream(to, std::ios::binary) << bytes;
  }

  const e2e::TempDirectory folder_;
};

TEST_F(LanguagesTest, ProgramsOverMpifHRun) { ExpectOk(CompileFortran("fortran.F90", {}, "f77")); }

TEST_F(LanguagesTest, ProgramsOverTheModuleRun) {
  ExpectOk(CompileFortran("fortran.F90", {"-DWITH_MODULE"}, "f90"));
}

TEST_F(LanguagesTest, ProgramsOverMpiF08Run) {
  ExpectOk(CompileFortran("fortran_typed.f90", {}, "f08"));
}

TEST_F(LanguagesTest, ProgramsOverTheBindingsForCxxRun) {
  if (!fs::exists(kLibraries + "libmpichcxx.so.12")) {
    GTEST_SKIP() << "libmpichcxx.so.12 is not there: apt-get install libmpich-dev";
  }
  ExpectOk(
      Compile({"/usr/bin/g++", "-O2", "-w", kFolder + "bindings.cc"}, "cxx", "libmpichcxx.so.12"));
}

// MPICH's own names of its libraries, as its builds elsewhere have them.
TEST_F(LanguagesTest, FortransLibraryByTheNameThatItHasElsewhere) {
  const std::string library = folder_ / "libmpifort.so.12";
  WriteRenamed(library);
  const std::string program = folder_ / "elsewhere";
  const CommandResult compiled = RunCommand(
      {"/usr/bin/gfortran", "-w", "-fallow-argument-mismatch", "-J" + folder_.path(),
       "-I" + kHeaders, "tests/mpi/fortran/checks.f90", kFolder + "fortran.F90", "-o", program,
       library, "-Wl,--disable-new-dtags,-rpath," + folder_.path(), "-Wl,--allow-shlib-undefined"});
  ASSERT_EQ(compiled.exit_code, 0) << compiled.err;
  EXPECT_EQ(RunCommand({"/usr/bin/readelf", "-d", program}).out.find("mpich"), std::string::npos);
  ExpectAllOk(2, 1, program);
  ExpectAllOk(3, 3, program);
}

// By this name it may be another vendor's, which takes what MPICH's C library does not have.
TEST_F(LanguagesTest, FortransLibraryOfAnotherVendorKeepsItsOwn) {
  std::ofstream(folder_ / "vendor.c") << "void* impi_malloc(long);\nint MPI_Initialized(int*);\n"
                                         "void say(void) { impi_malloc(MPI_Initialized(0)); }\n";
  std::ofstream(folder_ / "main.c")
      << "#include <stdio.h>\n#include <string.h>\nvoid say(void);\n"
         "int main(int argc, char** argv, char** variables) {\n  if (argc > 1) say();\n"
         "  for (; *variables != NULL; ++variables) {\n"
         "    if (strncmp(*variables, \"LD_LIBRARY_PATH=\", 16) == 0) puts(*variables + 16);\n"
         "  }\n}\n";
  const std::string library = folder_ / "libmpifort.so.12";
  const std::string program = folder_ / "program";
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"-shared", "-fPIC", "-Wl,-soname,libmpifort.so.12",
                                 folder_ / "vendor.c", "-o", library},
        {folder_ / "main.c", "-o", program, library, "-Wl,-rpath," + folder_.path(),
         "-Wl,--allow-shlib-undefined"}}) {
    std::vector<std::string> all = {"/usr/bin/gcc"};
    all.insert(all.end(), words.begin(), words.end());
    const CommandResult compiled = RunCommand(all);
    ASSERT_EQ(compiled.exit_code, 0) << compiled.err;
  }
  const CommandResult result = RunJob({"", {"-n", "1"}}, {program}, {"LD_LIBRARY_PATH=/opt/mine"});
  EXPECT_EQ(result.out, "/opt/mine\n") << result.err;
}

// An attribute that one language sets is right in the other (MPI 5.0, section 19.3.7), and
// statuses are the same in both.
TEST_F(LanguagesTest, AttributesCrossLanguages) {
  std::ofstream(folder_ / "c.c") << R"(#include <mpi.h>
#include <stdint.h>
static int word = 42;
void set_in_c_(int* comm, int* key) { MPI_Comm_set_attr(*comm, *key, &word); }
int64_t get_in_c_(int* comm, int* key) {
  void* value; int flag;
  MPI_Comm_get_attr(*comm, *key, &value, &flag);
  return flag ? *(int64_t*)value : -1;
}
int is_my_word_(int64_t* value) { return *value == (int64_t)&word && *(int*)*value == 42; }
int source_in_c_(int* status) {
  MPI_Status converted;
  MPI_Status_f2c(status, &converted);
  return converted.MPI_SOURCE * 1000 + converted.MPI_TAG;
}
)";
  std::ofstream(folder_ / "main.f90") << R"(program main
  use mpi
  use checks
  implicit none
  integer :: key, ierr, other, status(MPI_STATUS_SIZE), rank
  integer(MPI_ADDRESS_KIND) :: value
  integer(8), external :: get_in_c
  integer, external :: is_my_word, source_in_c
  logical :: flag
  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, key, 0_8, ierr)
  value = 12345678901_8
  call MPI_Comm_set_attr(MPI_COMM_WORLD, key, value, ierr)
  call check(get_in_c(MPI_COMM_WORLD, key) == value, 'what Fortran has set, in C')
  call set_in_c(MPI_COMM_WORLD, key)
  call MPI_Comm_get_attr(MPI_COMM_WORLD, key, value, flag, ierr)
  call check(flag .and. is_my_word(value) == 1, 'what C has set, in Fortran')
  call MPI_Comm_dup(MPI_COMM_WORLD, other, ierr)
  value = 0
  call MPI_Comm_get_attr(other, key, value, flag, ierr)
  call check(flag .and. is_my_word(value) == 1, 'a copy of what C has set, in Fortran')
  call MPI_Comm_free(other, ierr)
  call MPI_Sendrecv(rank, 1, MPI_INTEGER, rank, 17, other, 1, MPI_INTEGER, rank, 17, &
                    MPI_COMM_WORLD, status, ierr)
  call check(source_in_c(status) == rank * 1000 + 17, 'a status')
  call report(rank)
  call MPI_Finalize(ierr)
end program
)";
  const std::string object = folder_ / "c.o";
  const CommandResult compiled =
      RunCommand({"/usr/bin/gcc", "-c", "-I" + kHeaders, folder_ / "c.c", "-o", object});
  ASSERT_EQ(compiled.exit_code, 0) << compiled.err;
  ExpectAllOk(2, 1,
              Compile({"/usr/bin/gfortran", "-w", "-J" + folder_.path(),
                       "tests/mpi/fortran/checks.f90", folder_ / "main.f90", object},
                      "mixed", "libmpichfort.so.12"));
}

// ---- Open MPI -----------------------------------------------------------------------------------

const std::string kHeadersOfOpenMpi = kLibraries + "openmpi/include";
const std::string kOursForCxx = "mpi/foreign/openmpi/libmpi_cxx.so.40";
const std::string kTheirsForCxx = kLibraries + "libmpi_cxx.so.40";

class OpenMpiLanguagesTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(kHeadersOfOpenMpi + "/mpi.h")) {
      GTEST_SKIP() << kHeadersOfOpenMpi << "/mpi.h is not there: apt-get install libopenmpi-dev";
    }
  }
  const e2e::TempDirectory folder_;
};

class OpenMpiCxxTest : public OpenMpiLanguagesTest {
 protected:
  void SetUp() override {
    OpenMpiLanguagesTest::SetUp();
    if (!fs::exists(kTheirsForCxx)) {
      GTEST_SKIP() << kTheirsForCxx << " is not there: Open MPI 5 has no bindings for C++";
    }
  }
};

// Inline functions call through the tables, and copies of the objects stand in programs.
TEST_F(OpenMpiCxxTest, TheClassesAreThoseOfTheOriginal) {
  const CommandResult compared =
      RunCommand({"/usr/bin/python3", kFolder + "compare_tables.py", kOursForCxx, kTheirsForCxx});
  EXPECT_EQ(compared.out, "17 tables, 77 objects, 0 differences\n") << compared.err;
}

TEST_F(OpenMpiCxxTest, ProgramsOverTheBindingsForCxxRun) {
  // Without optimisation all virtual functions are called by the tables; -no-pie has more copies.
  const std::vector<std::string> options = {"-O2", "-O0", "-no-pie"};
  for (const std::string& option : options) {
    const std::string program = folder_ / ("cxx" + option);
    const CommandResult compiled =
        RunCommand({"/usr/bin/g++", option, "-w", "-I" + kHeadersOfOpenMpi, kFolder + "bindings.cc",
                    "-o", program, kTheirsForCxx, kLibraries + "libmpi.so.40"});
    ASSERT_EQ(compiled.exit_code, 0) << compiled.err;
    ExpectOk(program, "MPI::mpi_errno has the error code: C++ exceptions are not thrown\n");
  }
}

TEST_F(OpenMpiLanguagesTest, ProgramsOverMpiF08Run) {
  const std::string modules = kLibraries + "fortran/gfortran-mod-15/openmpi";
  const std::string library = kLibraries + "libmpi_usempif08.so.40";
  if (!fs::exists(modules + "/mpi_f08.mod") || !fs::exists(library)) {
    GTEST_SKIP() << modules << "/mpi_f08.mod is not there: apt-get install libopenmpi-dev";
  }
  const std::string program = folder_ / "f08";
  // As mpif90.openmpi links: the program names this library alone.
  const CommandResult compiled = RunCommand(
      {"/usr/bin/gfortran", "-O2", "-w", "-J" + folder_.path(), "-I" + modules,
       "tests/mpi/fortran/checks.f90", kFolder + "fortran_typed.f90", "-o", program, library});
  ASSERT_EQ(compiled.exit_code, 0) << compiled.err;
  ExpectOk(program);
}

// As FortranTest.LibrariesThatAreOpenedHaveConstantsOfTheirOwn, of libmpi_mpifh.so.40.
TEST_F(OpenMpiLanguagesTest, LibrariesThatAreOpenedHaveConstantsOfTheirOwn) {
  const std::string fortran = kLibraries + "libmpi_mpifh.so.40";
  if (!fs::exists(fortran)) {
    GTEST_SKIP() << fortran << " is not there: apt-get install libopenmpi-dev";
  }
  const std::string folder = "tests/mpi/fortran/";
  const CommandResult main =
      RunCommand({"/usr/bin/gcc", folder + "plugins.c", "-o", folder_ / "plugins", "-ldl"});
  ASSERT_EQ(main.exit_code, 0) << main.err;
  std::vector<std::string> words = {folder_ / "plugins"};
  for (const char* name : {"one.so", "two.so", "three.so"}) {
    words.push_back(folder_ / name);
    const CommandResult compiled =
        RunCommand({"/usr/bin/gfortran", "-shared", "-fPIC", "-w", "-fallow-argument-mismatch",
                    "-I" + kHeadersOfOpenMpi, folder + "plugin.F90", "-o", words.back(), fortran});
    ASSERT_EQ(compiled.exit_code, 0) << compiled.err;
  }
  const CommandResult result = RunJob({"", {"-n", "2", "--abi", "openmpi"}}, words);
  EXPECT_EQ(result.out, "all right\nall right\n") << result.err;
}

// Each procedure, constant and type of Open MPI's modules: programs take them from the library.
TEST_F(OpenMpiLanguagesTest, TheModulesNamesAreThere) {
  const auto ours = e2e::ExportsOf("mpi/foreign/openmpi/libmpi_mpifh.so.40");
  const auto ours_of_c = e2e::ExportsOf("mpi/foreign/openmpi/libmpi.so.40");
  int names = 0;
  for (const char* library : {"libmpi_usempif08.so.40", "libmpi_usempi_ignore_tkr.so.40"}) {
    for (const auto& [name, symbol] : e2e::ExportsOf(kLibraries + library)) {
      // Two functions that the original calls itself, and one that has another procedure's name by
      // mistake.
      if (name != "ompi_buffer_detach_f08" && name != "pompi_buffer_detach_f08" &&
          name != "pmpi_ineighbor_alltoallv_init_f08_") {
        ++names;
        EXPECT_TRUE(ours.contains(name) || ours_of_c.contains(name)) << name;
      }
    }
  }
  EXPECT_GE(names, 1801);  // of Open MPI 4
}

}  // namespace
}  // namespace ferry::mpi_tests
