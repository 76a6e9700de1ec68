#include "coll/algorithms/party.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <unordered_set>

namespace ferry::collective {

Party Everyone(const Problem& problem) {
  Party party;
  party.ranks.resize(static_cast<size_t>(problem.size));
  std::iota(party.ranks.begin(), party.ranks.end(), 0);
  party.self = problem.rank;
  return party;
}

int FloorPowerOfTwo(int value) {
  int power = 1;
  while (power <= value / 2) {
    power *= 2;
  }
  return power;
}

bool IsPowerOfTwo(int value) { return FloorPowerOfTwo(value) == value; }

Tree BinomialTree(int self, int root, int size) {
  Tree tree;
  const int relative = (self - root + size) % size;
  int mask = 1;
  for (; mask < size && (relative & mask) == 0; mask *= 2) {
    if (relative + mask < size) {
      tree.children.push_back((relative + mask + root) % size);
    }
  }
  if (relative != 0) {
    tree.parent = (relative - mask + root) % size;
  }
  return tree;
}

Tree ChainTree(int self, int root, int size) {
  Tree tree;
  const int relative = (self - root + size) % size;
  if (relative != 0) {
    tree.parent = (self - 1 + size) % size;
  }
  if (relative + 1 < size) {
    tree.children.push_back((self + 1) % size);
  }
  return tree;
}

Tree FlatTree(int self, int root, int size) {
  Tree tree;
  if (self != root) {
    tree.parent = root;
    return tree;
  }
  for (int i = 1; i < size; ++i) {
    tree.children.push_back((root + i) % size);
  }
  return tree;
}

std::vector<Range> Parts(const Range& range, int count, size_t element_bytes) {
  std::vector<Range> parts;
  const size_t elements = range.size_bytes / element_bytes;
  const auto parties = static_cast<size_t>(count);
  size_t offset = 0;
  for (size_t i = 0; i < parties; ++i) {
    const size_t size = (elements / parties + (i < elements % parties ? 1 : 0)) * element_bytes;
    parts.push_back(range.Part(offset, size));
    offset += size;
  }
  return parts;
}

std::vector<Range> Segments(const Range& range, size_t segment_bytes, size_t element_bytes) {
  const size_t least = (range.size_bytes + kMaxSegments - 1) / kMaxSegments;
  const size_t whole =
      (std::max(segment_bytes, least) + element_bytes - 1) / element_bytes * element_bytes;
  if (segment_bytes == 0 || range.size_bytes <= whole) {
    return {range};
  }
  std::vector<Range> segments;
  for (size_t offset = 0; offset < range.size_bytes; offset += whole) {
    segments.push_back(range.Part(offset, std::min(whole, range.size_bytes - offset)));
  }
  return segments;
}

Range Span(const std::vector<Range>& parts, int first, int last) {
  Range span = parts[static_cast<size_t>(first)];
  span.size_bytes = 0;
  for (int i = first; i < last; ++i) {
    span.size_bytes += parts[static_cast<size_t>(i)].size_bytes;
  }
  return span;
}

// ---- Nodes --------------------------------------------------------------------------------------

namespace {

int NodeOf(const Problem& problem, int rank) {
  return problem.node_of.empty() ? 0 : problem.node_of[static_cast<size_t>(rank)];
}

// NodesOf().local, without the ranks of other nodes.
Party LocalOf(const Problem& problem) {
  Party local;
  const int own = NodeOf(problem, problem.rank);
  for (int rank = 0; rank < problem.size; ++rank) {
    if (NodeOf(problem, rank) == own) {
      local.self = rank == problem.rank ? local.size() : local.self;
      local.ranks.push_back(rank);
    }
  }
  return local;
}

// NodesOf().leaders, likewise.
Party LeadersOf(const Problem& problem, int root) {
  Party leaders;
  std::unordered_set<int> known;  // nodes
  for (int rank = 0; rank < problem.size; ++rank) {
    const int node = NodeOf(problem, rank);
    if (known.insert(node).second) {
      const int leader = root >= 0 && node == NodeOf(problem, root) ? root : rank;
      leaders.self = leader == problem.rank ? leaders.size() : leaders.self;
      leaders.ranks.push_back(leader);
    }
  }
  return leaders;
}

}  // namespace

Nodes NodesOf(const Problem& problem, int root) {
  Nodes nodes;
  std::map<int, size_t> index_of;  // by node
  for (int rank = 0; rank < problem.size; ++rank) {
    const int node = NodeOf(problem, rank);
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

Party PartyOf(const Problem& problem) {
  switch (problem.among) {
    case Among::kNode:
      return LocalOf(problem);
    case Among::kLeaders:
      return LeadersOf(problem, HasRoot(problem.collective) ? problem.root : -1);
    case Among::kAll:
      break;
  }
  return Everyone(problem);
}

bool IsHierarchical(const Problem& problem) {
  const size_t nodes = problem.node_of.CountDistinct();
  return nodes > 1 && nodes < problem.node_of.size();
}

bool AreNodesInOrder(const Problem& problem) { return problem.node_of.AreSameTogether(); }

}  // namespace ferry::collective
