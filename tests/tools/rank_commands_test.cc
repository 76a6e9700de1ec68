// The variables of the ranks of a job, on this host and, in two parts, on others: both are the
// same.
#include "tools/ferryrun/rank_commands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tools/ferryrun/rank_process.h"

namespace ferry::tools {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Key;
using testing::Not;
using testing::Pair;
using Variables = std::map<std::string, std::string>;

Variables InOrder(const std::vector<std::string>& entries) {
  Variables variables;
  for (const std::string& entry : entries) {
    EXPECT_TRUE(variables.emplace(entry.substr(0, entry.find('=')), entry).second) << entry;
  }
  return variables;
}

void ExpectEntries(const Variables& variables, const std::vector<std::string>& entries) {
  for (const std::string& entry : entries) {
    EXPECT_THAT(variables, Contains(Pair(entry.substr(0, entry.find('=')), entry)));
  }
}

// Two programs on three hosts, of which the last is this one.
class RankCommandsTest : public testing::Test {
 protected:
  RankCommandsTest() {
    setenv("FOR_ALL", "of ferryrun", 1);
    setenv("HOSTNAME", "only here", 1);
    setenv("FERRY_RANK", "77", 1);  // of a job in which ferryrun runs
    arguments_.parts.resize(2);
    arguments_.parts[0].program = {"/bin/a", "word"};
    arguments_.parts[1].program = {"/bin/b"};
    arguments_.parts[1].directory = "/somewhere";
    arguments_.variables = {"FOR_ALL=of all"};
    arguments_.parts[1].variables = {"FOR_B=b", "FERRY_NODE=of the user"};
    layout_.nodes = {{.host = "x", .remote = true, .ranks = 2},
                     {.host = "y", .remote = true, .ranks = 2},
                     {.host = "", .remote = false, .ranks = 2}};
    layout_.node_of_rank = {0, 0, 1, 1, 2, 2};
    layout_.part_of_rank = {0, 0, 0, 1, 0, 1};
    layout_.slots = 8;
    options_.mpi_check = 1;
    options_.run_directory = "/of/ferryrun";
  }

  const Job& job() {
    if (!job_) {
      job_.emplace(std::vector<JobNode>{{"/run/x", "1:1"}, {"/run/y", "2:2"}, {"/run/z", "3:3"}},
                   layout_.node_of_rank, 16);
    }
    return *job_;
  }

  // As an agent puts it together (Agent::StartRank).
  static Variables AsThere(const AgentJob& all, const AgentRank& rank) {
    std::vector<std::string> environment;
    SetVariables(all.parts[rank.part].variables, &environment);
    SetVariables(rank.variables, &environment);
    return InOrder(environment);
  }

  Arguments arguments_;
  JobLayout layout_;
  config::Options options_;
  std::optional<Job> job_;
};

TEST_F(RankCommandsTest, RanksOfOtherHostsAreToldWhatRanksHereAre) {
  const RankCommands commands(arguments_, layout_, options_, job());
  const AgentJob all = commands.ForAgents();
  for (uint32_t rank = 0; rank < job().size(); ++rank) {
    const AgentRank there = commands.There(rank);
    Variables here = InOrder(commands.Here(rank).environment);
    EXPECT_THAT(here, Contains(Pair("HOSTNAME", "HOSTNAME=only here")));
    const Variables told = AsThere(all, there);
    EXPECT_THAT(told, Not(Contains(Key("HOSTNAME"))));
    for (const auto& [name, entry] : told) {
      EXPECT_EQ(here[name], entry) << rank;
    }
    EXPECT_LE(there.variables.size(), 3U) << "the rest travels once";
  }
}

TEST_F(RankCommandsTest, ARankHasItsPlaceAndWhatItsProgramHas) {
  const RankCommands commands(arguments_, layout_, options_, job());
  const AgentJob all = commands.ForAgents();
  ExpectEntries(AsThere(all, commands.There(2)),
                {"FERRY_RANK=2", "FERRY_NODE=1", "FERRY_RUN_DIRECTORY=/run/y", "FERRY_SIZE=6",
                 "FERRY_APP=0", "FERRY_APP_SIZE=4", "FERRY_UNIVERSE_SIZE=8", "FERRY_MPI_CHECK=1",
                 "FERRY_JOB_ID=" + job().id(), "FOR_ALL=of all"});
  EXPECT_THAT(AsThere(all, commands.There(2)), Not(Contains(Key("FOR_B"))));
  ExpectEntries(AsThere(all, commands.There(3)),
                {"FERRY_RANK=3", "FOR_B=b", "FERRY_APP=1", "FERRY_APP_SIZE=2"});
  EXPECT_THAT(all.parts[0].program, ElementsAre("/bin/a", "word"));
  EXPECT_FALSE(all.parts[0].must);
  EXPECT_EQ(all.parts[1].directory, "/somewhere");
  EXPECT_TRUE(all.parts[1].must);
}

// A user who says -x FERRY_NODE=... gets it.
TEST_F(RankCommandsTest, TheUsersValueCounts) {
  const RankCommands commands(arguments_, layout_, options_, job());
  EXPECT_THAT(InOrder(commands.Here(5).environment),
              Contains(Pair("FERRY_NODE", "FERRY_NODE=of the user")));
  EXPECT_THAT(AsThere(commands.ForAgents(), commands.There(3)),
              Contains(Pair("FERRY_NODE", "FERRY_NODE=of the user")));
  EXPECT_THAT(InOrder(commands.Here(4).environment), Contains(Pair("FERRY_NODE", "FERRY_NODE=2")));
}

}  // namespace
}  // namespace ferry::tools
