#include "client/mpi/collective/algorithms/party.h"

#include <algorithm>
#include <numeric>

namespace ferry::mpi {

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

}  // namespace ferry::mpi
