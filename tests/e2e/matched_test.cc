// Matched persistent requests, by ranks and by streams, inside a node and between nodes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/e2e/command.h"

namespace ferry::e2e {
namespace {

struct Layout {
  std::string ranks;
  std::string nodes;
  std::vector<std::string> variables;
};

std::vector<std::string> Job(const Layout& layout, const std::vector<std::string>& program) {
  std::vector<std::string> arguments = {"tools/ferryrun/ferryrun",
                                        "--private",
                                        "--ferryd",
                                        "daemon/ferryd",
                                        "--no-label",
                                        "-n",
                                        layout.ranks,
                                        "--nodes",
                                        layout.nodes,
                                        "/usr/bin/env"};
  arguments.insert(arguments.end(), layout.variables.begin(), layout.variables.end());
  arguments.insert(arguments.end(), program.begin(), program.end());
  return arguments;
}

void ExpectPasses(const Layout& layout, const std::vector<std::string>& program) {
  Command command(Job(layout, program));
  const CommandResult result = command.Wait();
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(command.Leftovers(), testing::IsEmpty());
}

TEST(MatchedTest, InsideANode) { ExpectPasses({"2", "1", {}}, {"tests/e2e/ranks/matched"}); }

TEST(MatchedTest, BetweenNodes) { ExpectPasses({"2", "2", {}}, {"tests/e2e/ranks/matched"}); }

TEST(MatchedTest, BetweenNodesWithoutCells) {
  ExpectPasses({"2", "2", {"FERRY_MATCHED_CELL_BYTES=0"}}, {"tests/e2e/ranks/matched"});
}

TEST(MatchedTest, ShortSendsLeaveAheadOfTheirReceives) {
  ExpectPasses({"2", "2", {}}, {"tests/e2e/ranks/matched", "ahead"});
}

TEST(MatchedTest, DevicesBehindALink) {
  const std::vector<std::string> link = {"FERRY_HOST_LINK_H2D_MB_PER_S=20000",
                                         "FERRY_HOST_LINK_D2H_MB_PER_S=20000"};
  ExpectPasses({"2", "1", link}, {"tests/e2e/ranks/matched"});
  ExpectPasses({"2", "2", link}, {"tests/e2e/ranks/matched"});
}

TEST(MatchedTest, QueuesKeepTheirRules) {
  ExpectPasses({"2", "1", {}}, {"tests/e2e/ranks/queues"});
  ExpectPasses({"2", "2", {}}, {"tests/e2e/ranks/queues"});
}

}  // namespace
}  // namespace ferry::e2e
