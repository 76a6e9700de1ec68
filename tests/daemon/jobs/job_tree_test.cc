// The tree of a job's nodes, with any of them out.
#include "daemon/jobs/job_tree.h"

#include <gtest/gtest.h>

#include <deque>
#include <optional>
#include <random>
#include <set>
#include <vector>

namespace ferry::daemon {
namespace {

JobTree::IsOut Out(const std::set<uint32_t>& out) {
  return [out](uint32_t node) { return out.contains(node); };
}

TEST(JobTreeTest, FewNodesAreNone) {
  EXPECT_FALSE(JobTree().exists());
  EXPECT_FALSE(JobTree(1000, 0, 3).exists());
  EXPECT_FALSE(JobTree(17, 16, 3).exists());
  EXPECT_TRUE(JobTree(18, 16, 3).exists());
  EXPECT_FALSE(JobTree(18, UINT32_MAX, 3).exists());
}

TEST(JobTreeTest, ParentsAndChildrenNameEachOther) {
  for (const uint32_t radix : {1U, 2U, 3U, 16U}) {
    constexpr uint32_t kNodes = 100;
    size_t edges = 0;
    for (uint32_t node = 0; node < kNodes; ++node) {
      const JobTree tree(kNodes, radix, node);
      ASSERT_TRUE(tree.exists());
      for (const uint32_t child : tree.Downward(Out({}))) {
        EXPECT_EQ(JobTree(kNodes, radix, child).Upward(Out({})), node);
        ++edges;
      }
    }
    EXPECT_EQ(edges, kNodes - 1);
    EXPECT_EQ(JobTree(kNodes, radix, 0).Upward(Out({})), std::nullopt);
  }
}

// Follows the edges that the nodes that are left have.
size_t Reached(uint32_t nodes, uint32_t radix, uint32_t first, const std::set<uint32_t>& out) {
  std::vector<std::set<uint32_t>> edges(nodes);
  for (uint32_t node = 0; node < nodes; ++node) {
    if (out.contains(node)) {
      continue;
    }
    const JobTree tree(nodes, radix, node);
    const std::optional<uint32_t> above = tree.Upward(Out(out));
    if (above) {
      EXPECT_FALSE(out.contains(*above));
      edges[node].insert(*above);
      edges[*above].insert(node);
      // That one talks to it by itself.
      const std::vector<uint32_t> below = JobTree(nodes, radix, *above).Downward(Out(out));
      EXPECT_EQ(std::count(below.begin(), below.end(), node), 1)
          << node << " below " << *above << " of " << nodes << ", radix " << radix;
    }
  }
  std::set<uint32_t> seen = {first};
  std::deque<uint32_t> next = {first};
  for (; !next.empty(); next.pop_front()) {
    for (const uint32_t node : edges[next.front()]) {
      if (seen.insert(node).second) {
        next.push_back(node);
      }
    }
  }
  return seen.size();
}

TEST(JobTreeTest, WhoIsLeftHangsTogether) {
  std::mt19937 random(1);
  for (const uint32_t radix : {1U, 2U, 3U, 16U}) {
    for (int round = 0; round < 200; ++round) {
      constexpr uint32_t kNodes = 60;
      std::set<uint32_t> out;
      const uint32_t most = random() % (kNodes - 1);
      for (uint32_t i = 0; i < most; ++i) {
        out.insert(random() % kNodes);
      }
      uint32_t first = 0;
      while (out.contains(first)) {
        ++first;
      }
      ASSERT_EQ(Reached(kNodes, radix, first, out), kNodes - out.size()) << "round " << round;
    }
  }
}

// A launcher may ask for a chain, of which all but the last have died.
TEST(JobTreeTest, ADeepTreeIsPassedWithoutRecursion) {
  constexpr uint32_t kNodes = 2'000'000;
  const auto all_but_last = [](uint32_t node) { return node != kNodes - 1; };
  const JobTree tree(kNodes, 1, 0);
  ASSERT_TRUE(tree.exists());
  EXPECT_EQ(tree.Downward(all_but_last), std::vector<uint32_t>{kNodes - 1});
  EXPECT_EQ(JobTree(kNodes, 1, kNodes - 1).Upward(all_but_last), std::nullopt);
}

// The levels of a tree of radix 2 are 0; 1, 2; 3 to 6; 7 to 14.
TEST(JobTreeTest, NewsComeFromTheirDirectionOnly) {
  const JobTree tree(15, 2, 1);
  EXPECT_TRUE(tree.IsTheWayOf(3, 3));
  EXPECT_TRUE(tree.IsTheWayOf(7, 3));
  EXPECT_TRUE(tree.IsTheWayOf(7, 7)) << "which has turned to this node";
  EXPECT_FALSE(tree.IsTheWayOf(9, 3)) << "it is below 4";
  EXPECT_FALSE(tree.IsTheWayOf(3, 7)) << "it is above 7";
  EXPECT_FALSE(tree.IsTheWayOf(2, 3));
  EXPECT_FALSE(tree.IsTheWayOf(0, 3));
  EXPECT_TRUE(tree.IsTheWayOf(0, 0));
  EXPECT_TRUE(tree.IsTheWayOf(14, 0));
  EXPECT_FALSE(tree.IsTheWayOf(7, 0));
  EXPECT_FALSE(tree.IsTheWayOf(1, 0)) << "it is this node";
  EXPECT_FALSE(tree.IsTheWayOf(1, 3));
  EXPECT_TRUE(tree.IsTheWayOf(6, 2)) << "2 takes the place of the root";
}

}  // namespace
}  // namespace ferry::daemon
