// The algorithm that a collective takes by rules and names, as the number of messages that each
// rank sends shows it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/mpi/e2e/mpi_job.h"
#include "tests/mpi/e2e/sent_messages.h"

namespace ferry::mpi_tests {
namespace {

namespace fs = std::filesystem;
using collective::Collective;
using testing::HasSubstr;

constexpr int kRanks = 5;
constexpr size_t kBytes = 64;  // travels with its RTS, so that each message is one
const Placement kOneNode{"", {"-n", "5"}};
const Placement kTwoNodes{"", {"-n", "5", "--nodes", "2"}};

// The program's output when the ranks of one node take this algorithm.
std::string SentBy(Collective collective, const char* name) {
  return SentLine(collective, kRanks, kBytes, [&](const collective::Problem&) {
    return collective::FindAlgorithm(collective, name);
  });
}

e2e::CommandResult Collect(const Placement& placement, const char* collective,
                           std::vector<std::string> flags,
                           const std::vector<std::string>& variables = {}) {
  flags.insert(flags.end(), {"tests/mpi/ranks/algorithms", collective, std::to_string(kBytes)});
  return RunJob(placement, flags, variables);
}

class AlgorithmsTest : public testing::Test {
 protected:
  // A file with this text, to be named by collective_table.
  std::string Table(const std::string& text) {
    const std::string path = (fs::path(testing::TempDir()) / "table.toml").string();
    std::ofstream(path) << text;
    return path;
  }
};

TEST_F(AlgorithmsTest, ANameInTheEnvironmentCounts) {
  ASSERT_NE(SentBy(Collective::kBcast, "linear"), SentBy(Collective::kBcast, "binomial"));
  for (const char* name : {"linear", "binomial", "chain"}) {
    const std::string variable = std::string("FERRY_COLLECTIVE_ALGORITHMS=bcast=") + name;
    for (const Placement& placement : {kOneNode, kTwoNodes}) {
      const e2e::CommandResult result = Collect(placement, "bcast", {}, {variable});
      EXPECT_EQ(result.out, SentBy(Collective::kBcast, name)) << name << ": " << result.err;
    }
  }
}

TEST_F(AlgorithmsTest, RulesOfAFileCount) {
  const std::string path = Table(
      "[[rule]]\ncollective = \"allreduce\"\nalgorithm = \"direct\"\nmax_bytes = 8\n"
      "[[rule]]\ncollective = \"allreduce\"\nalgorithm = \"ring\"\nmax_ranks = 5\n");
  const e2e::CommandResult result = Collect(kOneNode, "allreduce", {"--collective_table", path});
  EXPECT_EQ(result.out, SentBy(Collective::kAllreduce, "ring")) << result.err;
}

// The file is found even if rank 0 runs in another directory.
TEST_F(AlgorithmsTest, AFileIsFoundWhereFerryrunIs) {
  const std::string path = Table("[[rule]]\ncollective = \"bcast\"\nalgorithm = \"chain\"\n");
  const std::string program = fs::absolute("tests/mpi/ranks/algorithms").string();
  const e2e::CommandResult result =
      RunJob(kOneNode, {"--collective_table", fs::relative(path).string(), "-wdir", "/", program,
                        "bcast", std::to_string(kBytes)});
  EXPECT_EQ(result.out, SentBy(Collective::kBcast, "chain")) << result.err;
}

TEST_F(AlgorithmsTest, NamesComeBeforeRules) {
  const std::string path = Table("[[rule]]\ncollective = \"bcast\"\nalgorithm = \"chain\"\n");
  const e2e::CommandResult result = Collect(
      kOneNode, "bcast", {"--collective_table", path, "--collective_algorithms", "bcast=linear"});
  EXPECT_EQ(result.out, SentBy(Collective::kBcast, "linear")) << result.err;
}

// Ranks with different rules would wait for each other for ever.
TEST_F(AlgorithmsTest, WhatRankZeroWasToldCountsForAll) {
  const e2e::CommandResult result =
      RunJob({"", {"-n", "1"}},
             {"-x", "FERRY_COLLECTIVE_ALGORITHMS=bcast=linear", "tests/mpi/ranks/algorithms",
              "bcast", "64", ":", "-n", "4", "-x", "FERRY_COLLECTIVE_ALGORITHMS=bcast=chain",
              "tests/mpi/ranks/algorithms", "bcast", "64"});
  EXPECT_EQ(result.out, SentBy(Collective::kBcast, "linear")) << result.err;
}

TEST_F(AlgorithmsTest, MistakesAreNamedByMpiInit) {
  const auto error = [&](const std::vector<std::string>& flags) {
    const e2e::CommandResult result = Collect(kTwoNodes, "bcast", flags);
    EXPECT_NE(result.exit_code, 0);
    EXPECT_EQ(result.out, "");
    return result.err;
  };
  EXPECT_THAT(error({"--collective_algorithms", "bcast=ring"}),
              HasSubstr("MPI_Init: FERRY_COLLECTIVE_ALGORITHMS: \"ring\" is no algorithm of bcast; "
                        "these are: board, binomial, linear, chain"));
  EXPECT_THAT(error({"--collective_algorithms", "boast=ring"}),
              HasSubstr("\"boast\" is no collective; these are: barrier, bcast"));
  EXPECT_THAT(error({"--collective_table", "no/such"}),
              HasSubstr("option collective_table: cannot read " + fs::absolute("no/such").string() +
                        ": No such file or directory"));
  EXPECT_THAT(error({"--collective_table", "/"}), HasSubstr("cannot read /: Is a directory"));
  const std::string path = Table("[[rule]]\ncollective = \"bcast\"\nmax_bytes = many\n");
  EXPECT_THAT(error({"--collective_table", path}),
              HasSubstr("MPI_Init: " + path + ":3: max_bytes must be an integer"));
}

}  // namespace
}  // namespace ferry::mpi_tests
