// How the nodes share a file that they write together: its bytes are cut into *cells* of one size,
// which the nodes own in turns. Each node sends what its ranks write of a cell to the cell's owner,
// which writes it. All ranks know which nodes have bytes where, so each node knows which messages
// come, and in which order.
//
// A message has the marks of a cell's bytes (coverage.h), as bits, and the marked bytes in a row.
//
// Units: bytes; places are bytes of the file. Calling thread: any. Nothing blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "mpi/io/file_domains.h"

namespace ferry::mpi {

class Cells {
 public:
  // `plan`: one that is exchanged. `self`: this node, as all below a number of plan.nodes.
  Cells(const NodePlan& plan, int self);

  int64_t cell_bytes() const { return cell_bytes_; }
  int self() const { return self_; }
  int OwnerOf(int64_t begin) const {
    return static_cast<int>(begin / unit_bytes_ % static_cast<int64_t>(nodes_.size()));
  }
  // Returns true if the node's ranks may write bytes of the cell that begins there.
  bool HasBytes(int node, int64_t begin) const {
    const NodeSpan& span = nodes_[static_cast<size_t>(node)];
    return span.low < begin + cell_bytes_ && span.high > begin;
  }
  // Returns the first cell from `begin` on that this node owns, or of which its ranks may write
  // bytes; kNowhere: there is none.
  int64_t Next(int64_t begin) const;

  // A message to this node.
  struct Incoming {
    int64_t begin = kNowhere;  // of the cell; kNowhere: no message
    int node = 0;
  };
  // Return the first message of all, and the one behind another: in the order of cells.
  Incoming FirstIncoming() const { return IncomingFrom(NextOwned(0), 0); }
  Incoming NextIncoming(const Incoming& one) const { return IncomingFrom(one.begin, one.node + 1); }
  // Returns how many messages come for a cell that this node owns.
  int IncomingCount(int64_t begin) const;

 private:
  int64_t NextOwned(int64_t begin) const;
  Incoming IncomingFrom(int64_t begin, int node) const;

  const std::vector<NodeSpan> nodes_;
  const int self_;
  const int64_t cell_bytes_;
  const int64_t unit_bytes_;
};

// ---- What is in a message -----------------------------------------------------------------------

struct CellHeader {
  int64_t begin = 0;  // of the cell
  int64_t low = 0;    // between these places of the file lie the bytes
  int64_t high = 0;
  int64_t bytes = 0;
};

// Returns the words of 64 marks that a cell has.
int64_t MarkWords(int64_t cell_bytes, int grain_shift);
// Returns the size of the longest message of a cell.
int64_t MostMessageBytes(int64_t cell_bytes);

// Writes a message of the marked bytes of a cell, which lie in [header.low, header.high), and takes
// the marks away. Returns its size.
int64_t PackCell(CellHeader header, int64_t cell_bytes, int grain_shift, std::byte* marks,
                 const std::byte* bytes, std::byte* message);
// Copies the bytes of a message to their places in the cell's memory, and marks them. Returns
// false: the message is none of this cell.
bool UnpackCell(const std::byte* message, int64_t message_bytes, int64_t cell_begin,
                int64_t cell_bytes, int grain_shift, std::byte* marks, std::byte* bytes,
                CellHeader* header);

}  // namespace ferry::mpi
