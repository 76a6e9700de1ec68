// Matched persistent requests, by ranks and by streams, inside a node and between nodes.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/e2e/command.h"

namespace ferry::e2e {
namespace {

struct Layout {
  std::string ranks;
  std::string nodes;
  Words variables;
  std::string provider = "auto";
  Words daemon_variables = {};
};

Words Job(const Layout& layout, const Words& program) {
  return With(
      Joined({"FERRY_PROVIDER=" + layout.provider}, layout.daemon_variables),
      PrivateJob({"-n", layout.ranks, "--nodes", layout.nodes}, With(layout.variables, program)));
}

void ExpectPasses(const Layout& layout, const Words& program) { RunWell(Job(layout, program)); }

void ExpectPassesEverywhere(const Words& program, const Words& variables = {}) {
  for (const char* nodes : {"1", "2"}) {
    ExpectPasses({"2", nodes, variables}, program);
  }
}

TEST(MatchedTest, InsideANode) { ExpectPasses({"2", "1", {}}, {"tests/e2e/ranks/matched"}); }

TEST(MatchedTest, BetweenNodes) { ExpectPasses({"2", "2", {}}, {"tests/e2e/ranks/matched"}); }

TEST(MatchedTest, BetweenNodesWithoutCells) {
  ExpectPasses({"2", "2", {"FERRY_MATCHED_CELL_BYTES=0"}}, {"tests/e2e/ranks/matched"});
}

TEST(MatchedTest, ShortSendsLeaveAheadOfTheirReceives) {
  ExpectPasses({"2", "2", {}}, {"tests/e2e/ranks/matched", "ahead"});
}

TEST(MatchedTest, InCpp) { ExpectPassesEverywhere({"tests/e2e/ranks/wrapped"}); }

// `sockets` carries out operations that are deferred: its NIC moves the messages of pairs without
// cells.
TEST(MatchedTest, ByTheNic) {
  const Words few = {"tests/e2e/ranks/matched", "few"};  // this network is slow
  ExpectPasses({"2", "2", {"FERRY_MATCHED_CELL_BYTES=0"}, "sockets"}, few);
  ExpectPasses({"2", "2", {}, "sockets"}, few);
  ExpectPasses({"2", "2", {}, "sockets"}, {"tests/e2e/ranks/queues"});
  ExpectPasses({"2", "2", {}, "sockets"}, {"tests/e2e/ranks/queue_ends"});
  ExpectPasses({"2", "2", {"FERRY_MATCHED_CELL_BYTES=0"}, "sockets"},
               {"tests/e2e/ranks/queue_ends"});
}

// The value behind a name, after `behind`, in what `ferryctl --json` prints.
uint64_t ValueOf(const std::string& text, const std::string& name, const std::string& behind = "") {
  const size_t start = text.find(behind);
  const std::string key = "\"" + name + "\": ";
  const size_t found = start == std::string::npos ? start : text.find(key, start);
  return found == std::string::npos ? UINT64_MAX : std::stoull(text.substr(found + key.size()));
}

// 4,000 requests start at once, on a NIC of 16 entries: the daemon serves those that find none.
TEST(MatchedTest, ByANicWithFewEntries) {
#if defined(__SANITIZE_THREAD__)
  constexpr uint64_t kPairs = 500;  // a program takes ten times as long
#else
  constexpr uint64_t kPairs = 1000;
#endif
  const std::string out =
      RunWell(Job({"2",
                   "2",
                   {"FERRY_MATCHED_CELL_BYTES=0"},
                   "sockets",
                   {"FERRY_DEFERRED_WORK_ENTRIES=16", "FERRY_DEFERRED_WORK_WEIGHTS=0:2"}},
                  {"tests/e2e/ranks/many_matched", std::to_string(kPairs), "64", "2",
                   "tools/ferryctl/ferryctl"}));
  EXPECT_EQ(ValueOf(out, "deferred_entries"), 16U);
  EXPECT_EQ(ValueOf(out, "deferred_busy"), 0U);
  const uint64_t on_nic = ValueOf(out, "deferred_operations");
  EXPECT_GE(on_nic, 16U);
  // A round of a send is two operations; that of its receive is one, and one more if the send is
  // not ready.
  EXPECT_EQ(on_nic + ValueOf(out, "deferred_overflows"), 2 * kPairs * 2 + kPairs * 3);
  EXPECT_EQ(ValueOf(out, "value", "matched_by_nic"), 2 * kPairs);
}

// Ready sends that one call starts have one trigger: a counter in the NIC, and an addition to it.
TEST(MatchedTest, ReadySendsOfOneCallShareATrigger) {
  constexpr uint64_t kPairs = 20;
  constexpr uint64_t kRounds = 10;
  const Words program = {"tests/e2e/ranks/ready_together", std::to_string(kPairs), "4096",
                         std::to_string(kRounds), "tools/ferryctl/ferryctl"};
  const std::string out = RunWell(Job({"2", "2", {}, "sockets"}, program));
  EXPECT_EQ(ValueOf(out, "deferred_overflows"), 0U);
  // A round of a send is two operations; that of its receive is one.
  EXPECT_EQ(ValueOf(out, "deferred_operations"), 3 * kPairs * kRounds);
  // Two counters count the operations of each end, one fires all sends.
  EXPECT_EQ(ValueOf(out, "deferred_counters"), 2 * 2 * kPairs + 1);
  EXPECT_LE(ValueOf(out, "deferred_rings"), kRounds);

  ExpectPasses({"2", "2", {}}, program);  // by the daemon
  ExpectPasses({"2", "2", {}, "sockets", {"FERRY_DEFERRED_WORK_ENTRIES=8"}}, program);
}

// A NIC whose counters have pages that ranks map.
Words NicWithPages() {
  return {"LD_LIBRARY_PATH=" + std::filesystem::absolute("tests/fixtures/paged_fabric").string(),
          "FERRY_USERS=own"};
}

Words RingTheNic(const std::string& how) {
  return {"tests/e2e/ranks/ring_the_nic", "4", "16384", "20", "tools/ferryctl/ferryctl", how};
}

// Between the first enqueueing and the last completion of 20 rounds no ferryd adds to a counter.
TEST(MatchedTest, StreamsRingTheNicThemselves) {
  for (const char* how : {"queue", "rank", "kernel"}) {
    const std::string out = RunWell(Job(
        {"2", "2", {"FERRY_MATCHED_CELL_BYTES=0"}, "sockets", NicWithPages()}, RingTheNic(how)));
    for (const char* rank : {"rank 0", "rank 1"}) {
      EXPECT_NE(out.find(std::string(rank) + ": ferryd added 0 times in 160 starts"),
                std::string::npos)
          << how << ": " << out;
    }
  }
}

TEST(MatchedTest, FerrydRingsTheNicWhereRanksMayNot) {
  const Words off = Joined(NicWithPages(), {"FERRY_COUNTER_PAGES=off"});
  const std::string out =
      RunWell(Job({"2", "2", {"FERRY_MATCHED_CELL_BYTES=0"}, "sockets", off}, RingTheNic("queue")));
  EXPECT_NE(out.find("ferryd added 160 times in 160 starts"), std::string::npos) << out;
}

// The rules of queues, and the ends of pairs, streams and ranks, where streams ring the NIC.
TEST(MatchedTest, WhoeverRingsTheNicTheRulesHold) {
  const Words pages = NicWithPages();
  const Words words_only = {"FERRY_MATCHED_CELL_BYTES=8"};  // other messages go by the NIC
  ExpectPasses({"2", "2", {"FERRY_MATCHED_CELL_BYTES=0"}, "sockets", pages},
               {"tests/e2e/ranks/matched", "few"});
  ExpectPasses({"2", "2", words_only, "sockets", pages}, {"tests/e2e/ranks/queues"});
  ExpectPasses({"2", "2", words_only, "sockets", pages}, {"tests/e2e/ranks/queue_ends"});
  ExpectPasses({"2", "2", {}, "sockets", pages},
               {"tests/e2e/ranks/ready_together", "20", "4096", "10", "tools/ferryctl/ferryctl"});
}

// An administrator may tell Ferry not to use the NIC for it.
TEST(MatchedTest, ByANicWithoutEntries) {
  const std::string out = RunWell(
      Job({"2", "2", {"FERRY_MATCHED_CELL_BYTES=0"}, "sockets", {"FERRY_DEFERRED_WORK_ENTRIES=0"}},
          {"tests/e2e/ranks/many_matched", "50", "16384", "2", "tools/ferryctl/ferryctl"}));
  EXPECT_EQ(ValueOf(out, "deferred_entries"), 0U);
  EXPECT_EQ(ValueOf(out, "deferred_operations"), 0U);
  EXPECT_EQ(ValueOf(out, "value", "matched_by_daemon"), 2U * 50);
}

TEST(MatchedTest, DevicesBehindALink) {
  const Words link = {"FERRY_HOST_LINK_H2D_MB_PER_S=20000", "FERRY_HOST_LINK_D2H_MB_PER_S=20000"};
  ExpectPassesEverywhere({"tests/e2e/ranks/matched"}, link);
}

TEST(MatchedTest, QueuesKeepTheirRules) { ExpectPassesEverywhere({"tests/e2e/ranks/queues"}); }

TEST(MatchedTest, PairsEnd) {
  ExpectPassesEverywhere({"tests/e2e/ranks/queue_ends"});
  ExpectPasses({"2", "2", {"FERRY_MATCHED_CELL_BYTES=0"}}, {"tests/e2e/ranks/queue_ends"});
}

}  // namespace
}  // namespace ferry::e2e
