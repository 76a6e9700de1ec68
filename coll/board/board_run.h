// Collectives of ranks that share a node, by a board.
//
// Short ones are copied twice, in slices, and need one wait for each other, or none where a rank
// only gives. Long ones are copied once, straight between the ranks' own buffers, by all ranks at
// once: each does the same part of the copies and of the reductions. Reductions are done in the
// order of ranks, so all ranks get the same bits.
//
// Calling thread: one at a time for each member. Blocks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "coll/board/board.h"
#include "coll/messenger.h"
#include "coll/problem.h"

namespace ferry::collective {

// When ranks read and write each other's memory.
struct BoardLimits {
  // By collective: from so many bytes of a rank's vector, or of one block, ranks copy straight
  // between their buffers. SIZE_MAX: never.
  std::array<size_t, kCollectives> direct_min_bytes;
  // Nothing larger goes through cells.
  size_t cells_max_bytes = SIZE_MAX;

  size_t direct_min(Collective collective) const {
    return direct_min_bytes[static_cast<size_t>(collective)];
  }
};

// Returns how many cells a board has. `crowded`: more ranks than cores.
BoardShape ShapeFor(int members, bool crowded);
// Returns when ranks read and write each other's memory. `reachable`: all of them can do it.
BoardLimits LimitsFor(int members, bool crowded, bool reachable);

// Return the bytes in the input and in the output of a problem without blocks of their own sizes,
// as this rank knows it.
size_t InputBytes(const Problem& problem);
size_t OutputBytes(const Problem& problem);

// Returns true if a board can carry the problem out; alike on all ranks. `problem.rank` and
// `problem.size` are those of the board.
bool CanRunOnBoard(const Problem& problem, const BoardLimits& limits);

// The end of a collective; alike on all ranks, unless it failed.
enum class BoardResult {
  kDone,
  kNotForBoards,  // CanRunOnBoard
  kElsewhere      // memory of some rank is better, or only, reached by messages; nothing was done
};

// Returns the word by which members tell a collective from others: alike on all of them.
uint64_t SignatureOf(const Problem& problem);

// Carries out the problem as collective `number`. `failure` is set if it fails, which is kDone.
BoardResult RunOnBoard(Board* board, uint64_t number, const Problem& problem,
                       const Binding& binding, const BoardLimits& limits, RunFailure* failure);
// RunOnBoard for a part of a collective of more ranks; `signature` is that of the whole collective.
BoardResult RunPartOnBoard(Board* board, uint64_t number, uint64_t signature,
                           const Problem& problem, const Binding& binding,
                           const BoardLimits& limits, RunFailure* failure);

}  // namespace ferry::collective
