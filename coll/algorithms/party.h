// The ranks among which a part of a collective runs: all of them, those of a node, or the nodes'
// leaders. Algorithms count in the party's indexes; Rank says which rank of the communicator that
// is. Besides: trees over a party, parts of a range, and which ranks share a node.
//
// Plain data: any thread, nothing blocks.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "coll/problem.h"

namespace ferry::collective {

struct Party {
  std::vector<int> ranks;  // in ascending order, but for a leader or root that a caller puts first
  int self = -1;           // this rank's index; -1: it is no member

  int size() const { return static_cast<int>(ranks.size()); }
  int Rank(int index) const { return ranks[static_cast<size_t>(index)]; }
  // Returns the index of a member.
  int IndexOf(int rank) const {
    return static_cast<int>(std::find(ranks.begin(), ranks.end(), rank) - ranks.begin());
  }
};

Party Everyone(const Problem& problem);
// Properties of a problem that algorithms may require.
inline bool IsUniform(const Problem& problem) { return !problem.has_blocks; }
inline bool IsCommutative(const Problem& problem) { return problem.commutative; }
// The largest power of two that is not greater than `value` (at least 1).
int FloorPowerOfTwo(int value);
bool IsPowerOfTwo(int value);

// A member's place in a tree over indexes 0 .. size - 1.
struct Tree {
  int parent = -1;            // -1: the root, or no member
  std::vector<int> children;  // in the order in which a reduction takes them
};
// In a binomial tree a node's subtree is the indexes behind it, counted from the root on.
Tree BinomialTree(int self, int root, int size);
Tree ChainTree(int self, int root, int size);
Tree FlatTree(int self, int root, int size);

// Divides `range` into `count` parts of whole elements, as even as they get; the first ones are
// longer.
std::vector<Range> Parts(const Range& range, int count, size_t element_bytes);
// Divides `range` into segments of whole elements of about `segment_bytes` (0: into one): at least
// one, at most kMaxSegments.
inline constexpr size_t kMaxSegments = 256;
std::vector<Range> Segments(const Range& range, size_t segment_bytes, size_t element_bytes);
// Returns the range from the first byte of `parts[first]` to the last of `parts[last - 1]`; they
// are adjacent.
Range Span(const std::vector<Range>& parts, int first, int last);

// The ranks that share a node: hierarchical algorithms are built on this.
struct Nodes {
  Party local;                            // the ranks of this one's node; the leader is at index 0
  Party leaders;                          // one rank of each node; self -1 on the others
  std::vector<std::vector<int>> members;  // by index among the leaders, the leader first
};

// Groups a problem's ranks by node. The leader of a node is its lowest rank; of `root`'s node it is
// `root`, unless that is negative. Nodes are in the order of their lowest ranks.
Nodes NodesOf(const Problem& problem, int root);

// Returns the party of the ranks that take part in the problem.
Party PartyOf(const Problem& problem);

// Returns true for more than one node, and more than one rank on one of them.
bool IsHierarchical(const Problem& problem);
// Returns true if the ranks of each node follow each other, so that reducing node by node keeps
// their order.
bool AreNodesInOrder(const Problem& problem);

}  // namespace ferry::collective
