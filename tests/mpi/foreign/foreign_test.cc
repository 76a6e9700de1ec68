// Programs of MPICH's binary interface run on Ferry: a program that MPICH's own header and library
// have made, and those of tests/mpi/ranks with them; and what libmpi.so.12 shows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "tests/e2e/exports.h"
#include "tests/mpi/e2e/mpi_job.h"

namespace ferry::mpi_tests {
namespace {

namespace fs = std::filesystem;
using e2e::CommandResult;
using e2e::RunCommand;
using e2e::SortedLines;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr char kLibrary[] = "mpi/foreign/mpich/libmpi.so.12";
constexpr char kHeaders[] = "/usr/include/x86_64-linux-gnu/mpich";
constexpr char kTheirLibrary[] = "/usr/lib/x86_64-linux-gnu/libmpich.so.12";

// ---- What it shows ------------------------------------------------------------------------------

// Names that MPICH's libraries for Fortran and C++, its tools (QMPI) and its MPI-IO use; mpi.h
// declares none of them but QMPI's. docs/binaries.md says that they are missing.
bool IsInternal(const std::string& name) {
  return name.starts_with("MPII_") || name.starts_with("MPIR_Err_") || name.starts_with("QMPI_");
}

TEST(ForeignNamesTest, ShowsWhatMpichShows) {
  if (!fs::exists(kTheirLibrary)) {
    GTEST_SKIP() << kTheirLibrary << " is not installed: apt-get install libmpich12";
  }
  const auto ours = e2e::ExportsOf(kLibrary);
  int functions = 0;
  for (const auto& [name, symbol] : e2e::ExportsOf(kTheirLibrary)) {
    if (!IsInternal(name)) {
      EXPECT_TRUE(ours.contains(name)) << name;
      functions += symbol.kind == 'T' || symbol.kind == 'W' ? 1 : 0;
    }
  }
  EXPECT_EQ(functions, 1269);
}

// A name of libmpi_abi that is not here could be found there, with other arguments. MPIX_ names
// are Ferry's own, for programs that Ferry's mpix.h has made.
TEST(ForeignNamesTest, ShowsWhatLibmpiAbiShows) {
  const auto ours = e2e::ExportsOf(kLibrary);
  std::vector<std::string> names;
  for (const auto& [name, symbol] : e2e::ExportsOf("mpi/libmpi_abi.so.1")) {
    if (name.starts_with("MPI_")) {
      names.push_back(name);
    }
  }
  EXPECT_GT(names.size(), 600u);
  e2e::ExpectBothNames(kLibrary, names, "P");
}

TEST(ForeignNamesTest, IsCalledAsMpichsIs) {
  const CommandResult elf = RunCommand({"/usr/bin/readelf", "-d", kLibrary});
  EXPECT_THAT(elf.out, AllOf(HasSubstr("soname: [libmpi.so.12]"), Not(HasSubstr("libmpi_abi"))));
}

TEST(ForeignNamesTest, NumbersAreThoseOfMpichsHeader) {
  if (!fs::exists(kHeaders)) {
    GTEST_SKIP() << kHeaders << " is not there: apt-get install libmpich-dev";
  }
  const CommandResult result =
      RunCommand({"/usr/bin/python3", "tests/mpi/foreign/compare_numbers.py",
                  "mpi/foreign/mpich/numbers.txt", kHeaders});
  EXPECT_EQ(result.out, "330 names, 0 differences\n") << result.err;
}

// ---- Programs -----------------------------------------------------------------------------------

class ForeignProgramTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(kHeaders) || !fs::exists(kTheirLibrary)) {
      GTEST_SKIP() << kHeaders << " is not there: apt-get install libmpich-dev";
    }
  }

  // Compiles it with MPICH's header and links it with MPICH's library.
  std::string Compile(const std::string& source, const std::vector<std::string>& more = {}) const {
    const std::string program = folder_ / fs::path(source).stem().string();
    std::vector<std::string> words = {
        "/usr/bin/gcc", "-w", "-O1",   "-I.",         "-I" + std::string(kHeaders),
        source,         "-o", program, kTheirLibrary, "-pthread"};
    words.insert(words.end(), more.begin(), more.end());
    const CommandResult result = RunCommand(words);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return program;
  }
  std::string Write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
    return folder_ / name;
  }

  const e2e::TempDirectory folder_;
};

TEST_F(ForeignProgramTest, DoesWhatThatInterfaceSays) {
  const std::string program = Compile("tests/mpi/foreign/program.c");
  ExpectAllOk(1, program);
  ExpectAllOk(2, program);
  ExpectAllOk(5, program);
  const CommandResult result = RunJob({"", {"-n", "3", "--nodes", "3"}}, {program});
  EXPECT_EQ(SortedLines(result.out),
            (std::vector<std::string>{"rank 0: ok", "rank 1: ok", "rank 2: ok"}))
      << result.err;
}

// Those that name nothing of MPI 5.
TEST_F(ForeignProgramTest, ProgramsOfTheStandardsInterfaceRunInThisOneToo) {
  struct Case {
    const char* name;
    int ranks;
    const char* line;
  };
  for (const auto& [name, ranks, line] :
       {Case{"generalized", 2, "generalised requests are well"},
        Case{"intercommunicators", 3, "all intercommunicators were right"},
        Case{"messages", 3, "all messages were right"},
        Case{"operations", 3, "all operations were right"},
        Case{"threads", 2, "all threads were served"},
        Case{"topologies", 4, "all topologies were right"},
        Case{"windows", 2, "all windows were right"}}) {
    SCOPED_TRACE(name);
    ExpectJob({"", {"-n", std::to_string(ranks)}},
              {Compile("tests/mpi/ranks/" + std::string(name) + ".c")}, line);
  }
}

constexpr char kHello[] =
    "#include <mpi.h>\n#include <stdio.h>\n"
    "int main(int argc, char** argv) {\n"
    "  char text[MPI_MAX_LIBRARY_VERSION_STRING]; int length, rank, size;\n"
    "  MPI_Init(&argc, &argv);\n"
    "  MPI_Comm_rank(MPI_COMM_WORLD, &rank);\n"
    "  MPI_Comm_size(MPI_COMM_WORLD, &size);\n"
    "  MPI_Get_library_version(text, &length);\n"
    "  int is_ferry = 0;\n"
    "  for (char* c = text; *c; ++c) is_ferry |= c[0] == 'F' && c[1] == 'e' && c[2] == 'r';\n"
    "  printf(\"%d of %d on %s\\n\", rank, size, is_ferry ? \"Ferry\" : \"MPICH\");\n"
    "  MPI_Finalize();\n  return 0;\n}\n";

TEST_F(ForeignProgramTest, TheUserSaysOnWhatItRuns) {
  const std::string hello = Compile(Write("hello.c", kHello));
  const std::vector<std::string> on_ferry = {"0 of 2 on Ferry", "1 of 2 on Ferry"};
  const std::vector<std::string> on_mpich = {"0 of 2 on MPICH", "1 of 2 on MPICH"};
  CommandResult result = RunJob({"", {"-n", "2"}}, {hello});
  EXPECT_EQ(SortedLines(result.out), on_ferry) << result.err;
  EXPECT_EQ(result.err, "") << "nothing is to be said of it";
  result = RunJob({"", {"-n", "2"}}, {"/usr/bin/env", hello});
  EXPECT_EQ(SortedLines(result.out), on_ferry) << "started by another program: " << result.err;
  result = RunJob({"", {"-n", "2", "--abi=mpich"}}, {hello});
  EXPECT_EQ(SortedLines(result.out), on_ferry) << result.err;
  result = RunJob({"", {"-n", "2", "--abi", "native"}}, {hello}, {"HOME=" + folder_.path()});
  EXPECT_EQ(SortedLines(result.out), on_mpich) << result.err;
  EXPECT_THAT(result.err, HasSubstr("the ranks do not use Ferry, but another MPI library"));
  result = RunJob({"", {"-n", "2"}}, {hello}, {"FERRY_ABI=native", "HOME=" + folder_.path()});
  EXPECT_EQ(SortedLines(result.out), on_mpich) << result.err;
  result = RunJob({"", {"-n", "2", "--abi=openmpi"}}, {hello});
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(result.err, HasSubstr("it is one of auto|native|mpich"));
  result = RunJob({"", {"-n", "2"}}, {hello}, {"FERRY_ABI=lam"});
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(result.err, HasSubstr("FERRY_ABI=lam: it is one of auto|native|mpich"));
}

// The user's own path stays, behind Ferry's; a program of Ferry's own interface, or of one that is
// not served, has it unchanged.
TEST_F(ForeignProgramTest, ThePathOfLibrariesIsChangedWhereItIsNeeded) {
  const CommandResult result = RunJob({"", {"-n", "1"}}, {"/bin/sh", "-c", "echo $LD_LIBRARY_PATH"},
                                      {"LD_LIBRARY_PATH=/opt/mine"});
  EXPECT_THAT(result.out, testing::MatchesRegex(".*/mpi/foreign/mpich:/opt/mine\n"));
}

// A tool of that interface stands between the program and the library.
TEST_F(ForeignProgramTest, ToolsSeeTheCalls) {
  const std::string tool = folder_ / "libtool.so";
  const CommandResult compiled =
      RunCommand({"/usr/bin/gcc", "-shared", "-fPIC", "-I" + std::string(kHeaders), "-o", tool,
                  Write("tool.c",
                        "#include <mpi.h>\n#include <stdio.h>\n"
                        "int MPI_Comm_size(MPI_Comm comm, int* size) {\n"
                        "  const int code = PMPI_Comm_size(comm, size);\n"
                        "  *size += comm == MPI_COMM_WORLD ? 40 : 0;\n  return code;\n}\n")});
  ASSERT_EQ(compiled.exit_code, 0) << compiled.err;
  const CommandResult result =
      RunJob({"", {"-n", "2", "-x", "LD_PRELOAD=" + tool}}, {Compile(Write("hello.c", kHello))});
  EXPECT_EQ(SortedLines(result.out),
            (std::vector<std::string>{"0 of 42 on Ferry", "1 of 42 on Ferry"}))
      << result.err;
}

// ---- Two libraries in a process -----------------------------------------------------------------

constexpr char kTwo[] =
    "#include <dlfcn.h>\n#include <mpi.h>\n#include <stdio.h>\n#include <stdlib.h>\n"
    "int main(int argc, char** argv) {\n"
    "  void* const other = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);\n"
    "  if (other == NULL) { puts(dlerror()); return 3; }\n"
    "  int flag = 0;\n"
    "  if (argc > 2) ((int (*)(int*, char***))dlsym(other, \"MPI_Init\"))(NULL, NULL);\n"
    "  MPI_Initialized(&flag);\n"
    "  if (!flag) MPI_Init(NULL, NULL);\n"
    "  MPI_Comm_size(MPI_COMM_WORLD, &flag);\n"
    "  printf(\"a job of %d\\n\", flag);\n"
    "  MPI_Finalize();\n  return 0;\n}\n";

TEST_F(ForeignProgramTest, FerrysTwoLibrariesAreOneJob) {
  const std::string two = Compile(Write("two.c", kTwo), {"-ldl"});
  const CommandResult result =
      RunJob({"", {"-n", "2"}}, {two, fs::absolute("mpi/libmpi_abi.so.1"), "init"});
  EXPECT_EQ(result.out, "a job of 2\na job of 2\n") << result.err;
}

TEST_F(ForeignProgramTest, ARankOfAnotherLibraryIsRefused) {
  const std::string two = Compile(Write("two.c", kTwo), {"-ldl"});
  const std::vector<std::string> home = {"HOME=" + folder_.path(), "TMPDIR=" + folder_.path()};
  CommandResult result = RunJob({"", {"-n", "1"}}, {two, kTheirLibrary, "init"}, home);
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(result.err,
              AllOf(HasSubstr("this process is a rank of /usr/lib/x86_64-linux-gnu/libmpich.so.12"),
                    HasSubstr("it would be part of two jobs")));
  result = RunJob({"", {"-n", "1"}}, {two, kTheirLibrary}, home);
  EXPECT_EQ(result.out, "a job of 1\n") << result.err;
  EXPECT_THAT(result.err, HasSubstr("this process has loaded /usr/lib/x86_64-linux-gnu/libmpich"));
}

}  // namespace
}  // namespace ferry::mpi_tests
