#include "mpi/datatype/order.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "mpi/datatype/layout.h"

namespace ferry::mpi {
namespace {

RunOrder OfRun(int64_t begin, int64_t length) {
  return {begin, begin, begin + length, begin, true, true, length};
}

RunOrder Shift(RunOrder order, int64_t distance) {
  order.first += distance;
  order.last += distance;
  order.high += distance;
  order.low += distance;
  return order;
}

// `front`, then `back`.
RunOrder Join(const RunOrder& front, const RunOrder& back) {
  RunOrder joined;
  joined.first = front.first;
  joined.last = back.last;
  joined.high = std::max(front.high, back.high);
  joined.low = std::min(front.low, back.low);
  joined.is_monotone = front.is_monotone && back.is_monotone && back.first >= front.last;
  joined.is_disjoint = front.is_disjoint && back.is_disjoint && back.first >= front.high;
  joined.grain = std::gcd(std::gcd(front.grain, back.grain), back.first - front.first);
  return joined;
}

RunOrder OfNode(const LayoutNode& node) {
  switch (node.kind) {
    case LayoutNode::Kind::kBlock:
      return OfRun(node.offset, node.size);
    case LayoutNode::Kind::kLoop: {
      const RunOrder body = OfNode(*node.body);
      // The second repetition stands to the first as each does to the one before.
      RunOrder both = body;
      if (node.count > 1) {
        both = Join(body, Shift(body, node.stride));
        const int64_t rest = node.stride * (node.count - 2);
        both.last += rest;
        both.high = std::max(both.high, both.high + rest);
        both.low = std::min(both.low, both.low + rest);
      }
      return Shift(both, node.offset);
    }
    case LayoutNode::Kind::kBlocks: {
      RunOrder all = OfRun(node.blocks[0].displacement, node.BlockLength(0));
      for (int64_t i = 1; i < node.count; ++i) {
        all = Join(all, OfRun(node.blocks[i].displacement, node.BlockLength(i)));
      }
      return Shift(all, node.offset);
    }
    case LayoutNode::Kind::kList: {
      RunOrder all = OfNode(node.body[0]);
      for (int64_t i = 1; i < node.count; ++i) {
        all = Join(all, OfNode(node.body[i]));
      }
      return Shift(all, node.offset);
    }
  }
  return {};
}

}  // namespace

RunOrder OrderOf(const Datatype& type) { return OfNode(type.shape().layout); }

}  // namespace ferry::mpi
