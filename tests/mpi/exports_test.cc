// libmpi_abi exports every call that mpi.h declares, as PMPI_x and as a weak MPI_x of the same
// address, so that a tool's MPI_x takes its place; and nothing else.
#include "tests/e2e/exports.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "tests/e2e/command.h"
#include "tests/mpi/declared_calls.h"
#include "tests/mpi/mpix_calls.h"

namespace ferry::mpi {
namespace {

constexpr char kLibrary[] = "mpi/libmpi_abi.so.1";

TEST(ExportsTest, HasEveryCallUnderBothNames) {
  e2e::ExpectBothNames(kLibrary, DeclaredCalls(), "P");
}

// Except for the additions of mpix.h, and the name that debuggers look for.
TEST(ExportsTest, HasNothingElse) {
#define FERRY_INSERT(name, parameters) expected.insert("MPIX_" #name);
  std::set<std::string> expected = {"MPIR_dll_name"};
  FERRY_MPIX_CALLS(FERRY_INSERT)
  for (const std::string& call : DeclaredCalls()) {
    expected.insert({call, "P" + call});
  }
  for (const auto& [name, symbol] : e2e::ExportsOf(kLibrary)) {
    EXPECT_TRUE(expected.contains(name)) << name;
  }
}

// Guards the list itself: its length is that of MPI 5.0's C bindings, and five deprecated calls.
TEST(ExportsTest, KnowsAllCalls) {
  const std::vector<std::string> calls = DeclaredCalls();
  EXPECT_EQ(calls.size(), 662u);
  EXPECT_EQ(std::set<std::string>(calls.begin(), calls.end()).size(), calls.size());
}

TEST(ExportsTest, IsCalledAsTheStandardSays) {
  const e2e::CommandResult elf = e2e::RunCommand({"/usr/bin/readelf", "-d", kLibrary});
  EXPECT_THAT(elf.out, testing::HasSubstr("soname: [libmpi_abi.so.1]"));
  EXPECT_THAT(elf.out, testing::HasSubstr("NEEDED)             Shared library: [libferry.so.0]"));
}

}  // namespace
}  // namespace ferry::mpi
