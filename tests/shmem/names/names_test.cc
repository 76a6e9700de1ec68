// Every function of OpenSHMEM is called by two PEs, in C, in C++, by its generic name and under a
// tool that has taken all of them, and by two PEs on two nodes; the numbers are those of the
// standard.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/e2e/command.h"

namespace ferry::shmem_tests {
namespace {

using testing::HasSubstr;

// 1,507 of OpenSHMEM 1.5, 103 deprecated, 178 of 1.6 and 974 beyond them; without the nine
// that begin and end a program.
constexpr int kCases = 1507 + 103 + 178 + 974 - 9;

e2e::CommandResult RunPair(const std::string& program, const std::string& begin = "shmem_init",
                           const std::string& nodes = "1") {
  e2e::Command command(
      {"tools/ferryrun/ferryrun", "--private", "--ferryd", "daemon/ferryd", "--no-label", "-n", "2",
       "--nodes", nodes, "tests/shmem/names/" + program, begin},
      {"FERRY_GPU_BACKEND=host"}, "", 240);
  e2e::CommandResult result = command.Wait();
  EXPECT_THAT(command.Leftovers(), testing::IsEmpty());
  return result;
}

void ExpectCases(const e2e::CommandResult& result, int cases) {
  EXPECT_EQ(result.exit_code, 0) << result.err;
  for (const char* pe : {"PE 0: ", "PE 1: "}) {
    EXPECT_THAT(result.out, HasSubstr(pe + std::to_string(cases) + " cases, 0 failures\n"))
        << result.err;
  }
}

TEST(NamesTest, EveryFunctionDoesItsWorkInC) { ExpectCases(RunPair("names_c"), kCases); }
TEST(NamesTest, EveryFunctionDoesItsWorkInCpp) { ExpectCases(RunPair("names_cpp"), kCases); }

TEST(NamesTest, EveryFunctionDoesItsWorkBetweenNodes) {
  ExpectCases(RunPair("names_c", "shmem_init", "2"), kCases);
}

// Each of the 73 generic names with each of its types, and with a context where it takes one.
constexpr int kGenericCases = 924;
TEST(NamesTest, EveryGenericNameChoosesByTypeInC11) {
  ExpectCases(RunPair("generics_c"), kGenericCases);
}
TEST(NamesTest, EveryGenericNameIsOverloadedInCpp) {
  ExpectCases(RunPair("overloads_cpp"), kGenericCases);
}

// Reductions and scans of two types: 12 functions, 8 on queues and 4 generic names of each.
TEST(NamesTest, ComplexNumbersOfCAreGoodInCpp) {
  ExpectCases(RunPair("complex_cpp"), 12 + 8 + 2 * 4);
}

// A program begins by one of five functions; all cases run after each.
TEST(NamesTest, ProgramsBeginByInitThread) {
  ExpectCases(RunPair("names_c", "shmem_init_thread"), kCases);
}
TEST(NamesTest, ProgramsBeginByStartPes) { ExpectCases(RunPair("names_c", "start_pes"), kCases); }

TEST(NamesTest, ProgramsBeginByHeapPreinit) {
  ExpectCases(RunPair("names_c", "shmemx_heap_preinit"), kCases);
}
TEST(NamesTest, ProgramsBeginByHeapPreinitThread) {
  ExpectCases(RunPair("names_cpp", "shmemx_heap_preinit_thread", "2"), kCases);
}

TEST(NamesTest, GlobalExitEndsTheJobWithItsStatus) {
  EXPECT_EQ(RunPair("names_c", "shmem_global_exit").exit_code, 23);
}

// The tool's definitions take the place of the library's, and reach those by their twins. It also
// shows that the program calls every function.
TEST(NamesTest, AToolMayTakeEveryFunction) {
  const e2e::CommandResult result = RunPair("names_with_tool");
  ExpectCases(result, kCases);
  for (const std::string name :
       {"shmem_init_thread", "shmem_global_exit", "start_pes", "shmemx_heap_preinit",
        "shmemx_heap_preinit_thread", "shmemx_heap_create", "shmemx_heap_postinit"}) {
    EXPECT_THAT(result.out, HasSubstr("never called: " + name + "\n"));
  }
  size_t lines = 0;
  for (size_t at = 0; (at = result.out.find("never called: ", at)) != std::string::npos; ++at) {
    ++lines;
  }
  EXPECT_EQ(lines, 2u * 7u) << result.out;  // on each PE
}

}  // namespace
}  // namespace ferry::shmem_tests
