// Jobs of more ranks than a node has cores, or than a job could once have, on daemons that stand
// for nodes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "tests/mpi/e2e/mpi_job.h"

namespace ferry::mpi_tests {
namespace {

constexpr unsigned kLimitS = 1500;
constexpr int kRanksOfANode = 64;
constexpr int kMostRanks = 2048;
constexpr char kProgram[] = "tests/mpi/ranks/many";
// Small tables, so that so many ranks fit into a machine for tests.
const std::vector<std::string> kSmall = {"FERRY_REQUEST_LIMIT=256", "FERRY_UNEXPECTED_LIMIT=4096"};

Placement Of(int ranks) {
  const int nodes = (ranks + kRanksOfANode - 1) / kRanksOfANode;
  return {
      "",
      {"-n", std::to_string(ranks), "--nodes", std::to_string(nodes), "--bind-to", "none",
       "--attach_timeout_ms=600000", "--operation_timeout_ms=600000", "--peer_timeout_ms=120000"},
      kLimitS};
}

struct Memory {
  long ranks = 0;
  long private_kib = 0;
  long pss_kib = 0;
  long rss_kib = 0;
};

Memory Meet(int ranks) {
  const e2e::CommandResult result = RunJob(Of(ranks), {kProgram, "meet"}, kSmall);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  Memory memory;
  EXPECT_EQ(std::sscanf(result.out.c_str(), "ranks %ld private %ld pss %ld rss %ld", &memory.ranks,
                        &memory.private_kib, &memory.pss_kib, &memory.rss_kib),
            4)
      << result.out << result.err;
  std::printf("%s", result.out.c_str());
  EXPECT_EQ(memory.ranks, ranks);
  return memory;
}

// The rank that takes most is the root of trees, so it has the most partners.
TEST(ManyRanksTest, MemoryOfARankHardlyGrowsWithTheJob) {
  constexpr int kFew = 64;
  const Memory few = Meet(kFew);
  const Memory many = Meet(kMostRanks);
  EXPECT_LE(many.private_kib, 4096);
  EXPECT_LE((many.private_kib - few.private_kib) * 1024 / (kMostRanks - kFew), 160) << "bytes";
}

TEST(ManyRanksTest, AnyNumberOfThem) {
  for (const int ranks : {1025, 1100}) {
    (void)Meet(ranks);
  }
}

TEST(ManyRanksTest, AllHearOfADeath) {
  constexpr int kRanks = 1100;
  const e2e::CommandResult result = RunJob(Of(kRanks), {"--keep-going", kProgram, "die"}, kSmall);
  EXPECT_NE(result.exit_code, 0);
  const std::vector<std::string> lines = e2e::SortedLines(result.out);
  EXPECT_EQ(std::count_if(lines.begin(), lines.end(),
                          [](const std::string& line) {
                            return line.find(": error 58") != std::string::npos;
                          }),
            kRanks - 1)
      << result.out.substr(0, 2000) << result.err.substr(0, 2000);
}

}  // namespace
}  // namespace ferry::mpi_tests
