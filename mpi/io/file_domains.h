// How the ranks of a node share a collective access: by a buffer of the node, or each for itself;
// and which part of the file goes through the buffer at a time. Decided from facts that all ranks
// have of each other, so all of them decide alike.
//
// The idea of two phases, exchange and access: R. Thakur, W. Gropp and E. Lusk, "Data Sieving and
// Collective I/O in ROMIO" (1999).
//
// Units: bytes; places are bytes of the file. Calling thread: any. Nothing blocks.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "mpi/io/hints.h"
#include "mpi/io/view.h"

namespace ferry::mpi {

// A place that is behind all others.
inline constexpr int64_t kNowhere = std::numeric_limits<int64_t>::max();

// The facts that one rank tells the others of its part.
struct AccessFacts {
  int32_t error_class = 0;  // why it was refused; then the rest does not count
  // No piece of its view is shorter than this; kNowhere: the view has no gaps. 0 where a hint asks
  // for buffers.
  int64_t least_piece = 0;
  bool is_sorted = false;    // each of its pieces lies behind the one before
  bool is_fit = true;        // file, view and what has failed before allow a buffer of the node
  bool may_exchange = true;  // other nodes may have its bytes on their way
  bool is_local = false;     // the file system is the machine's own
  int8_t grain_shift = 0;    // all its places are multiples of 2^grain_shift
  int64_t bytes = 0;
  int64_t low = kNowhere;   // its first byte
  int64_t high = 0;         // its last one, and 1
  int64_t piece_bytes = 0;  // of a piece, on the average
  // Hints, of which rank 0's count.
  Switch buffering = Switch::kAutomatic;
  int64_t buffer_bytes = 0;
  int64_t aggregators = 0;
  int64_t striping_unit = 0;
};

// The stretches that one node's buffer has room for, at a time.
inline constexpr int64_t kStretches = 4;
inline constexpr int64_t kLeastStretch = 64 << 10;
inline constexpr int64_t kMostStretch = 1 << 20;
// Stretches begin at multiples of this, so that no two share a page or a block of the file.
inline constexpr int64_t kStretchAlignment = 4096;
inline constexpr int kMostGrainShift = 12;

// The bytes of a node's ranks lie in [low, high).
struct NodeSpan {
  int64_t low = kNowhere;
  int64_t high = 0;
};

// How the ranks of one node carry out the access.
struct NodePlan {
  bool is_buffered = false;  // else each rank for itself
  int grain_shift = 0;
  int64_t stretch_bytes = 0;  // a multiple of kStretchAlignment
  int aggregators = 0;        // so many ranks, the node's first ones, access the file
  int64_t low = 0;            // the first byte
  // Where the nodes exchange data (cells.h), each stretch is a cell of stretch_bytes, a power of
  // two, and its owner changes every unit_bytes, a multiple of that.
  bool is_exchanged = false;
  int64_t unit_bytes = 0;
  std::vector<NodeSpan> nodes;
};

// Pieces of this length and longer are as fast without a buffer of the node.
int64_t LongPiece(bool is_write, bool is_local);

// `ranks`: those of the node; `hints`: the facts of the file's rank 0.
NodePlan PlanFor(std::span<const AccessFacts> ranks, const AccessFacts& hints, bool is_write);

// Sets *plan, and returns true, if the nodes had better access the file together. `nodes`: the
// facts of each node's ranks. `most_bytes`: of a cell, kLeastStretch at least.
bool PlanExchange(std::span<const std::vector<AccessFacts>> nodes, const AccessFacts& hints,
                  int64_t most_bytes, bool is_write, NodePlan* plan);

// Returns the size of the stretches that a node's memory of `buffer_bytes` (a hint) has room for.
int64_t StretchBytesFor(int64_t buffer_bytes);

// Returns the first position in [from, to) that lies at `place` or behind it; `to`: there is none.
// The view's pieces must be sorted there.
int64_t FirstPositionAt(const View& view, int64_t place, int64_t from, int64_t to);

// The part that is alike for all accesses by one view.
struct ViewShape {
  bool is_sorted = false;   // of all tiles
  int64_t grain = 0;        // divides the places and lengths of a tile's pieces; 0: no data
  int64_t least_piece = 0;  // divides their lengths alone
};
// Takes time in proportion to the entries of the filetype's layout.
ViewShape ShapeOf(const View& view);
// Sets what the view and the access say: least_piece, is_sorted, grain_shift, bytes, low, high and
// piece_bytes.
void DescribeAccess(const View& view, const ViewShape& shape, int64_t position, int64_t bytes,
                    AccessFacts* facts);

}  // namespace ferry::mpi
