// Which ranks share a node: hierarchical algorithms are built on this.
//
// Pure functions: any thread, nothing blocks.
#pragma once

#include <vector>

#include "client/mpi/collective/algorithms/party.h"

namespace ferry::mpi {

struct Nodes {
  Party local;                            // the ranks of this one's node; the leader is at index 0
  Party leaders;                          // one rank of each node; self -1 on the others
  std::vector<std::vector<int>> members;  // by index among the leaders, the leader first
};

// The leader of a node is its lowest rank; of `root`'s node it is `root`, unless that is negative.
// Nodes are in the order of their lowest ranks.
Nodes NodesOf(const Problem& problem, int root);

// More than one node, and more than one rank on one of them.
bool IsHierarchical(const Problem& problem);
// The ranks of each node follow each other, so that reducing node by node keeps their order.
bool AreNodesInOrder(const Problem& problem);

}  // namespace ferry::mpi
