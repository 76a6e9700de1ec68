// The compiler wrappers: which command they run, and that they show the same one. The compiler is
// one that prints its arguments; tests/mpi/wrapper_test.cc has them build programs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/e2e/command.h"

namespace ferry::e2e {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;
using testing::StartsWith;

constexpr char kFerrycc[] = "tools/wrappers/ferrycc";
constexpr char kFerrycxx[] = "tools/wrappers/ferrycxx";
constexpr char kPrintsArguments[] = "FERRY_CC=/usr/bin/printf <%s>";

CommandResult RunWrapper(const std::vector<std::string>& arguments,
                         const std::string& variable = "") {
  return RunCommand(arguments, variable.empty() ? std::vector<std::string>{}
                                                : std::vector<std::string>{variable});
}

// The output of `arguments`, which succeed.
std::string Output(const std::vector<std::string>& arguments, const std::string& variable = "") {
  const CommandResult result = RunWrapper(arguments, variable);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return result.out;
}

TEST(FerryccTest, AddsItsFlagsAroundTheArguments) {
  EXPECT_THAT(Output({kFerrycc, "a.c", "-o", "a"}, kPrintsArguments),
              MatchesRegex("<-I/.*/include/ferry/mpi><-I/.*/include><a.c><-o><a>"
                           "<-L/.*><-Wl,-rpath,/.*><-l.*mpi_abi.*>"));
}

TEST(FerryccTest, LinksNothingWhenItOnlyCompiles) {
  for (const char* flag : {"-c", "-S", "-E", "-M", "-MM", "-fsyntax-only"}) {
    EXPECT_THAT(Output({kFerrycc, flag, "a.c"}, kPrintsArguments),
                AllOf(HasSubstr("include/ferry/mpi>"), Not(HasSubstr("mpi_abi")),
                      EndsWith(std::string("<") + flag + "><a.c>")));
  }
}

TEST(FerryccTest, AddsNothingWhenThereIsNothingToCompile) {
  EXPECT_EQ(Output({kFerrycc, "--version"}, kPrintsArguments), "<--version>");
}

TEST(FerryccTest, KeepsWordsTogether) {
  EXPECT_THAT(Output({kFerrycc, "-DNAME=\"two words\"", "-c", "my file.c"}, kPrintsArguments),
              EndsWith("<-DNAME=\"two words\"><-c><my file.c>"));
  EXPECT_THAT(Output({kFerrycc, "-show", "-c", "my file.c"}), EndsWith(" -c my\\ file.c\n"));
}

TEST(FerryccTest, ReadsStandardInputAsAFile) {
  EXPECT_THAT(Output({kFerrycc, "-xc", "-"}, kPrintsArguments), HasSubstr("<-xc><-><-L/"));
}

TEST(FerryccTest, EndsWithTheCodeOfTheCompiler) {
  EXPECT_EQ(RunWrapper({kFerrycc, "-c", "a.c"}, "FERRY_CC=false").exit_code, 1);
}

TEST(FerryccTest, TakesTheCompilerFromTheOptionThenTheEnvironment) {
  EXPECT_THAT(Output({kFerrycc, "-show", "a.c"}), StartsWith("cc -I/"));
  EXPECT_THAT(Output({kFerrycc, "-show", "a.c"}, "FERRY_CC=clang"), StartsWith("clang -I/"));
  EXPECT_THAT(Output({kFerrycc, "-cc=tcc", "-show", "a.c"}, "FERRY_CC=clang"),
              StartsWith("tcc -I/"));
  EXPECT_THAT(Output({kFerrycxx, "-show", "a.cc"}, "FERRY_CC=clang"), StartsWith("c++ -I/"));
  EXPECT_THAT(Output({kFerrycxx, "-show", "a.cc"}, "FERRY_CXX=clang++"), StartsWith("clang++ -I/"));
  EXPECT_THAT(Output({kFerrycxx, "-cxx=icpx", "-show", "a.cc"}), StartsWith("icpx -I/"));
}

TEST(FerryccTest, ShowsTheCommandUnderEveryUsualName) {
  const std::string command = Output({kFerrycc, "-show", "a.c"});
  EXPECT_THAT(command, MatchesRegex("cc -I/.* a.c -L/.* -Wl,-rpath,/.* -l.*mpi_abi.*\n"));
  for (const char* option : {"--show", "-showme", "--showme"}) {
    EXPECT_EQ(Output({kFerrycc, option, "a.c"}), command);
  }
}

TEST(FerryccTest, ShowsItsParts) {
  EXPECT_EQ(Output({kFerrycc, "-showme:command"}), "cc\n");
  EXPECT_THAT(Output({kFerrycc, "-showme:compile"}), MatchesRegex("-I/.*/ferry/mpi -I/[^ ]*\n"));
  EXPECT_THAT(Output({kFerrycc, "--showme:link"}),
              MatchesRegex("-L/[^ ]* -Wl,-rpath,/[^ ]* -l.*mpi_abi.*\n"));
  EXPECT_THAT(Output({kFerrycc, "-showme:incdirs"}), MatchesRegex("/.*/ferry/mpi /[^ ]*\n"));
  EXPECT_THAT(Output({kFerrycc, "-showme:libdirs"}), MatchesRegex("/[^ ]*\n"));
  EXPECT_THAT(Output({kFerrycc, "-showme:libs"}), HasSubstr("mpi_abi"));
  EXPECT_THAT(Output({kFerrycxx, "-showme:version"}), StartsWith("ferrycxx: Ferry "));
  EXPECT_THAT(Output({kFerrycc, "-compile_info"}), MatchesRegex("cc -I/.* -c\n"));
  EXPECT_THAT(Output({kFerrycc, "-link-info"}), MatchesRegex("cc -L/.* -l.*mpi_abi.*\n"));
}

TEST(FerryccTest, SaysWhatItDoesNotKnow) {
  const CommandResult question = RunWrapper({kFerrycc, "-showme:flags"});
  EXPECT_EQ(question.exit_code, 2);
  EXPECT_THAT(question.err, AllOf(StartsWith("ferrycc: -showme:flags "), HasSubstr("incdirs")));
  const CommandResult compiler = RunWrapper({kFerrycxx, "-cxx=no-such-compiler", "a.cc"});
  EXPECT_EQ(compiler.exit_code, 2);
  EXPECT_THAT(compiler.err, AllOf(StartsWith("ferrycxx: "), HasSubstr("'no-such-compiler'")));
  EXPECT_EQ(RunWrapper({kFerrycc, "-cc=", "a.c"}).exit_code, 2);
}

TEST(FerryccTest, SaysThatThereIsNoFortran) {
  const TempDirectory folder;
  for (const std::string name : {"mpifort", "mpif90", "mpif77"}) {
    const std::string wrapper = folder / name;
    std::filesystem::create_symlink(std::filesystem::absolute(kFerrycc), wrapper);
    for (const Words& arguments :
         {Words{"-c", "a.f90"}, Words{"--version"}, Words{"-show"}, Words{}}) {
      const CommandResult result = RunWrapper(Joined({wrapper}, arguments));
      EXPECT_EQ(result.exit_code, 2);
      EXPECT_EQ(result.out, "");
      EXPECT_THAT(
          result.err,
          MatchesRegex(name + ": Ferry has no Fortran interface yet; .*another MPI library\n"));
    }
    // CMake asks so, and names the library that it does not find.
    EXPECT_EQ(Output({wrapper, "-showme:compile"}), "");
    EXPECT_EQ(Output({wrapper, "-showme:link"}), "-lferry_has_no_fortran_interface\n");
  }
}

}  // namespace
}  // namespace ferry::e2e
