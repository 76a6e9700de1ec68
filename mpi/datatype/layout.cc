#include "mpi/datatype/layout.h"

#include <algorithm>

namespace ferry::mpi {
namespace {

using Kind = LayoutNode::Kind;

// Returns true if two nodes describe the same bytes but for where they begin. Entries and bodies
// are compared by address: equal ones are mostly the same.
bool SameShape(const LayoutNode& a, const LayoutNode& b) {
  if (a.kind != b.kind || a.size != b.size) {
    return false;
  }
  return a.kind == Kind::kBlock ||
         (a.count == b.count && a.stride == b.stride && a.body == b.body && a.blocks == b.blocks);
}

// Returns true if a loop that begins `stride` behind another one continues it.
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

// The length that all blocks of so many packed bytes have; 0: they differ.
int64_t CommonLength(const std::vector<LayoutBlock>& blocks, int64_t size) {
  const auto count = static_cast<int64_t>(blocks.size());
  const int64_t length = size / count;
  if (length * count != size) {
    return 0;
  }
  for (int64_t i = 0; i < count; ++i) {
    if (blocks[static_cast<size_t>(i)].begin != i * length) {
      return 0;
    }
  }
  return length;
}

bool AreEquallyFar(const std::vector<LayoutBlock>& blocks) {
  const int64_t stride = blocks[1].displacement - blocks[0].displacement;
  for (size_t i = 2; i < blocks.size(); ++i) {
    if (blocks[i].displacement - blocks[i - 1].displacement != stride) {
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

const LayoutNode* LayoutStore::Keep(const LayoutNode& node) {
  nodes_.push_back({node});
  return nodes_.back().data();
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

LayoutNode LayoutStore::KeepBlocks(std::vector<LayoutBlock> blocks, int64_t size) {
  LayoutNode result;
  result.kind = Kind::kBlocks;
  result.size = size;
  result.count = static_cast<int64_t>(blocks.size());
  result.stride = CommonLength(blocks, size);
  blocks.shrink_to_fit();
  blocks_.push_back(std::move(blocks));
  result.blocks = blocks_.back().data();
  return result;
}

LayoutNode LayoutStore::KeepList(std::vector<LayoutNode> nodes, int64_t size) {
  LayoutNode result;
  result.kind = Kind::kList;
  result.size = size;
  result.count = static_cast<int64_t>(nodes.size());
  auto begins = std::make_unique<int64_t[]>(nodes.size());
  int64_t begin = 0;
  for (size_t i = 0; i < nodes.size(); ++i) {
    begins[i] = begin;
    begin += nodes[i].size;
  }
  nodes.shrink_to_fit();
  nodes_.push_back(std::move(nodes));
  result.body = nodes_.back().data();
  result.begins = begins.get();
  begins_.push_back(std::move(begins));
  return result;
}

void LayoutSequence::AddNode(const LayoutNode& node) {
  if (node.size == 0) {
    return;
  }
  if (nodes_.empty()) {
    nodes_.reserve(std::max(blocks_.capacity(), blocks_.size() + 1));
  }
  for (size_t i = 0; i < blocks_.size(); ++i) {
    const int64_t end = i + 1 < blocks_.size() ? blocks_[i + 1].begin : size_;
    nodes_.push_back(RunNode(blocks_[i].displacement, end - blocks_[i].begin));
  }
  blocks_.clear();
  LayoutNode* const last = nodes_.empty() ? nullptr : &nodes_.back();
  if (last != nullptr && last->IsBlock() && node.IsBlock() &&
      last->offset + last->size == node.offset) {
    last->size += node.size;
  } else {
    nodes_.push_back(node);
  }
  size_ += node.size;
}

void LayoutSequence::AddRuns(const std::vector<int64_t>& displacements, int64_t base, int64_t unit,
                             int64_t length) {
  for (const int64_t displacement : displacements) {
    AddRun(base + displacement * unit, length);
  }
}

LayoutNode LayoutStore::Sequence(LayoutSequence sequence) {
  std::vector<LayoutBlock>& blocks = sequence.blocks_;
  std::vector<LayoutNode>& nodes = sequence.nodes_;
  const int64_t size = sequence.size_;
  if (nodes.size() == 1) {
    return nodes[0];
  }
  if (!nodes.empty()) {
    return IsRegular(nodes) ? Repeat(nodes[0], static_cast<int64_t>(nodes.size()),
                                     nodes[1].offset - nodes[0].offset)
                            : KeepList(std::move(nodes), size);
  }
  if (blocks.empty()) {
    return LayoutNode();
  }
  const LayoutNode first = RunNode(blocks[0].displacement, CommonLength(blocks, size));
  if (blocks.size() == 1) {
    return first;
  }
  if (first.size != 0 && AreEquallyFar(blocks)) {
    return Repeat(first, static_cast<int64_t>(blocks.size()),
                  blocks[1].displacement - blocks[0].displacement);
  }
  return KeepBlocks(std::move(blocks), size);
}

}  // namespace ferry::mpi
