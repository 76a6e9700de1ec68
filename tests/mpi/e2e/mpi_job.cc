#include "tests/mpi/e2e/mpi_job.h"

#include <gmock/gmock.h>

#include "tests/support/slice.h"

namespace ferry::mpi_tests {
namespace {

int RanksOf(const Placement& placement) { return std::stoi(placement.flags.at(1)); }

template <typename Wanted>
std::vector<Placement> PlacementsOf(Wanted wanted) {
  std::vector<Placement> placements = AllPlacements();
  std::erase_if(placements, [&](const Placement& each) { return !wanted(RanksOf(each)); });
  return placements;
}

}  // namespace

std::vector<Placement> AllPlacements() {
  return tests::Slice<Placement>(
      {{"OneRank", {"-n", "1"}},
       {"TwoRanks", {"-n", "2"}},
       {"FiveRanksOnTwoNodes", {"-n", "5", "--nodes", "2"}}},
      {{"TwoNodes", {"-n", "2", "--nodes", "2"}}, {"FiveRanks", {"-n", "5"}}});
}

std::vector<Placement> PlacementsOfPairs() {
  return tests::Slice<Placement>({{"OneRank", {"-n", "1"}},
                                  {"TwoRanks", {"-n", "2"}},
                                  {"ThreeRanksOnTwoNodes", {"-n", "3", "--nodes", "2"}}},
                                 {{"TwoNodes", {"-n", "2", "--nodes", "2"}},
                                  {"FiveRanks", {"-n", "5"}},
                                  {"FiveRanksOnTwoNodes", {"-n", "5", "--nodes", "2"}}});
}

std::vector<Placement> Pairs() {
  return {{"TwoRanks", {"-n", "2"}}, {"TwoNodes", {"-n", "2", "--nodes", "2"}}};
}

std::vector<Placement> SeveralRanks() {
  return PlacementsOf([](int ranks) { return ranks > 1; });
}

std::vector<std::string> JobOf(const Placement& placement) {
  std::vector<std::string> arguments = {"tools/ferryrun/ferryrun", "--private", "--ferryd",
                                        "daemon/ferryd", "--no-label"};
  arguments.insert(arguments.end(), placement.flags.begin(), placement.flags.end());
  return arguments;
}

e2e::CommandResult RunJob(const Placement& placement, const std::vector<std::string>& words,
                          const std::vector<std::string>& variables) {
  std::vector<std::string> arguments = JobOf(placement);
  arguments.insert(arguments.end(), words.begin(), words.end());
  e2e::Command command(arguments, variables, "", placement.limit_s);
  e2e::CommandResult result = command.Wait();
  EXPECT_THAT(command.Leftovers(), testing::IsEmpty());
  return result;
}

void ExpectJob(const Placement& placement, const std::vector<std::string>& program,
               const std::string& line, const std::vector<std::string>& variables) {
  const e2e::CommandResult result = RunJob(placement, program, variables);
  std::string expected;
  for (int rank = 0; rank < RanksOf(placement); ++rank) {
    expected += line + "\n";
  }
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, expected) << result.err;
  // Where they are wanted always, ranks that can have none say so.
  EXPECT_THAT(result.err, testing::Not(testing::HasSubstr("no direct links")));
}

void ExpectAllOk(int ranks, const std::string& program) {
  const e2e::CommandResult result = RunJob({"", {"-n", std::to_string(ranks)}}, {program});
  std::vector<std::string> lines;
  for (int rank = 0; rank < ranks; ++rank) {
    lines.push_back("rank " + std::to_string(rank) + ": ok");
  }
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(e2e::SortedLines(result.out), lines) << result.err;
}

}  // namespace ferry::mpi_tests
