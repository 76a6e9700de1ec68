#include "client/mpi/collective/algorithms/nodes.h"

#include <algorithm>
#include <map>
#include <set>

namespace ferry::mpi {

Nodes NodesOf(const Problem& problem, int root) {
  Nodes nodes;
  std::map<int, size_t> index_of;  // by node
  for (int rank = 0; rank < problem.size; ++rank) {
    const int node = problem.node_of.empty() ? 0 : problem.node_of[static_cast<size_t>(rank)];
    const auto [it, is_new] = index_of.try_emplace(node, nodes.members.size());
    if (is_new) {
      nodes.members.emplace_back();
    }
    std::vector<int>& members = nodes.members[it->second];
    members.insert(rank == root ? members.begin() : members.end(), rank);
  }
  for (const std::vector<int>& members : nodes.members) {
    const auto self = std::find(members.begin(), members.end(), problem.rank);
    if (self != members.end()) {
      nodes.local.ranks = members;
      nodes.local.self = static_cast<int>(self - members.begin());
      if (nodes.local.self == 0) {
        nodes.leaders.self = nodes.leaders.size();
      }
    }
    nodes.leaders.ranks.push_back(members.front());
  }
  return nodes;
}

bool IsHierarchical(const Problem& problem) {
  const std::set<int> nodes(problem.node_of.begin(), problem.node_of.end());
  return nodes.size() > 1 && nodes.size() < problem.node_of.size();
}

bool AreNodesInOrder(const Problem& problem) {
  std::set<int> left;
  for (size_t i = 1; i < problem.node_of.size(); ++i) {
    if (problem.node_of[i] != problem.node_of[i - 1]) {
      left.insert(problem.node_of[i - 1]);
      if (left.count(problem.node_of[i]) != 0) {
        return false;
      }
    }
  }
  return true;
}

}  // namespace ferry::mpi
