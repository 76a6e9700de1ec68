// How the nodes share a file that they access together: its bytes are cut into *cells* of one size,
// which the nodes own in turns. Each node sends what its ranks write of a cell to the cell's owner,
// which writes it. To read, each node sends the owner a *wish*, which says what bytes of the cell
// its ranks want; the owner reads the cell once, and answers each wish by those bytes. All ranks
// know which nodes have bytes where, so each node knows which messages come, and in which order.
//
// A message has the marks of a cell's bytes (coverage.h), as bits, and the marked bytes in a row; a
// wish has no bytes.
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
  // Returns true if the node's ranks may access bytes of the cell that begins there.
  bool HasBytes(int node, int64_t begin) const {
    const NodeSpan& span = nodes_[static_cast<size_t>(node)];
    return span.low < begin + cell_bytes_ && span.high > begin;
  }
  // Returns between which places of the cell all nodes' bytes lie.
  NodeSpan SpanIn(int64_t begin) const;
  // Returns the first cell from `begin` on that this node owns, or of which its ranks may access
  // bytes; kNowhere: there is none.
  int64_t Next(int64_t begin) const;

  // A message to this node: to the owner of its cell, or an answer from that.
  struct Incoming {
    int64_t begin = kNowhere;  // of the cell; kNowhere: no message
    int node = 0;
  };
  // Return the first message to an owner, and the one behind another: in the order of cells.
  Incoming FirstIncoming() const { return IncomingFrom(NextOwned(0), 0); }
  Incoming NextIncoming(const Incoming& one) const { return IncomingFrom(one.begin, one.node + 1); }
  // Return the first answer, and the one behind another: in the order of cells.
  Incoming FirstAnswer() const { return AnswerFrom(0); }
  Incoming NextAnswer(const Incoming& one) const { return AnswerFrom(one.begin + cell_bytes_); }
  // Returns how many messages come for a cell that this node owns.
  int IncomingCount(int64_t begin) const;

 private:
  int64_t NextOwned(int64_t begin) const;
  Incoming IncomingFrom(int64_t begin, int node) const;
  Incoming AnswerFrom(int64_t begin) const;

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
// the marks away. Returns its size. `bytes`: the cell's memory; null: the message is a wish.
int64_t PackCell(CellHeader header, int64_t cell_bytes, int grain_shift, std::byte* marks,
                 const std::byte* bytes, std::byte* message);
// Copies the bytes of a message to their places in the cell's memory, and marks them unless `marks`
// is null. Returns false: the message is none of this cell.
bool UnpackCell(const std::byte* message, int64_t message_bytes, int64_t cell_begin,
                int64_t cell_bytes, int grain_shift, std::byte* marks, std::byte* bytes,
                CellHeader* header);
// Writes the answer to a wish: the bytes that it marks of the cell's memory. `end`: where the bytes
// end that are there; the answer's `high` lies there, or before. The rest of the last grain
// becomes zeros. Returns its size; 0: the message is no wish for this cell.
int64_t AnswerWish(const std::byte* wish, int64_t wish_bytes, int64_t cell_begin,
                   int64_t cell_bytes, int grain_shift, int64_t end, std::byte* bytes,
                   std::byte* message);

}  // namespace ferry::mpi
