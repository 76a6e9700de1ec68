#include "client/mpi/datatype/layout.h"

#include <algorithm>

namespace ferry::mpi {
namespace {

using Kind = LayoutNode::Kind;

// Whether two nodes describe the same bytes but for where they begin. Entries and bodies are
// compared by address: what is equal mostly is the same.
bool SameShape(const LayoutNode& a, const LayoutNode& b) {
  if (a.kind != b.kind || a.size != b.size) {
    return false;
  }
  return a.kind == Kind::kBlock ||
         (a.count == b.count && a.stride == b.stride && a.body == b.body && a.blocks == b.blocks);
}

// Joins neighbours that continue each other in memory; leaves out empty ones.
void MergeNeighbours(std::vector<LayoutNode>& nodes) {
  size_t kept = 0;
  for (const LayoutNode& node : nodes) {
    if (node.size == 0) {
      continue;
    }
    LayoutNode* const last = kept > 0 ? &nodes[kept - 1] : nullptr;
    if (last != nullptr && last->IsBlock() && node.IsBlock() &&
        last->offset + last->size == node.offset) {
      last->size += node.size;
    } else {
      nodes[kept++] = node;
    }
  }
  nodes.resize(kept);
}

// Whether a loop that begins `stride` behind another one continues it.
bool ContinuesAfter(const LayoutNode& loop, int64_t stride) {
  int64_t length = 0;
  return !__builtin_mul_overflow(loop.count, loop.stride, &length) && stride == length;
}

bool IsRegular(const std::vector<LayoutNode>& nodes) {
  const int64_t stride = nodes[1].offset - nodes[0].offset;
  for (size_t i = 1; i < nodes.size(); ++i) {
    if (nodes[i].offset - nodes[i - 1].offset != stride || !SameShape(nodes[i], nodes[0])) {
      return false;
    }
  }
  return true;
}

}  // namespace

LayoutNode MoveNode(LayoutNode node, int64_t displacement) {
  node.offset += displacement;
  return node;
}

LayoutNode RepeatNode(const LayoutNode& body, int64_t count, int64_t stride) {
  LayoutNode result;
  if (count <= 0 || body.size == 0) {
    return result;
  }
  if (count == 1) {
    return body;
  }
  if (body.IsBlock() && stride == body.size) {
    result = body;
    result.size *= count;
    return result;
  }
  result.kind = Kind::kLoop;
  result.size = body.size * count;
  if (body.kind == Kind::kLoop && ContinuesAfter(body, stride)) {
    result.offset = body.offset;
    result.count = count * body.count;
    result.stride = body.stride;
    result.body = body.body;
    return result;
  }
  result.count = count;
  result.stride = stride;
  result.body = &body;
  return result;
}

LayoutNode LayoutStore::Block(int64_t size_bytes) {
  LayoutNode node;
  node.size = size_bytes;
  return node;
}

const LayoutNode* LayoutStore::Keep(const LayoutNode& node) {
  auto kept = std::make_unique<LayoutNode[]>(1);
  kept[0] = node;
  nodes_.push_back(std::move(kept));
  return nodes_.back().get();
}

LayoutNode LayoutStore::Repeat(const LayoutNode& body, int64_t count, int64_t stride) {
  LayoutNode node = RepeatNode(body, count, stride);
  if (node.kind == Kind::kLoop && node.body == &body) {
    // The loop's own offset stands for the body's: loops that differ in nothing else are the same.
    node.offset = body.offset;
    LayoutNode at_zero = body;
    at_zero.offset = 0;
    node.body = Keep(at_zero);
  }
  return node;
}

LayoutNode LayoutStore::KeepBlocks(const std::vector<LayoutNode>& nodes, int64_t size) {
  LayoutNode result;
  result.kind = Kind::kBlocks;
  result.size = size;
  result.count = static_cast<int64_t>(nodes.size());
  result.stride = nodes[0].size;
  auto blocks = std::make_unique<LayoutBlock[]>(nodes.size());
  int64_t begin = 0;
  for (size_t i = 0; i < nodes.size(); ++i) {
    blocks[i] = {nodes[i].offset, begin};
    begin += nodes[i].size;
    if (nodes[i].size != nodes[0].size) {
      result.stride = 0;
    }
  }
  result.blocks = blocks.get();
  blocks_.push_back(std::move(blocks));
  return result;
}

LayoutNode LayoutStore::KeepList(const std::vector<LayoutNode>& nodes, int64_t size) {
  LayoutNode result;
  result.kind = Kind::kList;
  result.size = size;
  result.count = static_cast<int64_t>(nodes.size());
  auto bodies = std::make_unique<LayoutNode[]>(nodes.size());
  auto begins = std::make_unique<int64_t[]>(nodes.size());
  int64_t begin = 0;
  for (size_t i = 0; i < nodes.size(); ++i) {
    bodies[i] = nodes[i];
    begins[i] = begin;
    begin += nodes[i].size;
  }
  result.body = bodies.get();
  result.begins = begins.get();
  nodes_.push_back(std::move(bodies));
  begins_.push_back(std::move(begins));
  return result;
}

LayoutNode LayoutStore::Sequence(std::vector<LayoutNode> nodes) {
  MergeNeighbours(nodes);
  if (nodes.empty()) {
    return LayoutNode();
  }
  if (nodes.size() == 1) {
    return nodes[0];
  }
  if (IsRegular(nodes)) {
    return Repeat(nodes[0], static_cast<int64_t>(nodes.size()), nodes[1].offset - nodes[0].offset);
  }
  int64_t size = 0;
  for (const LayoutNode& node : nodes) {
    size += node.size;
  }
  const bool all_blocks =
      std::all_of(nodes.begin(), nodes.end(), [](const LayoutNode& n) { return n.IsBlock(); });
  return all_blocks ? KeepBlocks(nodes, size) : KeepList(nodes, size);
}

}  // namespace ferry::mpi
