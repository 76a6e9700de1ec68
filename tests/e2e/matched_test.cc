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
  std::string provider = "auto";
  std::vector<std::string> daemon_variables = {};
};

std::vector<std::string> Job(const Layout& layout, const std::vector<std::string>& program) {
  std::vector<std::string> arguments = {"/usr/bin/env", "FERRY_PROVIDER=" + layout.provider};
  arguments.insert(arguments.end(), layout.daemon_variables.begin(), layout.daemon_variables.end());
  arguments.insert(arguments.end(),
                   {"tools/ferryrun/ferryrun", "--private", "--ferryd", "daemon/ferryd",
                    "--no-label", "-n", layout.ranks, "--nodes", layout.nodes, "/usr/bin/env"});
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

TEST(MatchedTest, InCpp) {
  ExpectPasses({"2", "1", {}}, {"tests/e2e/ranks/wrapped"});
  ExpectPasses({"2", "2", {}}, {"tests/e2e/ranks/wrapped"});
}

// `sockets` carries out operations that are deferred: its NIC moves the messages of pairs without
// cells.
TEST(MatchedTest, ByTheNic) {
  const std::vector<std::string> few = {"tests/e2e/ranks/matched", "few"};  // this network is slow
  ExpectPasses({"2", "2", {"FERRY_MATCHED_CELL_BYTES=0"}, "sockets"}, few);
  ExpectPasses({"2", "2", {}, "sockets"}, few);
  ExpectPasses({"2", "2", {}, "sockets"}, {"tests/e2e/ranks/queues"});
  ExpectPasses({"2", "2", {}, "sockets"}, {"tests/e2e/ranks/queue_ends"});
}

// The value behind a name in what `ferryctl --json` prints.
uint64_t ValueOf(const std::string& text, const std::string& name) {
  const std::string key = "\"" + name + "\": ";
  const size_t found = text.find(key);
  return found == std::string::npos ? UINT64_MAX : std::stoull(text.substr(found + key.size()));
}

// 10,000 requests start at once, on a NIC of 16 entries: the daemon serves those that find none.
TEST(MatchedTest, ByANicWithFewEntries) {
#if defined(__SANITIZE_THREAD__)
  constexpr uint64_t kPairs = 500;  // a program takes ten times as long
#else
  constexpr uint64_t kPairs = 2500;
#endif
  Command command(Job({"2",
                       "2",
                       {"FERRY_MATCHED_CELL_BYTES=0"},
                       "sockets",
                       {"FERRY_DEFERRED_WORK_ENTRIES=16", "FERRY_DEFERRED_WORK_WEIGHTS=0:2"}},
                      {"tests/e2e/ranks/many_matched", std::to_string(kPairs), "64", "2",
                       "tools/ferryctl/ferryctl"}));
  const CommandResult result = command.Wait();
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(ValueOf(result.out, "deferred_entries"), 16U);
  EXPECT_EQ(ValueOf(result.out, "deferred_busy"), 0U);
  const uint64_t on_nic = ValueOf(result.out, "deferred_operations");
  EXPECT_GE(on_nic, 16U);
  // A round of a send is two operations; that of its receive is one, and one more if the send is
  // not ready.
  EXPECT_EQ(on_nic + ValueOf(result.out, "deferred_overflows"), 2 * kPairs * 2 + kPairs * 3);
  const size_t by_nic = result.out.find("\"matched_by_nic\"");
  ASSERT_NE(by_nic, std::string::npos);
  EXPECT_EQ(ValueOf(result.out.substr(by_nic), "value"), 2 * kPairs);
  EXPECT_THAT(command.Leftovers(), testing::IsEmpty());
}

// Ready sends that one call starts have one trigger: a counter in the NIC, and an addition to it.
TEST(MatchedTest, ReadySendsOfOneCallShareATrigger) {
  constexpr uint64_t kPairs = 20;
  constexpr uint64_t kRounds = 10;
  const std::vector<std::string> program = {"tests/e2e/ranks/ready_together",
                                            std::to_string(kPairs), "4096", std::to_string(kRounds),
                                            "tools/ferryctl/ferryctl"};
  Command command(Job({"2", "2", {}, "sockets"}, program));
  const CommandResult result = command.Wait();
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(ValueOf(result.out, "deferred_overflows"), 0U);
  // A round of a send is two operations; that of its receive is one.
  EXPECT_EQ(ValueOf(result.out, "deferred_operations"), 3 * kPairs * kRounds);
  // Two counters count the operations of each end, one fires all sends.
  EXPECT_EQ(ValueOf(result.out, "deferred_counters"), 2 * 2 * kPairs + 1);
  EXPECT_LE(ValueOf(result.out, "deferred_rings"), kRounds);
  EXPECT_THAT(command.Leftovers(), testing::IsEmpty());

  ExpectPasses({"2", "2", {}}, program);  // by the daemon
  ExpectPasses({"2", "2", {}, "sockets", {"FERRY_DEFERRED_WORK_ENTRIES=8"}}, program);
}

// An administrator may tell Ferry not to use the NIC for it.
TEST(MatchedTest, ByANicWithoutEntries) {
  Command command(
      Job({"2", "2", {"FERRY_MATCHED_CELL_BYTES=0"}, "sockets", {"FERRY_DEFERRED_WORK_ENTRIES=0"}},
          {"tests/e2e/ranks/many_matched", "50", "16384", "2", "tools/ferryctl/ferryctl"}));
  const CommandResult result = command.Wait();
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(ValueOf(result.out, "deferred_entries"), 0U);
  EXPECT_EQ(ValueOf(result.out, "deferred_operations"), 0U);
  const size_t by_daemon = result.out.find("\"matched_by_daemon\"");
  ASSERT_NE(by_daemon, std::string::npos);
  EXPECT_EQ(ValueOf(result.out.substr(by_daemon), "value"), 2U * 50);
  EXPECT_THAT(command.Leftovers(), testing::IsEmpty());
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

TEST(MatchedTest, PairsEnd) {
  ExpectPasses({"2", "1", {}}, {"tests/e2e/ranks/queue_ends"});
  ExpectPasses({"2", "2", {}}, {"tests/e2e/ranks/queue_ends"});
}

}  // namespace
}  // namespace ferry::e2e
