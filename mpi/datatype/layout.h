// The places in memory of the bytes of one element of a datatype, in packed order: a tree of loops
// and lists over contiguous runs, merged where possible. A vector of a million doubles is one loop;
// only irregular displacements take an entry each.
//
// A node is a value. The LayoutStore in which it was made keeps the data that it points to (a
// loop's body, the entries of a list), which do not change any more: several datatypes may share
// them.
//
// Units: bytes. Blocks: never. Calling thread: any for nodes; one at a time for a LayoutStore.
// Nothing here checks for overflow: the constructors of Datatype have.
//
// The idea of loops over loops in place of a list of pieces: W. Gropp, E. Lusk and D. Swider,
// "Improving the performance of MPI derived datatypes" (1999); J. L. Träff et al., "Flattening on
// the fly" (EuroPVM/MPI 1999).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace ferry::mpi {

struct LayoutBlock {
  int64_t displacement;  // in memory, from the node's offset
  int64_t begin;         // in the packed stream, from the node's first byte
};

struct LayoutNode {
  enum class Kind : uint8_t {
    kBlock,   // `size` bytes in a row
    kLoop,    // `count` times `*body`, `stride` apart; body->size > 0
    kBlocks,  // `count` runs of bytes, `blocks[i]`; all of `stride` bytes, unless that is 0
    kList,    // `count` nodes, `body[i]`, which begin at `begins[i]` of the packed stream
  };
  Kind kind = Kind::kBlock;
  int64_t offset = 0;  // of the node's bytes, in memory
  int64_t size = 0;    // of the node's bytes, packed
  int64_t count = 0;
  int64_t stride = 0;
  const LayoutNode* body = nullptr;
  union {
    const LayoutBlock* blocks = nullptr;  // kBlocks
    const int64_t* begins;                // kList
  };

  bool IsBlock() const { return kind == Kind::kBlock; }
  // For kBlocks.
  int64_t BlockLength(int64_t i) const {
    if (stride != 0) {
      return stride;
    }
    return (i + 1 < count ? blocks[i + 1].begin : size) - blocks[i].begin;
  }
};

// Returns `count` times `body`, `stride` apart, as one node that may refer to `body`; simpler where
// loops can be merged.
LayoutNode RepeatNode(const LayoutNode& body, int64_t count, int64_t stride);

// Returns a node of `length` bytes in a row.
inline LayoutNode RunNode(int64_t displacement, int64_t length) {
  LayoutNode node;
  node.offset = displacement;
  node.size = length;
  return node;
}

// Returns the node, `displacement` further on in memory.
LayoutNode MoveNode(LayoutNode node, int64_t displacement);

// Nodes one after the other, merged where they touch. Empty ones are left out. As long as all of
// them are runs of bytes, each takes no more room than in the final layout: types of a million
// blocks are made of them.
class LayoutSequence {
 public:
  void Reserve(size_t nodes) { blocks_.reserve(nodes); }
  void Add(const LayoutNode& node) {
    if (node.IsBlock()) {
      AddRun(node.offset, node.size);
    } else {
      AddNode(node);
    }
  }
  // Adds a run of `length` bytes.
  void AddRun(int64_t displacement, int64_t length) {
    if (!nodes_.empty()) [[unlikely]] {
      AddNode(RunNode(displacement, length));
      return;
    }
    if (displacement != end_ || blocks_.empty()) [[likely]] {
      if (length == 0) {
        return;
      }
      blocks_.push_back({displacement, size_});
    }
    size_ += length;
    end_ = displacement + length;
  }
  // Adds `length` bytes in a row at base + displacement * unit for each of the displacements.
  // length > 0.
  void AddRuns(const std::vector<int64_t>& displacements, int64_t base, int64_t unit,
               int64_t length);

 private:
  friend class LayoutStore;

  void AddNode(const LayoutNode& node);

  std::vector<LayoutBlock> blocks_;  // while all are runs
  int64_t end_ = 0;                  // of the last block, in memory
  std::vector<LayoutNode> nodes_;    // else
  int64_t size_ = 0;
};

class LayoutStore {
 public:
  LayoutStore() = default;
  LayoutStore(const LayoutStore&) = delete;
  LayoutStore& operator=(const LayoutStore&) = delete;

  // Returns the node of RepeatNode, but the result does not refer to the argument.
  LayoutNode Repeat(const LayoutNode& body, int64_t count, int64_t stride);
  // Returns a node of a LayoutSequence's nodes: a loop where they are regular.
  LayoutNode Sequence(LayoutSequence sequence);

 private:
  const LayoutNode* Keep(const LayoutNode& node);
  LayoutNode KeepBlocks(std::vector<LayoutBlock> blocks, int64_t size);
  LayoutNode KeepList(std::vector<LayoutNode> nodes, int64_t size);

  std::vector<std::vector<LayoutNode>> nodes_;
  std::vector<std::vector<LayoutBlock>> blocks_;
  std::vector<std::unique_ptr<const int64_t[]>> begins_;
};

// ---- Moving the bytes that a layout describes ---------------------------------------------------
//
// `buffer` is what displacements count from. It may be null with displacements that are addresses
// (MPI_BOTTOM). Host memory only; for other memory ForEachLayoutRun gives the places. For this
// folder: others use Datatype.

// Copy packed bytes [offset, offset + bytes) of the layout, which it must have.
void PackLayout(const LayoutNode& layout, const void* buffer, int64_t offset, int64_t bytes,
                void* packed);
void UnpackLayout(const LayoutNode& layout, void* buffer, int64_t offset, int64_t bytes,
                  const void* packed);

// Calls run(context, displacement, length) for each piece of the packed bytes [offset, offset +
// bytes), in packed order; pieces that follow one another in memory are one.
using LayoutRun = void (*)(void* context, int64_t displacement, int64_t length);
void ForEachLayoutRun(const LayoutNode& layout, int64_t offset, int64_t bytes, LayoutRun run,
                      void* context);

}  // namespace ferry::mpi
