// Collectives on queues that NICs chain: those of `sockets`, which carry out deferred operations.
#include <gmock/gmock.h>

#include <regex>

#include "tests/mpi/e2e/mpi_job.h"

namespace ferry::mpi_tests {
namespace {

using testing::HasSubstr;

constexpr char kProgram[] = "tests/mpi/ranks/chains";
// On a busy machine an operation of this network takes seconds.
const std::vector<std::string> kSockets = {"FERRY_PROVIDER=sockets",
                                           "FERRY_OPERATION_TIMEOUT_MS=300000"};

std::vector<std::string> With(const std::string& variable) {
  std::vector<std::string> variables = kSockets;
  variables.push_back(variable);
  return variables;
}

class ChainsTest : public testing::TestWithParam<Placement> {};

TEST_P(ChainsTest, GiveRightDataBackToBack) {
  ExpectJob(GetParam(), {kProgram, "all", "15"}, "all chains were right", kSockets);
}

INSTANTIATE_TEST_SUITE_P(
    Placements, ChainsTest,
    testing::Values(Placement{"TwoNodes", {"-n", "2", "--nodes", "2"}},
                    Placement{"ThreeNodes", {"-n", "3", "--nodes", "3"}},
                    Placement{"FiveRanksOnTwoNodes", {"-n", "5", "--nodes", "2"}},
                    Placement{"EightRanksOnFourNodes", {"-n", "8", "--nodes", "4"}}),
    NameOf);

const Placement kFourNodes{"FourNodes", {"-n", "4", "--nodes", "4"}};

TEST(ChainTest, RunBesideMessages) {
  ExpectJob(kFourNodes, {kProgram, "beside", "15"}, "all chains were right", kSockets);
}

// Without deferred work in the NIC, the daemons and streams do it; with too few entries, in part.
TEST(ChainTest, DaemonsDoWhatNicsDoNot) {
  ExpectJob(kFourNodes, {kProgram, "all", "10"}, "all chains were right",
            With("FERRY_DEFERRED_WORK_ENTRIES=0"));
  ExpectJob(kFourNodes, {kProgram, "all", "10"}, "all chains were right",
            With("FERRY_DEFERRED_WORK_ENTRIES=12"));
}

// A round is one addition of each node's daemon; an allreduce first takes its element, which makes
// two. So no rank's CPU takes part between the start and the end.
TEST(ChainTest, ARoundIsOneAdditionOfEachDaemon) {
  constexpr int kRounds = 20;
  const e2e::CommandResult result =
      RunJob(kFourNodes, {kProgram, "count", std::to_string(kRounds), "tools/ferryctl/ferryctl"},
             kSockets);
  ASSERT_EQ(result.exit_code, 0) << result.out << result.err;
  const std::regex line("rank (\\d): ([a-z ]+): (\\d+) additions in 20 rounds");
  int lines = 0;
  for (std::sregex_iterator found(result.out.begin(), result.out.end(), line), end; found != end;
       ++found, ++lines) {
    const std::string name = (*found)[2];
    const bool takes = name == "sum" || name == "maximum" || name == "product";
    EXPECT_LE(std::stoi((*found)[3]), takes ? 2 * kRounds : kRounds) << found->str();
    EXPECT_GT(std::stoi((*found)[3]), 0) << found->str();
  }
  EXPECT_EQ(lines, 4 * 9) << result.out;
}

// All other ranks learn of the death, and none waits for ever.
TEST(ChainTest, ADeathEndsItForAll) {
  for (const char* round : {"0", "5"}) {
    Placement placement = kFourNodes;
    placement.flags.push_back("--keep-going");
    const e2e::CommandResult result = RunJob(placement, {kProgram, "die", round}, kSockets);
    EXPECT_EQ(result.exit_code, 137) << result.out << result.err;
    for (const char* rank : {"rank 0: error ", "rank 1: error ", "rank 2: error "}) {
      EXPECT_THAT(result.out, HasSubstr(rank)) << result.err;
    }
    EXPECT_THAT(result.out, HasSubstr("the peer rank died")) << "somebody names the cause";
  }
}

}  // namespace
}  // namespace ferry::mpi_tests
