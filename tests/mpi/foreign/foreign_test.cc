// Programs of other binary interfaces run on Ferry: programs that MPICH's and Open MPI's own
// headers and libraries have made, and those of tests/mpi/ranks with them; and what Ferry's
// libraries of these interfaces show.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "tests/e2e/exports.h"
#include "tests/mpi/e2e/mpi_job.h"
#include "tests/mpi/foreign/interfaces.h"

namespace ferry::mpi_tests {
namespace {

namespace fs = std::filesystem;
using e2e::CommandResult;
using e2e::RunCommand;
using e2e::SortedLines;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::vector<std::string> Beginnings(int ranks, const std::string& after) {
  std::vector<std::string> lines;
  for (int rank = 0; rank < ranks; ++rank) {
    lines.push_back(std::to_string(rank) + " of " + std::to_string(ranks) + " on " + after);
  }
  return lines;
}

// ---- What they show -----------------------------------------------------------------------------

class ForeignNamesTest : public testing::TestWithParam<Interface> {};
INSTANTIATE_TEST_SUITE_P(Families, ForeignNamesTest, testing::Values(Mpich(), OpenMpi()), FamilyOf);

TEST_P(ForeignNamesTest, ShowsWhatTheOtherLibraryShows) {
  if (!fs::exists(GetParam().their_library)) {
    GTEST_SKIP() << GetParam().their_library << " is not installed: apt-get install "
                 << GetParam().package;
  }
  const auto ours = e2e::ExportsOf(GetParam().library);
  int functions = 0;
  int objects = 0;
  for (const auto& [name, symbol] : e2e::ExportsOf(GetParam().their_library)) {
    if (!GetParam().is_internal(name)) {
      const auto found = ours.find(name);
      EXPECT_NE(found, ours.end()) << name;
      const bool is_function = symbol.kind == 'T' || symbol.kind == 'W';
      functions += is_function ? 1 : 0;
      objects += is_function ? 0 : 1;
    }
  }
  EXPECT_GE(functions, GetParam().functions);
  EXPECT_GE(objects, GetParam().objects);
}

// A name of libmpi_abi that is not here could be found there, with other arguments. MPIX_ names
// are Ferry's own, for programs that Ferry's mpix.h has made.
TEST_P(ForeignNamesTest, ShowsWhatLibmpiAbiShows) {
  const auto ours = e2e::ExportsOf(GetParam().library);
  std::vector<std::string> names;
  for (const auto& [name, symbol] : e2e::ExportsOf("mpi/libmpi_abi.so.1")) {
    if (name.starts_with("MPI_")) {
      names.push_back(name);
    }
  }
  EXPECT_GT(names.size(), 600u);
  e2e::ExpectBothNames(GetParam().library, names, "P");
}

TEST_P(ForeignNamesTest, IsCalledAsTheOtherLibraryIs) {
  const CommandResult elf = RunCommand({"/usr/bin/readelf", "-d", GetParam().library});
  EXPECT_THAT(elf.out, AllOf(HasSubstr("soname: [" + GetParam().soname + "]"),
                             Not(HasSubstr("libmpi_abi"))));
}

TEST_P(ForeignNamesTest, NumbersAreThoseOfTheOtherHeader) {
  if (!fs::exists(GetParam().headers)) {
    GTEST_SKIP() << GetParam().headers << " is not there: apt-get install "
                 << GetParam().header_package;
  }
  const CommandResult result =
      RunCommand({"/usr/bin/python3", "tests/mpi/foreign/compare_numbers.py", GetParam().numbers,
                  GetParam().headers, GetParam().their_library});
  EXPECT_THAT(result.out, testing::EndsWith(" names, 0 differences\n")) << result.err;
  EXPECT_GE(std::atoi(result.out.c_str()), GetParam().compared);
}

// The loader copies these objects into programs, as large as they are there.
TEST(OpenMpisObjectsTest, AreAsLargeAsTheOriginals) {
  const Interface open_mpi = OpenMpi();
  if (!fs::exists(open_mpi.their_library)) {
    GTEST_SKIP() << open_mpi.their_library << " is not installed";
  }
  const auto sizes = [](const std::string& library) {
    std::set<std::string> found;
    std::istringstream lines(RunCommand({"/usr/bin/readelf", "--dyn-syms", "-W", library}).out);
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      std::string number, value, size, type, binding, visibility, section, name;
      words >> number >> value >> size >> type >> binding >> visibility >> section >> name;
      if (type == "OBJECT" && section != "UND") {
        found.insert(name + " " + size);
      }
    }
    return found;
  };
  const std::set<std::string> theirs = sizes(open_mpi.their_library);
  int compared = 0;
  for (const std::string& object : sizes(open_mpi.library)) {
    const std::string name = object.substr(0, object.find(' ') + 1);
    const auto same = theirs.lower_bound(name);
    if (object.starts_with("ompi_") && same != theirs.end() && same->starts_with(name)) {
      EXPECT_EQ(object, *same);
      ++compared;
    }
  }
  EXPECT_GT(compared, 100);
}

// Of each procedure there are the four names. Those of MPI_Sizeof belong to compilers; names in
// both cases, to mpi_f08.
TEST(OpenMpisFortranTest, ShowsTheProceduresOfTheOriginal) {
  const std::string theirs = "/usr/lib/x86_64-linux-gnu/libmpi_mpifh.so.40";
  if (!fs::exists(theirs)) {
    GTEST_SKIP() << theirs << " is not installed";
  }
  const auto ours = e2e::ExportsOf("mpi/foreign/openmpi/libmpi_mpifh.so.40");
  int procedures = 0;
  for (const auto& [name, symbol] : e2e::ExportsOf(theirs)) {
    const bool is_low = name.starts_with("mpi_") || name.starts_with("pmpi_");
    const bool is_capital = (name.starts_with("MPI_") || name.starts_with("PMPI_")) &&
                            name.find_first_of("abcdefghijklmnopqrstuvwxyz") == name.npos;
    if ((is_low || is_capital) && name.find("sizeof") == name.npos &&
        name.find("SIZEOF") == name.npos) {
      EXPECT_TRUE(ours.contains(name)) << name;
      ++procedures;
    }
  }
  EXPECT_GT(procedures, 2000);
}

TEST(OpenMpisFortranTest, ProgramsRun) {
  const Interface open_mpi = OpenMpi();
  const std::string fortran = "/usr/lib/x86_64-linux-gnu/libmpi_mpifh.so.40";
  if (!fs::exists(open_mpi.headers) || !fs::exists(fortran)) {
    GTEST_SKIP() << open_mpi.headers << " is not there: apt-get install libopenmpi-dev";
  }
  const e2e::TempDirectory folder;
  const std::string program = folder / "openmpi";
  const CommandResult compiled =
      RunCommand({"/usr/bin/gfortran", "-O1", "-w", "-fallow-argument-mismatch",
                  "-J" + folder.path(), "-I" + open_mpi.headers, "tests/mpi/foreign/openmpi.f90",
                  "-o", program, fortran, open_mpi.their_library});
  ASSERT_EQ(compiled.exit_code, 0) << compiled.err;
  ExpectAllOk(1, program);
  ExpectAllOk(2, program);
  ExpectAllOk(5, program);
  const CommandResult result = RunJob({"", {"-n", "3", "--nodes", "3"}}, {program});
  EXPECT_EQ(SortedLines(result.out),
            (std::vector<std::string>{"rank 0: ok", "rank 1: ok", "rank 2: ok"}))
      << result.err;
}

// ---- Programs -----------------------------------------------------------------------------------

class ForeignProgramTest : public testing::TestWithParam<Interface> {
 protected:
  void SetUp() override {
    if (!fs::exists(GetParam().headers) || !fs::exists(GetParam().their_library)) {
      GTEST_SKIP() << GetParam().headers << " is not there: apt-get install "
                   << GetParam().header_package;
    }
  }

  // Compiles it with the other header and links it with the other library.
  std::string Compile(const std::string& source, std::vector<std::string> more = {}) const {
    more.push_back("-pthread");
    return CompileFor(GetParam(), source, folder_ / fs::path(source).stem().string(), more);
  }
  std::string Write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
    return folder_ / name;
  }

  const e2e::TempDirectory folder_;
};
INSTANTIATE_TEST_SUITE_P(Families, ForeignProgramTest, testing::Values(Mpich(), OpenMpi()),
                         FamilyOf);

TEST_P(ForeignProgramTest, DoesWhatThatInterfaceSays) {
  for (const char* name :
       {"allocations", "messages", "collectives", "datatypes", "objects", "errors"}) {
    SCOPED_TRACE(name);
    const std::string program = Compile("tests/mpi/foreign/" + std::string(name) + ".c");
    ExpectAllOk(1, program);
    ExpectAllOk(2, program);
    ExpectAllOk(5, program);
    const CommandResult result = RunJob({"", {"-n", "3", "--nodes", "3"}}, {program});
    EXPECT_EQ(SortedLines(result.out),
              (std::vector<std::string>{"rank 0: ok", "rank 1: ok", "rank 2: ok"}))
        << result.err;
  }
}

// Those that name nothing that the other header lacks.
TEST_P(ForeignProgramTest, ProgramsOfTheStandardsInterfaceRunInThisOneToo) {
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
    if (!GetParam().can_compile.contains(name)) {
      continue;
    }
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
    "  printf(\"%d of %d on %s\\n\", rank, size, is_ferry ? \"Ferry\" : \"its own\");\n"
    "  MPI_Finalize();\n  return 0;\n}\n";

TEST_P(ForeignProgramTest, TheUserSaysOnWhatItRuns) {
  const std::string hello = Compile(Write("hello.c", kHello));
  const std::vector<std::string> on_ferry = Beginnings(2, "Ferry");
  const std::string family = GetParam().family;
  CommandResult result = RunJob({"", {"-n", "2"}}, {hello});
  EXPECT_EQ(SortedLines(result.out), on_ferry) << result.err;
  EXPECT_EQ(result.err, "") << "nothing is to be said of it";
  result = RunJob({"", {"-n", "2", "--abi=" + family}}, {"/usr/bin/env", hello});
  EXPECT_EQ(SortedLines(result.out), on_ferry) << "started by another program: " << result.err;
  result = RunJob({"", {"-n", "2", "--abi=" + family}}, {hello});
  EXPECT_EQ(SortedLines(result.out), on_ferry) << result.err;
  result = RunJob({"", {"-n", "2"}}, {hello}, {"FERRY_ABI=lam"});
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(result.err, HasSubstr("FERRY_ABI=lam: it is one of auto|native|mpich|openmpi"));
}

TEST_P(ForeignProgramTest, ItsOwnLibraryServesItIfTheUserSaysSo) {
  const std::string hello = Compile(Write("hello.c", kHello));
  const std::vector<std::string> own = Beginnings(2, "its own");
  const std::vector<std::string> home = {"HOME=" + folder_.path(), "TMPDIR=/tmp",
                                         "OMPI_ALLOW_RUN_AS_ROOT=1",
                                         "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"};
  CommandResult result = RunJob({"", {"-n", "2", "--abi", "native"}}, {hello}, home);
  EXPECT_EQ(SortedLines(result.out), own) << result.err;
  EXPECT_THAT(result.err, HasSubstr("the ranks do not use Ferry, but another MPI library"));
  std::vector<std::string> variables = home;
  variables.push_back("FERRY_ABI=native");
  result = RunJob({"", {"-n", "2"}}, {hello}, variables);
  EXPECT_EQ(SortedLines(result.out), own) << result.err;
}

// A program that needs no MPI library, but one that does: as most of those that are installed.
TEST_P(ForeignProgramTest, ALibraryOfTheProgramMayNeedIt) {
  const std::string library =
      CompileFor(GetParam(),
                 Write("part.c",
                       "#include <mpi.h>\n"
                       "int ranks(void) { int size; MPI_Init(0, 0);\n"
                       "  MPI_Comm_size(MPI_COMM_WORLD, &size); MPI_Finalize(); return size; }\n"),
                 folder_ / "libpart.so", {"-shared", "-fPIC", "-Wl,-soname,libpart.so"});
  const std::string program = folder_ / "whole";
  const CommandResult linked =
      RunCommand({"/usr/bin/gcc", "-w", "-o", program,
                  Write("whole.c",
                        "#include <stdio.h>\n#include <string.h>\nint ranks(void);\n"
                        "int main(int argc, char** argv, char** variable) {\n"
                        "  const char* ompi = \"-\";\n"
                        "  for (; *variable; ++variable)\n"
                        "    if (!strncmp(*variable, \"OMPI_COMM_WORLD_SIZE=\", 21))\n"
                        "      ompi = *variable + 21;\n"
                        "  printf(\"%d %s\\n\", ranks(), ompi); return 0; }\n"),
                  library, "-Wl,-rpath,$ORIGIN", "-Wl,--unresolved-symbols=ignore-all"});
  ASSERT_EQ(linked.exit_code, 0) << linked.err;
  const CommandResult result = RunJob({"", {"-n", "2"}}, {program});
  const std::string line = GetParam().family == "openmpi" ? "2 2" : "2 -";
  EXPECT_EQ(SortedLines(result.out), (std::vector<std::string>{line, line})) << result.err;
}

// The loader looks into the folders of a DT_RPATH, as conda's programs have, before all others.
TEST_P(ForeignProgramTest, TheProgramsRpathDoesNotKeepItFromFerry) {
  const std::string folder = fs::path(GetParam().their_library).parent_path();
  const std::string program =
      Compile(Write("hello.c", kHello), {"-Wl,--disable-new-dtags,-rpath," + folder});
  const CommandResult result = RunJob({"", {"-n", "2"}}, {program});
  EXPECT_EQ(SortedLines(result.out), Beginnings(2, "Ferry")) << result.err;
  const CommandResult other = RunJob({"", {"-n", "2", "--abi=native"}}, {program},
                                     {"HOME=" + folder_.path(), "TMPDIR=" + folder_.path()});
  EXPECT_THAT(other.out, Not(HasSubstr("on Ferry")));
}

// A tool of that interface stands between the program and the library.
TEST_P(ForeignProgramTest, ToolsSeeTheCalls) {
  const std::string tool =
      CompileFor(GetParam(),
                 Write("tool.c",
                       "#include <mpi.h>\n#include <stdio.h>\n"
                       "int MPI_Comm_size(MPI_Comm comm, int* size) {\n"
                       "  const int code = PMPI_Comm_size(comm, size);\n"
                       "  *size += comm == MPI_COMM_WORLD ? 40 : 0;\n  return code;\n}\n"),
                 folder_ / "libtool.so", {"-shared", "-fPIC"});
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

TEST_P(ForeignProgramTest, FerrysLibrariesAreOneJob) {
  const std::string two = Compile(Write("two.c", kTwo), {"-ldl"});
  for (const std::string& other :
       {std::string("mpi/libmpi_abi.so.1"), Mpich().library, OpenMpi().library}) {
    for (const char* init : {"init", ""}) {
      SCOPED_TRACE(other + " " + init);
      std::vector<std::string> words = {two, fs::absolute(other)};
      if (*init != '\0') {
        words.push_back(init);
      }
      const CommandResult result = RunJob({"", {"-n", "2"}}, words);
      EXPECT_EQ(result.out, "a job of 2\na job of 2\n") << result.err;
      EXPECT_EQ(result.err, "");
    }
  }
}

TEST_P(ForeignProgramTest, ARankOfAnotherLibraryIsRefused) {
  const std::string two = Compile(Write("two.c", kTwo), {"-ldl"});
  const std::vector<std::string> home = {"HOME=" + folder_.path(), "TMPDIR=" + folder_.path()};
  const std::string other = Mpich().their_library;
  if (!fs::exists(other)) {
    GTEST_SKIP() << other << " is not installed";
  }
  CommandResult result = RunJob({"", {"-n", "1"}}, {two, other, "init"}, home);
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(result.err,
              AllOf(HasSubstr(GetParam().soname + " (Ferry): this process is a rank of "
                                                  "/usr/lib/x86_64-linux-gnu/libmpich.so.12"),
                    HasSubstr("it would be part of two jobs")));
  result = RunJob({"", {"-n", "1"}}, {two, other}, home);
  EXPECT_EQ(result.out, "a job of 1\n") << result.err;
  EXPECT_THAT(result.err, HasSubstr("this process has loaded /usr/lib/x86_64-linux-gnu/libmpich"));
}

// ---- A library that does not fit ----------------------------------------------------------------

// Beside a copy of the library lies a libmpi_abi of this content; "": none.
class MismatchTest : public ForeignProgramTest {
 protected:
  CommandResult RunBeside(const std::string& content) const {
    const std::string folder = folder_ / "installed/ferry/mpich";
    fs::create_directories(folder);
    const auto replace = fs::copy_options::overwrite_existing;
    fs::copy_file(GetParam().library, folder + "/" + GetParam().soname, replace);
    fs::copy_file(GetParam().library, folder + "/libmpich.so.12", replace);
    const std::string library = folder_ / "installed/libmpi_abi.so.1";
    fs::remove(library);
    if (!content.empty()) {
      const std::string own = fs::absolute("mpi");
      const CommandResult compiled = RunCommand(
          {"/usr/bin/gcc", "-shared", "-fPIC", "-w", Write("abi.c", content), "-o", library,
           "-Wl,--no-as-needed", own + "/libmpi_abi.so.1", "-Wl,-rpath," + own});
      EXPECT_EQ(compiled.exit_code, 0) << compiled.err;
    }
    return RunJob({"", {"-n", "1", "--abi=native", "-x", "LD_LIBRARY_PATH=" + folder}},
                  {Compile(Write("hello.c", kHello))});
  }
};
INSTANTIATE_TEST_SUITE_P(Families, MismatchTest, testing::Values(Mpich(), OpenMpi()), FamilyOf);

TEST_P(MismatchTest, EndsTheProgramWithTheLibrarysName) {
  const std::string beginning = GetParam().soname + " (Ferry): ";
  for (const auto& [content, sentence] : {
           std::pair<std::string, std::string>{"", "cannot open Ferry's libmpi_abi.so.1"},
           {"int PMPI_Get_library_version(char* text, int* length) {\n"
            "  *length = 5;\n  __builtin_strcpy(text, \"Other\");\n  return 0;\n}\n",
            "libmpi_abi.so.1 is not Ferry's"},
           {"int PMPI_Status_set_elements_c(void* status, void* type, long count) {\n"
            "  return 0;\n}\n",
            "libmpi_abi.so.1 has another MPI_Status: it is of another version of Ferry"},
       }) {
    const CommandResult result = RunBeside(content);
    EXPECT_NE(result.exit_code, 0);
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err, HasSubstr(beginning + sentence));
  }
}

// Of another version that lacks a function: not linked with the present one, which has it.
TEST_P(MismatchTest, NamesAFunctionThatIsMissing) {
  const std::string folder = folder_ / "installed/ferry/mpich";
  RunBeside("");
  const CommandResult compiled =
      RunCommand({"/usr/bin/gcc", "-shared", "-fPIC", Write("abi.c", "int PMPI_Abort;\n"), "-o",
                  folder_ / "installed/libmpi_abi.so.1"});
  ASSERT_EQ(compiled.exit_code, 0) << compiled.err;
  const CommandResult result = RunJob(
      {"", {"-n", "1", "--abi=native", "-x", "LD_LIBRARY_PATH=" + folder}}, {folder_ / "hello"});
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(result.err,
              testing::ContainsRegex("libmpi_abi.so.1 has no PMPI_[A-Za-z_]+: it is of another "
                                     "version of Ferry"));
}

// ---- What ferryrun sets -------------------------------------------------------------------------

std::string Seen(const std::vector<std::string>& flags, const std::string& script) {
  std::vector<std::string> all = {"-n", "3"};
  all.insert(all.end(), flags.begin(), flags.end());
  const CommandResult result =
      RunJob({"", all}, {"/bin/sh", "-c", script}, {"LD_LIBRARY_PATH=/opt/mine"});
  std::string text;
  for (const std::string& line : SortedLines(result.out)) {
    text += line + "\n";
  }
  return text + result.err;
}

// The user's own path stays, behind Ferry's.
TEST(ForeignPathTest, FoldersOfFerrysComeFirst) {
  const char* const script = "echo $LD_LIBRARY_PATH";
  EXPECT_THAT(
      Seen({}, script),
      testing::MatchesRegex("(/.*/mpi/foreign/mpich:/.*/mpi/foreign/openmpi:/opt/mine\n)+"));
  EXPECT_THAT(Seen({"--abi=mpich"}, script),
              testing::MatchesRegex("(/[^:]*/mpi/foreign/mpich:/opt/mine\n)+"));
  EXPECT_THAT(Seen({"--abi=openmpi"}, script),
              testing::MatchesRegex("(/[^:]*/mpi/foreign/openmpi:/opt/mine\n)+"));
  EXPECT_EQ(Seen({"--abi=native"}, script), "/opt/mine\n/opt/mine\n/opt/mine\n");
}

TEST(ForeignPathTest, ProgramsOfOpenMpiKnowTheirRankBeforeTheyStartMpi) {
  const char* const script =
      "echo $OMPI_COMM_WORLD_RANK/$OMPI_COMM_WORLD_SIZE $OMPI_COMM_WORLD_LOCAL_RANK/"
      "$OMPI_COMM_WORLD_LOCAL_SIZE $OMPI_COMM_WORLD_NODE_RANK $OMPI_UNIVERSE_SIZE";
  EXPECT_EQ(Seen({"--abi=openmpi", "--nodes", "2"}, script),
            "0/3 0/2 0 3\n1/3 1/2 1 3\n2/3 0/1 0 3\n");
  EXPECT_EQ(Seen({"--abi=mpich"}, script), "/ /\n/ /\n/ /\n");
}

TEST(ForeignPathTest, ProgramsOfMvapichKnowTheirRankBeforeTheyStartMpi) {
  const char* const script =
      "echo $MV2_COMM_WORLD_RANK/$MV2_COMM_WORLD_SIZE $MV2_COMM_WORLD_LOCAL_RANK/"
      "$MV2_COMM_WORLD_LOCAL_SIZE";
  EXPECT_EQ(Seen({"--abi=mpich", "--nodes", "2"}, script), "0/3 0/2\n1/3 1/2\n2/3 0/1\n");
  EXPECT_EQ(Seen({"--abi=openmpi"}, script), "/ /\n/ /\n/ /\n");
}

}  // namespace
}  // namespace ferry::mpi_tests
