// The compiler wrappers: which command they run, and that they show the same one. The compiler is
// one that prints its arguments; tests/mpi/wrapper_test.cc has them build programs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
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

TEST(FerryccTest, TellsCompilersOfFortranOfItsModulesAndLibraries) {
  const TempDirectory folder;
  for (const std::string name : {"ferryfc", "mpifort", "mpif90", "mpif77"}) {
    const std::string wrapper = folder / name;
    std::filesystem::create_symlink(std::filesystem::absolute(kFerrycc), wrapper);
    EXPECT_THAT(Output({wrapper, "-show", "a.f90"}),
                MatchesRegex("gfortran -I/.* a.f90 -L/.* -l[^ ]*mpifort_abi[^ ]* "
                             "-l[^ ]*mpi_abi[^ ]*\n"));
    EXPECT_EQ(Output({wrapper, "-showme:command"}), "gfortran\n");
    EXPECT_THAT(Output({wrapper, "-showme:compile"}), MatchesRegex("-I/.*\n"));
    EXPECT_THAT(Output({wrapper, "-showme:link"}), HasSubstr("mpifort_abi"));
    EXPECT_THAT(Output({wrapper, "-showme:version"}), StartsWith(name + ": Ferry "));
  }
  // Flags of Fortran reach no compiler of C.
  EXPECT_THAT(Output({kFerrycc, "-showme:link"}), Not(HasSubstr("mpifort")));
}

// The last line says it; before it stands what the compiler has printed.
std::string FolderOfModules(const std::string& said) {
  const std::string begin = "ferryfc: ";
  const size_t at = said.rfind(begin + "/");
  const size_t end = said.find(" has the modules of ", at);
  EXPECT_NE(end, std::string::npos) << said;
  return at == std::string::npos ? "" : said.substr(at + begin.size(), end - at - begin.size());
}

// A compiler that reads no modules of gfortran's is told how it gets its own, and gets them in the
// user's cache.
TEST(FerryccTest, MakesModulesForAnotherCompiler) {
  const TempDirectory folder;
  const std::string wrapper = folder / "ferryfc";
  const std::string compiler = folder / "otherfc";
  std::filesystem::create_symlink(std::filesystem::absolute(kFerrycc), wrapper);
  std::ofstream(compiler) << "#!/bin/sh\ncase $1 in --version) echo other 1.2; exit;; esac\n"
                             "for word; do case $word in */mpi.f90) >mpi.mod;; "
                             "*/mpi_f08*.f90) basename $word >mpi_f08.mod;; "
                             "*/ferry_mpix*.f90) basename $word >ferry_mpix.mod; esac; done\n"
                             ">mpi.o\necho $*\n";
  std::filesystem::permissions(compiler, std::filesystem::perms::owner_all);
  const Words variables = {"/usr/bin/env", "XDG_CACHE_HOME=" + (folder / "cache"),
                           "FERRY_FC=" + compiler};
  const CommandResult without = RunWrapper(Joined(variables, {wrapper, "-c", "a.f90"}));
  EXPECT_THAT(without.err, HasSubstr("call ferryfc --make-modules once"));
  const std::string modules =
      FolderOfModules(Output(Joined(variables, {wrapper, "--make-modules"})));
  EXPECT_THAT(modules, EndsWith("/otherfc-1.2"));
  const CommandResult with = RunWrapper(Joined(variables, {wrapper, "-c", "a.f90"}));
  EXPECT_EQ(with.err, "");
  EXPECT_THAT(with.out, HasSubstr("-I" + (folder / "cache/ferry/fortran/")));
  // Its descriptions of arrays are not gfortran's.
  std::string source;
  std::getline(std::ifstream(modules + "/mpi_f08.mod"), source);
  EXPECT_EQ(source, "mpi_f08_addresses.f90") << modules;
  std::getline(std::ifstream(modules + "/ferry_mpix.mod"), source);
  EXPECT_EQ(source, "ferry_mpix_addresses.f90") << modules;
  EXPECT_FALSE(std::filesystem::exists(modules + "/mpi.o"));
}

// The modules of gfortran have another format since its release 15; its descriptions do not.
TEST(FerryccTest, MakesModulesForANewerGfortran) {
  const TempDirectory folder;
  const std::string wrapper = folder / "ferryfc";
  const std::string compiler = folder / "gfortran-15";
  std::filesystem::create_symlink(std::filesystem::absolute(kFerrycc), wrapper);
  std::ofstream(compiler) << "#!/bin/sh\ncase $1 in --version) echo GNU Fortran '(GCC)' 15.1.0; "
                             "exit;; esac\n"
                             "for word; do case $word in */mpi.f90) >mpi.mod;; "
                             "*/mpi_f08*.f90) basename $word >mpi_f08.mod; esac; done\n"
                             ">mpi.o\n";
  std::filesystem::permissions(compiler, std::filesystem::perms::owner_all);
  const std::string modules =
      FolderOfModules(Output({"/usr/bin/env", "XDG_CACHE_HOME=" + (folder / "cache"),
                              "FERRY_FC=" + compiler, wrapper, "--make-modules"}));
  EXPECT_THAT(modules, EndsWith("/gfortran-15-15.1.0"));
  std::string source;
  std::getline(std::ifstream(modules + "/mpi_f08.mod"), source);
  EXPECT_EQ(source, "mpi_f08.f90");
}

}  // namespace
}  // namespace ferry::e2e
