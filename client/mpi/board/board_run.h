// Collectives of ranks that share a node, by a board.
//
// Short ones are copied twice, in pieces, and need one wait for each other, or none where a rank
// only gives. Long ones are copied once, straight between the ranks' own buffers, by all ranks at
// once: each does the same part of the copies and of the reductions. Reductions are done in the
// order of ranks, so all ranks get the same bits.
//
// Calling thread: one at a time for each member. Blocks.
#pragma once

#include <cstdint>

#include "client/mpi/board/board.h"
#include "client/mpi/board/board_limits.h"
#include "client/mpi/collective/binding.h"
#include "client/mpi/collective/problem.h"

namespace ferry::mpi {

// Whether a board can carry the problem out; the same on all ranks. `problem.rank` and
// `problem.size` are those of the board.
bool CanRunOnBoard(const Problem& problem, const BoardLimits& limits);

// How a collective ended; the same on all ranks, unless it failed.
enum class BoardResult {
  kDone,
  kNotForBoards,  // CanRunOnBoard
  kElsewhere      // memory of some rank is better, or only, reached by messages; nothing was done
};

// Carries it out as collective `number`. `failure` is set if it fails, which is kDone.
BoardResult RunOnBoard(Board* board, uint64_t number, const Problem& problem,
                       const Binding& binding, const BoardLimits& limits, RunFailure* failure);

}  // namespace ferry::mpi
