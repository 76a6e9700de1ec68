#include "common/rank_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tools/ferryrun/agent_protocol.h"

namespace ferry::tools {
namespace {

using Nodes = std::vector<uint32_t>;

Nodes Dealt(uint32_t nodes, uint32_t ranks_of_node, bool in_turn) {
  Nodes all;
  for (uint32_t i = 0; i < nodes * ranks_of_node; ++i) {
    all.push_back(in_turn ? i % nodes : i / ranks_of_node);
  }
  return all;
}

TEST(RankTableTest, ComesBackAsItWas) {
  for (const Nodes& nodes : std::vector<Nodes>{{},
                                               {0},
                                               {7},
                                               {0, 0, 0, 1, 1, 1},
                                               {2, 1, 0, 2, 1, 0},
                                               {5, 0, UINT32_MAX, 0, 5, 5, 4, 100'000},
                                               Dealt(30, 7, /*in_turn=*/true),
                                               Dealt(30, 7, /*in_turn=*/false)}) {
    const auto read = UnpackNodes(PackNodes(nodes), static_cast<uint32_t>(nodes.size()));
    ASSERT_TRUE(read.ok()) << read.status().ToString();
    EXPECT_EQ(*read, nodes);
  }
}

// 128,000 bytes and more as numbers of the protocol.
TEST(RankTableTest, TheUsualPlacementsTakeFewBytes) {
  EXPECT_LE(PackNodes(Dealt(1000, 64, /*in_turn=*/false)).size(), 4000U);
  EXPECT_LE(PackNodes(Dealt(1000, 64, /*in_turn=*/true)).size(), 64U * 4);
}

TEST(RankTableTest, ATableThatCannotBeIsRefused) {
  const std::string good = PackNodes({3, 4, 5, 9});
  ASSERT_TRUE(UnpackNodes(good, 4).ok());
  EXPECT_EQ(UnpackNodes(good, 3).status().code(), ErrorCode::kCorrupt) << "too many ranks";
  EXPECT_EQ(UnpackNodes(good, 5).status().code(), ErrorCode::kCorrupt) << "too few";
  for (size_t size = 1; size < good.size(); ++size) {
    EXPECT_FALSE(UnpackNodes(good.substr(0, size), 4).ok()) << size << " bytes of it";
  }
  const std::string huge(9, '\xff');
  for (const std::string& bad : std::vector<std::string>{
           {'\0', '\0', '\0'},                          // no rank
           std::string("\0\1\2", 3),                    // below node 0
           huge + "\1" + std::string("\0\4", 2),        // a node beyond 32 bits
           std::string("\0", 1) + huge + "\1\4",        // a step beyond them
           std::string("\0\0", 2) + huge + "\1",        // ranks beyond all there are
           std::string("\0\0", 2) + huge + "\xff\xff",  // a number without an end
           std::string("\0\0", 2)}) {
    EXPECT_EQ(UnpackNodes(bad, 4).status().code(), ErrorCode::kCorrupt);
  }
}

TEST(AgentJobTest, ComesBackAsItWas) {
  const AgentJob job{.request = std::string("\0\xff", 2),
                     .node_of_rank = {0, 0, 1},
                     .parts = {{.program = {"a", "b c"},
                                .variables = {"X=\xff", "Y="},
                                .directory = "/tmp",
                                .must = true},
                               {.program = {"d"}, .variables = {}, .directory = "/"}},
                     .terminal = TerminalSize{.rows = 40, .columns = 0}};
  const auto read = ReadJob(ToText(job));
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_EQ(read->request, job.request);
  EXPECT_EQ(read->node_of_rank, job.node_of_rank);
  ASSERT_EQ(read->parts.size(), 2U);
  EXPECT_EQ(read->parts[0].program, job.parts[0].program);
  EXPECT_EQ(read->parts[0].variables, job.parts[0].variables);
  EXPECT_EQ(read->parts[0].directory, "/tmp");
  EXPECT_TRUE(read->parts[0].must);
  EXPECT_FALSE(read->parts[1].must);
  EXPECT_EQ(read->terminal, job.terminal);
  const auto without = ReadJob(ToText(AgentJob{}));
  ASSERT_TRUE(without.ok()) << without.status().ToString();
  EXPECT_EQ(without->terminal, std::nullopt);
  EXPECT_EQ(ReadJob("no CBOR").status().code(), ErrorCode::kCorrupt);
}

}  // namespace
}  // namespace ferry::tools
