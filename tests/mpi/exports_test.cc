// libmpi_abi exports every call that mpi.h declares, as PMPI_x and as a weak MPI_x of the same
// address, so that a tool's MPI_x takes its place; and nothing else.
#include "tests/e2e/exports.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "tests/e2e/command.h"
#include "tests/mpi/declared_calls.h"

namespace ferry::mpi {
namespace {

constexpr char kLibrary[] = "client/mpi/libmpi_abi.so.1";

TEST(ExportsTest, HasEveryCallUnderBothNames) {
  e2e::ExpectBothNames(kLibrary, DeclaredCalls(), "P");
}

// Except for the additions of mpix.h.
TEST(ExportsTest, HasNothingElse) {
  std::set<std::string> expected = {
      "MPIX_Match",         "MPIX_Matchall",         "MPIX_Imatch",       "MPIX_Imatchall",
      "MPIX_Is_matched",    "MPIX_Queue_init",       "MPIX_Queue_free",   "MPIX_Queue_wait",
      "MPIX_Enqueue_start", "MPIX_Enqueue_startall", "MPIX_Enqueue_wait", "MPIX_Enqueue_waitall"};
  // Partitioned communication.
  for (const char* const name :
       {"MPIX_Pbuf_prepare", "MPIX_Pbuf_prepare_all", "MPIX_Parrived_any", "MPIX_Parrived_some",
        "MPIX_Enqueue_pready", "MPIX_Enqueue_pbuf_prepare", "MPIX_Enqueue_pbuf_prepare_all",
        "MPIX_Prequest_create", "MPIX_Prequest_free", "MPIX_Pbcast_init", "MPIX_Preduce_init",
        "MPIX_Pallreduce_init", "MPIX_Preduce_scatter_block_init", "MPIX_Pallgather_init",
        "MPIX_Palltoall_init", "MPIX_Pgather_init", "MPIX_Pscatter_init", "MPIX_Pschedule_init"}) {
    expected.insert(name);
  }
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
